"""Local HTTP servers that behave as a test says."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tasks.targets.endpoints.base import EndpointConfig

LOOPBACK = ("127.0.0.0/8", "::1")


@dataclass
class Seen:
    """One request a server received."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


@dataclass
class Server:
    """A running server; `seen` lists its requests."""

    url: str
    port: int
    seen: list[Seen] = field(default_factory=list)


class Handler(BaseHTTPRequestHandler):
    """Hands each request to the test's function, which may write to the socket itself."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each body waits 40 ms for the headers to be acknowledged
    behave: Callable[["Handler", Seen], None]
    server_seen: list[Seen]

    def _handle(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        seen = Seen(self.command, self.path, dict(self.headers), body)
        self.server_seen.append(seen)
        try:
            type(self).behave(self, seen)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    do_GET = do_POST = _handle

    def send(self, value: Any, status: int = 200, **headers: str) -> None:
        """Answer with JSON, or with bytes as they are."""
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        for name, text in headers.items():
            self.send_header(name.replace("_", "-"), text)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent."""


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[Handler, Seen], None]], Server]]:
    """Start a server on the loopback for a function of (handler, request)."""
    started: list[ThreadingHTTPServer] = []

    def start(behave: Callable[[Handler, Seen], None]) -> Server:
        seen: list[Seen] = []
        handler = type(
            "Behaving", (Handler,), {"behave": staticmethod(behave), "server_seen": seen}
        )
        httpd = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        httpd.daemon_threads = True
        threading.Thread(target=httpd.serve_forever, args=(0.01,), daemon=True).start()
        started.append(httpd)
        port = httpd.server_address[1]
        return Server(f"http://127.0.0.1:{port}", port, seen)

    yield start
    for httpd in started:
        httpd.shutdown()
        httpd.server_close()


def answering(*answers: Any) -> Callable[[Handler, Seen], None]:
    """A behaviour that gives these answers in turn, and the last one for ever."""
    left = list(answers)

    def behave(handler: Handler, seen: Seen) -> None:
        handler.send(left.pop(0) if len(left) > 1 else left[0])

    return behave


def sentiment(url: str, **changes: Any) -> EndpointConfig:
    """A classification target on the loopback."""
    values: dict[str, Any] = {
        "url": url,
        "fields": ("text",),
        "output": "label",
        "labels": ("positive", "negative"),
        "kind": "sequence-classification",
        "allow_private_hosts": LOOPBACK,
    }
    return EndpointConfig(**(values | changes))


def qa(url: str, **changes: Any) -> EndpointConfig:
    """An extractive question answering target on the loopback."""
    values: dict[str, Any] = {
        "url": url,
        "fields": ("question", "passage"),
        "output": "answer",
        "kind": "extractive-qa",
        "allow_private_hosts": LOOPBACK,
    }
    return EndpointConfig(**(values | changes))
