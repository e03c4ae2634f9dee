"""One host stopped the site with a hundred half-sent forms: each of them held a thread for good.

Here 200 clients are slow in every way they can be, beside a person who works.
"""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from tests.support.live import PATIENCE, web_server
from tests.support.slow_clients import NEVER, is_open, settings_with

MANY = 200
HEAD = b"POST /accounts/login/ HTTP/1.1\r\nHost: localhost\r\n"
SLOW = {
    "head": HEAD[:-9],
    "no body": HEAD + b"Content-Length: 1000\r\n\r\n",
    "half a body": HEAD + b"Content-Length: 1000\r\n\r\nabc",
    "most of a body": HEAD + b"Content-Length: 90000\r\n\r\n" + b"a" * 80_000,
    "half a chunk": HEAD[:-2] + b"\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nabc",
    "an upload": HEAD + b"Content-Length: 200000000\r\n\r\nabc",
    "reads nothing": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 40,
}
IS_HELD = ("head", "no body", "half a body", "most of a body")
pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def slow_clients(url: str) -> Iterator[list[tuple[str, socket.socket]]]:
    """They have all begun, and none goes on."""
    clients = []
    for number in range(MANY):
        kind = [*SLOW][number % len(SLOW)]
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", httpx.URL(url).port))
        client.sendall(SLOW[kind])
        clients.append((kind, client))
    yield clients
    for _, client in clients:
        client.close()


def test_a_person_works_while_200_clients_are_slow(tmp_path):
    options = ["--config", str(settings_with(tmp_path, **NEVER)), "--graceful-timeout", "1"]
    with (
        web_server(tmp_path, options=options) as url,
        slow_clients(url) as slow,
        httpx.Client(base_url=url, timeout=PATIENCE) as person,
    ):
        for _ in range(3):
            assert person.get("/healthz/").status_code == 200
            page = person.get("/accounts/login/")
            form = {"login": "nobody@example.com", "password": "wrong"}
            form["csrfmiddlewaretoken"] = page.cookies["csrftoken"]
            assert person.post("/accounts/login/", data=form).status_code == 200
        held = [client for kind, client in slow if kind in IS_HELD]
        assert len(held) > MANY / 2
        assert all(map(is_open, held))
