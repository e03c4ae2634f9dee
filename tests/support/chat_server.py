"""An OpenAI-compatible server whose models behave as a test says."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Messages = Sequence[Mapping[str, str]]
Behaviour = Callable[[Messages], str | int]
"""The answer to a conversation, or the status of an error."""


class ChatServer(ThreadingHTTPServer):
    """`behaviours`: by the name of a model; `seen`: the bodies of the requests.

    version: what models call themselves; empty: their name. With 429 it asks for seven seconds.
    tokens: what it tells that each answer read and wrote. key: the bearer token that it wants;
    it repeats another one. A model that it lacks is named in a 404. logprobs: of an answer's
    tokens, for who asks for them.
    """

    daemon_threads = True

    def __init__(self, behaviours: Mapping[str, Behaviour]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behaviours = dict(behaviours)
        self.seen: list[dict[str, Any]] = []
        self.version = ""
        self.tokens: tuple[int, int] | None = None
        self.key = ""
        self.logprobs = [-0.5, -0.25]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each body waits 40 ms for the headers to be acknowledged
    server: ChatServer

    def do_GET(self) -> None:
        self._send({"data": [{"id": name} for name in self.server.behaviours]})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append(asked)
        given = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if self.server.key not in ("", given):
            self._refuse(401, f"{given} is no API key of this server")
            return
        if asked["model"] not in self.server.behaviours:
            self._refuse(404, f"The model `{asked['model']}` does not exist")
            return
        said = self.server.behaviours[asked["model"]](asked["messages"])
        if isinstance(said, int):
            self._refuse(said, "as the test wants")
            return
        choice = {"index": 0, "finish_reason": "stop", "message": {"content": said}}
        if asked.get("logprobs"):
            tokens = [{"logprob": logprob} for logprob in self.server.logprobs]
            choice["logprobs"] = {"content": tokens}
        told = {"model": self.server.version or asked["model"], "choices": [choice]}
        if self.server.tokens:
            read, written = self.server.tokens
            told["usage"] = {"prompt_tokens": read, "completion_tokens": written}
        self._send(told)

    def _refuse(self, status: int, words: str) -> None:
        self._send({"error": {"message": words}}, status)

    def _send(self, value: Any, status: int = 200) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        if status == 429:
            self.send_header("Retry-After", "7")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent."""


@contextmanager
def chat_server(behaviours: Mapping[str, Behaviour]) -> Iterator[ChatServer]:
    """A server in a thread, as long as the context lasts."""
    server = ChatServer(behaviours)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
