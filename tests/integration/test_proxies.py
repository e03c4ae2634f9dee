"""The proxies whose settings we ship, before a site: slow clients, uploads and events."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import yaml
from django.urls import URLPattern, get_resolver

from tests.support.live import PATIENCE, ROOT, wait_until
from tests.support.parts import free_port
from tests.support.slow_clients import NEVER, Server, is_open, small_site

MANY = 200
DEPLOY = ROOT / "deploy"
HEAD = b"POST /echo HTTP/1.1\r\nHost: localhost\r\n"
SLOW = (
    HEAD[:-4],
    HEAD + b"Content-Length: 1000\r\n\r\nabc",
    HEAD.replace(b"/echo", b"/t/echo") + b"Content-Length: 20000000\r\n\r\nabc",
)
pytestmark = pytest.mark.proxies


def nginx_settings(folder: Path, port: int, site: int) -> list[str]:
    """Our file in a server of our own, without TLS."""
    text = (DEPLOY / "nginx.conf").read_text()
    text = text.partition("server {\n    listen 80;")[0].replace(
        "127.0.0.1:8000", f"127.0.0.1:{site}"
    )
    text = re.sub(r"(?m)^ +(ssl_certificate.*|listen \[::.*)\n", "", text)
    text = text.replace("listen 443 ssl;", f"listen 127.0.0.1:{port};")
    text = text.replace("limit_conn dynabench 100;", "limit_conn dynabench 300;")
    parts = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = "".join(f"{part}_temp_path {folder}/{part};" for part in parts)
    who = "" if os.geteuid() else "user root;"  # who else may not write into the folder
    (folder / "nginx.conf").write_text(
        f"daemon off; {who} pid {folder}/nginx.pid; error_log {folder}/error.log;"
        f"events {{ worker_connections 1024; }} http {{ access_log off; {paths}\n{text} }}"
    )
    return ["nginx", "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]


def caddy_settings(folder: Path, port: int, site: int) -> list[str]:
    """Our file, without TLS."""
    text = (DEPLOY / "services/Caddyfile").read_text()
    text = text.replace("{$SITE_HOST}", f"http://localhost:{port}")
    (folder / "Caddyfile").write_text(text.replace("{$WEB:web:8000}", f"127.0.0.1:{site}"))
    return ["caddy", "run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]


@contextmanager
def behind(settings, folder: Path) -> Iterator[Server]:
    """A proxy before the small site, once it answers."""
    with small_site(folder, "--graceful-timeout", "1", **NEVER) as site:
        port = free_port()
        with (folder / "proxy.log").open("wb") as log:
            command = settings(folder, port, site.port)
            process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            wait_until(lambda: answers(port))
            yield Server(port, process, folder / "proxy.log")
        finally:
            process.terminate()
            process.wait(PATIENCE)


def answers(port: int) -> bool:
    try:
        return httpx.get(f"http://localhost:{port}/hello").status_code == 200
    except httpx.TransportError:
        return False


@pytest.fixture(scope="module", params=[caddy_settings, nginx_settings], ids=["caddy", "nginx"])
def proxy(request, tmp_path_factory):
    with behind(request.param, tmp_path_factory.mktemp("proxy")) as server:
        yield server


def test_people_are_served_beside_200_slow_clients(proxy):
    slow = [proxy.connect() for _ in range(MANY)]
    for number, client in enumerate(slow):
        client.sendall(SLOW[number % len(SLOW)])
    with httpx.Client(base_url=f"http://localhost:{proxy.port}", timeout=PATIENCE) as person:
        for size in (0, 5, 2_000_000):
            assert person.get("/hello").json() == {"path": "/hello"}
            assert person.post("/echo", content=bytes(size)).json()["bytes"] == size
    assert any(map(is_open, slow))
    for client in slow:
        client.close()


def test_uploads_and_long_answers_pass(proxy):
    with httpx.Client(base_url=f"http://localhost:{proxy.port}", timeout=PATIENCE) as person:
        assert person.post("/t/echo", content=bytes(17 * 2**20)).json()["bytes"] == 17 * 2**20
        assert len(person.get("/stream?20").content) == 20 * 2**20


def test_events_come_as_they_are_made(proxy):
    url = f"http://localhost:{proxy.port}"
    with httpx.stream("GET", f"{url}/events", timeout=PATIENCE) as answer:
        parts = answer.iter_text()
        assert "first" in next(parts)
        httpx.get(f"{url}/open")
        assert "last" in "".join(parts)


def test_a_refusal_comes_before_the_body(proxy):
    head = b"POST /t/refuse HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20000000\r\n"
    said = proxy.ask(head + b"Connection: close\r\n\r\n" + bytes(4_000_000))
    assert b" 413 " in said.split(b"\r\n")[0]


def large(patterns=None, before="") -> Iterator[str]:
    """The first parts of the addresses that take large bodies."""
    for one in get_resolver().url_patterns if patterns is None else patterns:
        route = before + str(one.pattern)
        if not isinstance(one, URLPattern):
            yield from large(one.url_patterns, route)
        elif hasattr(one.callback, "max_body_bytes") or hasattr(
            getattr(one.callback, "cls", None), "max_body_bytes"
        ):
            yield route.split("/")[0]


def test_each_proxy_knows_the_addresses_of_large_bodies():
    in_nginx = re.search(r"location ~ \^/\((.*)\)/", (DEPLOY / "nginx.conf").read_text())
    manifests = yaml.safe_load_all((DEPLOY / "kubernetes/base/web.yaml").read_text())
    (uploads,) = (one for one in manifests if one["metadata"]["name"] == "web-uploads")
    paths = uploads["spec"]["rules"][0]["http"]["paths"]
    found = {*large()}
    assert found <= {*in_nginx[1].split("|")} == {path["path"].strip("/") for path in paths}
    assert len(found) > 4
