"""Load for one server: some clients, each on its own connection, one request after the other.

`python bench/load.py PORT PATH CLIENTS SECONDS TEXTS.json` prints requests a second, latencies in
milliseconds and the number of answers that were not 200. One thread with raw sockets keeps its own
cost near 0.1 ms a request, because it shares the cores with the server.
"""

import json
import selectors
import socket
import sys
import time
from dataclasses import dataclass
from pathlib import Path


def build_requests(path: str, texts: list[str]) -> list[bytes]:
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


@dataclass(eq=False)
class Client:
    """One connection, the text that is its turn, and what has come of the answer."""

    connection: socket.socket
    turn: int
    sent_at: float = 0.0
    answer: bytes = b""

    def send(self, made: list[bytes]) -> None:
        """The next request."""
        self.sent_at, self.answer = time.monotonic(), b""
        self.connection.sendall(made[self.turn % len(made)])
        self.turn += 1

    def receive(self) -> bool | None:
        """Whether the answer is 200, or None while it is not whole."""
        more = self.connection.recv(65536)
        if not more:
            raise ConnectionError("The server closed the connection.")
        self.answer += more
        head, ended, body = self.answer.partition(b"\r\n\r\n")
        if not ended:
            return None
        length = head.lower().split(b"content-length:")[1].split(b"\r\n")[0]
        return b" 200 " in head.split(b"\r\n")[0] if len(body) >= int(length) else None


def run_load(port: int, made: list[bytes], clients: int, seconds: float) -> dict[str, float]:
    """Run the clients for some seconds."""
    latencies: list[float] = []
    failed = 0
    waiting = selectors.DefaultSelector()
    begun = time.monotonic()
    for number in range(clients):
        connection = socket.create_connection(("127.0.0.1", port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client = Client(connection, number * 17)  # clients start at different texts
        waiting.register(connection, selectors.EVENT_READ, client)
        client.send(made)
    while waiting.get_map():
        for key, _ in waiting.select():
            client = key.data
            found = client.receive()
            if found is None:
                continue
            now = time.monotonic()
            latencies.append(now - client.sent_at)
            failed += not found
            if now - begun < seconds:
                client.send(made)
            else:
                waiting.unregister(client.connection)
                client.connection.close()
    took = time.monotonic() - begun
    latencies.sort()
    return {
        "per_second": len(latencies) / took,
        "p50_ms": 1000 * latencies[len(latencies) // 2],
        "p95_ms": 1000 * latencies[len(latencies) * 95 // 100],
        "failed": failed,
    }


if __name__ == "__main__":
    port, path, clients, seconds, file = sys.argv[1:]
    texts = json.loads(Path(file).read_text())
    print(
        json.dumps(run_load(int(port), build_requests(path, texts), int(clients), float(seconds)))
    )
