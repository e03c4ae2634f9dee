"""Load for one server: some clients, each on its own connection, one request after the other.

`python bench/load.py PORT PATH CLIENTS SECONDS TEXTS.json` prints requests a second, latencies in
milliseconds and the number of answers that were not 200. Raw sockets keep its own cost below
0.1 ms a request, because it shares the cores with the server.
"""

import json
import socket
import sys
import threading
import time
from pathlib import Path


def requests(path: str, texts: list[str]) -> list[bytes]:
    """Whole HTTP requests."""
    made = []
    for text in texts:
        body = json.dumps({"inputs": {"text": text}}).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        made.append(head.encode() + body)
    return made


def exchange(connection: socket.socket, request: bytes) -> bool:
    """Send one request and read its whole answer; whether it was 200."""
    connection.sendall(request)
    answer = b""
    while True:
        more = connection.recv(65536)
        if not more:
            raise ConnectionError("The server closed the connection.")
        answer += more
        head, ended, body = answer.partition(b"\r\n\r\n")
        if ended:
            length = head.lower().split(b"content-length:")[1].split(b"\r\n")[0]
            if len(body) >= int(length):
                return b" 200 " in head.split(b"\r\n")[0]


def load(port: int, made: list[bytes], clients: int, seconds: float) -> dict[str, float]:
    """Run the clients for some seconds."""
    latencies: list[float] = []
    failed: list[bool] = []
    stop = time.monotonic() + seconds

    def client(number: int) -> None:
        connection = socket.create_connection(("127.0.0.1", port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        turn = number * 17  # clients start at different texts
        while (started := time.monotonic()) < stop:
            if not exchange(connection, made[turn % len(made)]):
                failed.append(True)
            latencies.append(time.monotonic() - started)
            turn += 1
        connection.close()

    threads = [threading.Thread(target=client, args=[number]) for number in range(clients)]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.monotonic() - begun
    latencies.sort()
    return {
        "per_second": len(latencies) / took,
        "p50_ms": 1000 * latencies[len(latencies) // 2],
        "p95_ms": 1000 * latencies[len(latencies) * 95 // 100],
        "failed": len(failed),
    }


if __name__ == "__main__":
    port, path, clients, seconds, file = sys.argv[1:]
    texts = json.loads(Path(file).read_text())
    print(json.dumps(load(int(port), requests(path, texts), int(clients), float(seconds))))
