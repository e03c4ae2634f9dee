"""Certificates are checked by name, though the connection goes to a checked address."""

import ssl
import subprocess
import threading
from collections.abc import Callable
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tasks.targets.endpoints.base import EndpointError
from tasks.targets.endpoints.transport import Clock, Transport

from .conftest import Handler, Seen, Server
from .test_transport import ask, client, failure

Serve = Callable[[Callable[[Handler, Seen], None]], Server]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate (with key) for target.example."""
    path = tmp_path_factory.mktemp("tls") / "target.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=target.example", "-addext", "subjectAltName=DNS:target.example"),
            *("-keyout", str(path), "-out", f"{path}.crt"),
        ],
        check=True,
        capture_output=True,
    )
    path.write_text(path.read_text() + Path(f"{path}.crt").read_text())
    return path


@pytest.fixture
def tls_port(certificate: Path) -> Any:
    """An HTTPS server; a GET or POST of /plain redirects to http."""

    def behave(handler: Handler, seen: Seen) -> None:
        if seen.path == "/plain":
            handler.send({}, 307, Location="http://target.example/")
        else:
            handler.send({"host": seen.headers["Host"]})

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    handler = type("Behaving", (Handler,), {"behave": staticmethod(behave), "server_seen": []})
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    httpd.daemon_threads = True
    httpd.socket = context.wrap_socket(httpd.socket, server_side=True)
    threading.Thread(target=httpd.serve_forever, args=(0.01,), daemon=True).start()
    yield httpd.server_address[1]
    httpd.shutdown()
    httpd.server_close()


def trusting(certificate: Path | None) -> Transport:
    context = ssl.create_default_context(cafile=certificate and f"{certificate}.crt")
    return Transport(resolve=lambda host, port: ["127.0.0.1"], ssl_context=context)


def test_tls_is_verified_by_name_though_we_connect_to_an_address(
    tls_port: int, certificate: Path
) -> None:
    transport = trusting(certificate)
    target = client(f"https://target.example:{tls_port}", transport=transport, secret="s")
    assert ask(target) == {"host": f"target.example:{tls_port}"}
    other = client(f"https://other.example:{tls_port}", transport=transport)
    assert failure(other).reason == "misconfigured"
    by_number = client(f"https://127.0.0.1:{tls_port}", transport=transport)
    assert "certificate" in str(failure(by_number))


def test_an_unknown_certificate_is_refused(tls_port: int) -> None:
    error = failure(client(f"https://target.example:{tls_port}", transport=trusting(None)))
    assert (error.reason, error.is_permanent) == ("misconfigured", True)


def test_a_redirect_from_https_to_http_is_refused(tls_port: int, certificate: Path) -> None:
    target = client(f"https://target.example:{tls_port}", transport=trusting(certificate))
    with pytest.raises(EndpointError, match="https"):
        target.post("/plain", {}, Clock(5))
