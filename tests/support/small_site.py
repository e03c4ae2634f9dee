"""A small application for tests of the web server: `gunicorn tests.support.small_site`."""

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any
from wsgiref.types import StartResponse

FILE = bytes(range(256)) * 2**16
_gate = threading.Event()
_file = NamedTemporaryFile()  # noqa: SIM115 - as long as the process
_file.write(FILE)
_file.flush()


def application(environ: dict[str, Any], start: StartResponse) -> Any:
    """Answer by the path; /echo says how much of a body came, /refuse reads nothing of it."""
    path = environ["PATH_INFO"].removeprefix("/t")
    length = int(environ.get("CONTENT_LENGTH") or 0)
    if path == "/echo":
        body = environ["wsgi.input"].read()
        return _answer(start, {"bytes": len(body), "sum": sum(body) % 251, "said": length})
    if path == "/refuse":
        return _answer(start, {"refused": length}, "413 Content Too Large")
    if path == "/stream":
        start("200 OK", [("Content-Type", "application/octet-stream")])
        return _parts(int(environ["QUERY_STRING"]))
    if path == "/events":
        start("200 OK", [("Content-Type", "text/event-stream")])
        return _events()
    if path == "/open":
        _gate.set()
    if path == "/file":
        start("200 OK", [("Content-Length", str(len(FILE)))])
        return environ["wsgi.file_wrapper"](Path(_file.name).open("rb"))  # the server closes it
    if path == "/broken":
        start("200 OK", [("Content-Length", "100")])
        return _broken()
    if path == "/slow":
        time.sleep(0.5)
    return _answer(start, {"path": path})


def _answer(start: StartResponse, said: dict[str, Any], status: str = "200 OK") -> list[bytes]:
    body = json.dumps(said).encode()
    start(status, [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]


def _parts(mebibytes: int) -> Iterator[bytes]:
    for _ in range(mebibytes * 16):
        yield bytes(65536)


def _events() -> Iterator[bytes]:
    yield b"data: first\n\n"
    _gate.wait()
    yield b"data: last\n\n"


def _broken() -> Iterator[bytes]:
    yield b"half"
    raise ValueError("The answer fails halfway.")
