import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from tasks.targets.endpoints.base import EndpointError
from tasks.targets.endpoints.client import JsonEndpoint, append_path
from tasks.targets.endpoints.http import HttpEndpoint
from tasks.targets.endpoints.transport import (
    RETRY_CAREFUL,
    RETRY_IDEMPOTENT,
    Clock,
    RetryPolicy,
    Transport,
    parse_retry_after,
    parse_url,
)

from .conftest import Handler, Seen, Server, sentiment

Serve = Callable[[Callable[[Handler, Seen], None]], Server]


def client(
    url: str,
    retry: RetryPolicy = RETRY_IDEMPOTENT,
    transport: Transport | None = None,
    **changes: Any,
) -> JsonEndpoint:
    target: JsonEndpoint = type("Target", (HttpEndpoint,), {"RETRY": retry})(
        sentiment(url, **changes), transport or Transport()
    )
    return target


def ask(target: JsonEndpoint, seconds: float = 5.0) -> Any:
    return target.post("/predict", {"inputs": {}}, Clock(seconds))


def failure(target: JsonEndpoint, seconds: float = 5.0) -> EndpointError:
    with pytest.raises(EndpointError) as caught:
        ask(target, seconds)
    return caught.value


def chunks(handler: Handler, parts: int, part: bytes, pause: float) -> None:
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    for _ in range(parts):
        handler.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        handler.wfile.flush()
        time.sleep(pause)
    handler.wfile.write(b"0\r\n\r\n")


@pytest.mark.parametrize(
    "url",
    [
        "ftp://target.example/", "file:///etc/passwd", "//target.example", "target.example", "",
        "http://", "http://user:secret@target.example/", "http://user@target.example/",
        "http://target.example:99999/", "http://[::1", "gopher://127.0.0.1:70/",
    ],
)  # fmt: skip
def test_urls_that_are_refused(url: str) -> None:
    with pytest.raises(EndpointError) as caught:
        parse_url(url)
    assert caught.value.reason == "misconfigured"
    assert caught.value.is_permanent


def test_a_path_is_appended_before_the_query() -> None:
    assert (
        str(append_path(parse_url("https://a.example/v1/?v=2"), "/x"))
        == "https://a.example/v1/x?v=2"
    )
    assert str(append_path(parse_url("https://a.example"), "/a%2Fb")) == "https://a.example/a%2Fb"
    assert str(append_path(parse_url("https://a.example/h?x=1#f"), "")) == "https://a.example/h?x=1"


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1/", "http://localhost:1/", "http://2130706433:1/", "http://127.1:1/",
        "http://0x7f000001:1/", "http://[::1]:1/", "http://[::ffff:127.0.0.1]:1/",
        "http://0.0.0.0:1/", "http://169.254.169.254/latest/meta-data/", "http://10.0.0.1/",
    ],
)  # fmt: skip
def test_private_hosts_are_refused_in_every_spelling(url: str) -> None:
    error = failure(client(url, allow_private_hosts=False))
    assert (error.reason, error.is_permanent) == ("misconfigured", True)


def test_one_private_address_among_public_ones_is_refused() -> None:
    transport = Transport(resolve=lambda host, port: ["9.9.9.9", "127.0.0.1"])
    error = failure(
        client("http://target.example/", transport=transport, allow_private_hosts=False)
    )
    assert error.reason == "misconfigured"
    assert "127.0.0.1" not in str(error)  # nobody learns from it what a name leads to


def test_a_rebinding_name_is_resolved_once_for_a_connection(serve: Serve) -> None:
    server = serve(lambda handler, seen: handler.send({"host": seen.headers["Host"]}))
    answers = [["127.0.0.1"], ["10.0.0.1"]]
    asked: list[str] = []

    def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return answers[len(asked) - 1]

    target = client(f"http://target.example:{server.port}", transport=Transport(resolve=resolve))
    assert ask(target) == {"host": f"target.example:{server.port}"}
    assert ask(target)  # kept alive: the second answer of the resolver is never asked for
    assert asked == ["target.example"]


def test_a_rebinding_name_is_checked_again_for_a_new_connection(serve: Serve) -> None:
    server = serve(lambda handler, seen: handler.send({}, Connection="close"))
    answers = iter([["127.0.0.1"], ["169.254.169.254"]])
    transport = Transport(resolve=lambda host, port: next(answers))
    target = client(f"http://target.example:{server.port}", transport=transport)
    assert ask(target) == {}
    assert failure(target).reason == "misconfigured"


def test_a_pool_of_one_policy_does_not_serve_another(serve: Serve) -> None:
    server = serve(lambda handler, seen: handler.send({}))
    transport = Transport()
    assert ask(client(server.url, transport=transport)) == {}
    closed = client(server.url, transport=transport, allow_private_hosts=False)
    assert failure(closed).reason == "misconfigured"


def test_proxies_of_the_environment_are_ignored(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    server = serve(lambda handler, seen: handler.send({"path": seen.path}))
    assert ask(client(server.url)) == {"path": "/predict"}


def test_an_unknown_name_is_down() -> None:
    def resolve(host: str, port: int) -> list[str]:
        raise socket.gaierror("no such host")

    error = failure(client("http://target.example/", transport=Transport(resolve=resolve)))
    assert (error.reason, error.is_permanent) == ("down", False)


def test_a_slow_resolver_is_cut_at_the_deadline() -> None:
    free = threading.Event()

    def resolve(host: str, port: int) -> list[str]:
        free.wait(30)
        return ["127.0.0.1"]

    target = client("http://target.example/", transport=Transport(resolve=resolve))
    assert failure(target, seconds=0.1).reason == "slow"
    free.set()


def test_the_second_address_is_tried_when_the_first_refuses(serve: Serve) -> None:
    server = serve(lambda handler, seen: handler.send({}))
    transport = Transport(resolve=lambda host, port: ["127.0.0.9", "127.0.0.1"])
    assert ask(client(f"http://target.example:{server.port}", transport=transport)) == {}


def test_the_secret_goes_to_the_target_and_to_no_other_origin(serve: Serve) -> None:
    other = serve(lambda handler, seen: handler.send({}))
    target = serve(lambda handler, seen: handler.send({}, 307, Location=f"{other.url}/elsewhere"))
    assert ask(client(target.url, secret="s3cret")) == {}
    assert target.seen[0].headers["Authorization"] == "Bearer s3cret"
    assert "Authorization" not in other.seen[0].headers
    assert other.seen[0].body == {"inputs": {}}


def test_the_secret_follows_a_redirect_within_the_origin(serve: Serve) -> None:
    def behave(handler: Handler, seen: Seen) -> None:
        if seen.path == "/predict":
            handler.send({}, 308, Location="/predict/")
        else:
            handler.send({})

    server = serve(behave)
    assert ask(client(server.url, secret="s3cret")) == {}
    assert server.seen[1].headers["Authorization"] == "Bearer s3cret"


def test_a_secret_is_not_sent_unencrypted_to_a_public_address() -> None:
    transport = Transport(resolve=lambda host, port: ["9.9.9.9"])
    error = failure(client("http://target.example/", transport=transport, secret="s3cret"))
    assert error.reason == "misconfigured"
    assert "https" in str(error)


@pytest.mark.parametrize("secret", ["", "a\r\nX-Evil: 1", "géheim", "a\x00b"])
def test_secrets_that_cannot_be_a_header_are_refused(secret: str) -> None:
    with pytest.raises(EndpointError, match="secret") as caught:
        client("https://target.example/", secret=secret)
    assert secret not in str(caught.value) or not secret


def test_a_secret_is_not_shown_with_the_configuration() -> None:
    assert "s3cret" not in repr(sentiment("https://target.example/", secret="s3cret"))


@pytest.mark.parametrize(
    "location",
    ["http://169.254.169.254/", "http://10.0.0.1/", "http://[fd00::1]/", "http://0.0.0.0/"],
)
def test_a_redirect_to_a_private_address_is_refused(serve: Serve, location: str) -> None:
    server = serve(lambda handler, seen: handler.send({}, 307, Location=location))
    assert failure(client(server.url)).reason == "misconfigured"
    assert failure(client(server.url, allow_private_hosts=True)).reason == "misconfigured"


def test_an_open_policy_covers_the_named_host_only(serve: Serve) -> None:
    other = serve(lambda handler, seen: handler.send({}))
    server = serve(lambda handler, seen: handler.send({}, 307, Location=other.url))
    assert ask(client(other.url, allow_private_hosts=True)) == {}
    assert failure(client(server.url, allow_private_hosts=True)).reason == "misconfigured"
    assert len(other.seen) == 1


@pytest.mark.parametrize("location", ["ftp://a.example/", "file:///etc/passwd", "http://u:p@a/",
                                      "http://[::1", "javascript:1"])  # fmt: skip
def test_redirects_to_other_schemes_or_with_passwords_are_refused(
    serve: Serve, location: str
) -> None:
    server = serve(lambda handler, seen: handler.send({}, 307, Location=location))
    assert failure(client(server.url)).reason == "misconfigured"


def test_three_redirects_are_followed_and_not_four(serve: Serve) -> None:
    def behave(handler: Handler, seen: Seen) -> None:
        step = int(seen.path.rpartition("/")[2])
        if step:
            handler.send({}, 307, Location=f"/{step - 1}")
        else:
            handler.send({"arrived": True})

    server = serve(behave)
    assert client(server.url).post("/3", {}, Clock(5)) == {"arrived": True}
    with pytest.raises(EndpointError, match="more than 3 times"):
        client(server.url).post("/4", {}, Clock(5))


def test_a_redirect_that_would_turn_a_post_into_a_get_is_refused(serve: Serve) -> None:
    server = serve(lambda handler, seen: handler.send({}, 302, Location="/x"))
    assert failure(client(server.url)).reason == "misconfigured"
    assert len(server.seen) == 1


@pytest.mark.parametrize("path", ["/predict", "/info"])
def test_a_get_follows_every_kind_of_redirect(serve: Serve, path: str) -> None:
    def behave(handler: Handler, seen: Seen) -> None:
        handler.send({}, 302, Location="/x") if seen.path == path else handler.send({"ok": 1})

    assert client(serve(behave).url).get(path, Clock(5)) == {"ok": 1}


def test_an_announced_oversize_is_refused_before_it_is_read(serve: Serve) -> None:
    def behave(handler: Handler, seen: Seen) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "2000000")
        handler.end_headers()
        handler.rfile.read(1)  # no body: waiting for one would run into the deadline

    error = failure(client(serve(behave).url), seconds=20)
    assert error.reason == "rubbish"
    assert "larger than 1000000 bytes" in str(error)


def test_an_endless_chunked_answer_is_cut_at_the_cap(serve: Serve) -> None:
    written = []

    def behave(handler: Handler, seen: Seen) -> None:
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        while True:
            handler.wfile.write(b"3e8\r\n" + b" " * 1000 + b"\r\n")
            written.append(1)

    error = failure(client(serve(behave).url, max_response_bytes=100_000), seconds=20)
    assert error.reason == "rubbish"
    assert "larger than 100000" in str(error)


def test_an_answer_of_exactly_the_cap_is_read(serve: Serve) -> None:
    server = serve(lambda handler, seen: handler.send(b'"' + b"x" * 998 + b'"'))
    assert len(ask(client(server.url, max_response_bytes=1000))) == 998
    assert failure(client(server.url, max_response_bytes=999)).reason == "rubbish"


def test_headers_without_end_are_cut(serve: Serve) -> None:
    def behave(handler: Handler, seen: Seen) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
        for count in range(100_000):
            handler.wfile.write(b"X-Padding-%d: %s\r\n" % (count, b"x" * 100))

    assert failure(client(serve(behave).url), seconds=20).reason == "rubbish"


def test_a_compressed_answer_is_refused(serve: Serve) -> None:
    server = serve(lambda handler, seen: handler.send(b"\x1f\x8b", Content_Encoding="gzip"))
    assert failure(client(server.url)).reason == "rubbish"
    assert server.seen[0].headers["Accept-Encoding"] == "identity"


def test_a_slow_drip_is_cut_at_the_deadline(serve: Serve) -> None:
    server = serve(lambda handler, seen: chunks(handler, 100, b" ", 0.05))
    assert failure(client(server.url), seconds=1).reason == "slow"
    assert len(server.seen) == 1


def test_dripping_headers_are_cut_at_the_deadline(serve: Serve) -> None:
    def behave(handler: Handler, seen: Seen) -> None:
        for byte in b"HTTP/1.1 200 OK\r\nX-Slow: " + b"x" * 200:
            handler.wfile.write(bytes([byte]))
            time.sleep(0.05)

    server = serve(behave)
    assert failure(client(server.url), seconds=1).reason == "slow"


def test_a_silent_server_is_cut_at_the_deadline(serve: Serve) -> None:
    server = serve(lambda handler, seen: handler.rfile.read(1))
    assert failure(client(server.url), seconds=0.2).reason == "slow"


def test_a_spent_deadline_sends_nothing(serve: Serve) -> None:
    server = serve(lambda handler, seen: handler.send({}))
    assert failure(client(server.url), seconds=0.0).reason == "slow"
    assert server.seen == []


def dropping(times: int) -> Callable[[Handler, Seen], None]:
    """Close the connection without an answer, some times, and then answer."""
    left = [times]

    def behave(handler: Handler, seen: Seen) -> None:
        handler.close_connection = True
        if left[0]:
            left[0] -= 1
            handler.connection.shutdown(socket.SHUT_RDWR)
        else:
            handler.send({"ok": True})

    return behave


def test_a_lost_connection_is_retried_once_where_that_is_safe(serve: Serve) -> None:
    server = serve(dropping(1))
    assert ask(client(server.url)) == {"ok": True}
    assert len(server.seen) == 2
    server = serve(dropping(2))
    assert failure(client(server.url)).reason == "down"
    assert len(server.seen) == 2


def test_a_lost_connection_is_not_retried_where_an_answer_costs(serve: Serve) -> None:
    server = serve(dropping(1))
    assert failure(client(server.url, RETRY_CAREFUL)).reason == "down"
    assert len(server.seen) == 1


def test_a_connection_lost_within_the_answer_is_not_retried(serve: Serve) -> None:
    def behave(handler: Handler, seen: Seen) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
        handler.close_connection = True

    server = serve(behave)
    assert failure(client(server.url)).reason == "down"
    assert len(server.seen) == 1


def test_a_refused_connection_is_down() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        error = failure(client(url))
    assert (error.reason, error.is_permanent) == ("down", False)


@pytest.mark.parametrize(
    ("retry", "status", "after", "calls"),
    [
        (RETRY_IDEMPOTENT, 503, "0", 2),
        (RETRY_IDEMPOTENT, 503, "60", 1),
        (RETRY_IDEMPOTENT, 503, None, 1),
        (RETRY_IDEMPOTENT, 429, "0", 1),
        (RETRY_IDEMPOTENT, 500, "0", 1),
        (RETRY_CAREFUL, 503, "0", 2),
        (RETRY_CAREFUL, 429, "0", 2),
        (RETRY_CAREFUL, 429, "60", 1),
        (RETRY_CAREFUL, 500, "0", 1),
    ],
)
def test_busy_targets_are_asked_again_when_the_wait_fits(
    serve: Serve, retry: RetryPolicy, status: int, after: str | None, calls: int
) -> None:
    headers = {} if after is None else {"Retry_After": after}
    server = serve(lambda handler, seen: handler.send({}, status, **headers))
    failure(client(server.url, retry))
    assert len(server.seen) == calls


@pytest.mark.parametrize(
    ("status", "headers", "reason", "is_permanent"),
    [
        (400, {}, "refused", True),
        (401, {}, "misconfigured", True),
        (403, {}, "misconfigured", True),
        (404, {}, "misconfigured", True),
        (405, {}, "misconfigured", True),
        (408, {}, "slow", False),
        (413, {}, "too_long", True),
        (422, {}, "refused", True),
        (429, {}, "busy", False),
        (500, {}, "down", False),
        (502, {}, "down", False),
        (503, {}, "down", False),
        (503, {"Retry_After": "60"}, "busy", False),
        (504, {}, "slow", False),
        (304, {}, "misconfigured", True),
    ],
)
def test_reasons_by_status(
    serve: Serve, status: int, headers: dict[str, str], reason: str, is_permanent: bool
) -> None:
    server = serve(lambda handler, seen: handler.send({}, status, **headers))
    error = failure(client(server.url))
    assert (error.reason, error.is_permanent) == (reason, is_permanent)
    assert error.retry_after == (60 if headers else None)


def test_the_targets_own_words_are_passed_on_in_short(serve: Serve) -> None:
    said = {"error": {"code": "x", "message": "too\nlong " + "y" * 500, "fields": {}}}
    server = serve(lambda handler, seen: handler.send(said, 422))
    message = str(failure(client(server.url)))
    assert "too long yyy" in message
    assert len(message) < 300


@pytest.mark.parametrize("text", ["", "soon", "²", "-1", "1.5.1"])
def test_a_retry_after_that_is_none(text: str) -> None:
    assert parse_retry_after({"retry-after": text}) is None


def test_retry_after_reads_seconds_and_dates() -> None:
    assert parse_retry_after({"retry-after": "7"}) == 7
    assert parse_retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0
    later = parse_retry_after({"retry-after": "Wed, 21 Oct 2115 07:28:00 GMT"})
    assert later is not None
    assert later > 1e9
    assert parse_retry_after({}) is None
    assert parse_retry_after({"retry-after-ms": "250", "retry-after": "1"}) == 0.25
    assert parse_retry_after({"retry-after-ms": "soon", "retry-after": "1"}) == 1


def test_what_is_not_http_is_rubbish(serve: Serve) -> None:
    def behave(handler: Handler, seen: Seen) -> None:
        handler.wfile.write(b"220 mail.example ESMTP\r\n")
        handler.close_connection = True

    assert failure(client(serve(behave).url)).reason == "rubbish"


@pytest.mark.parametrize(("seconds", "least", "most"), [(5.0, 1.0, 5.0), (9000.0, 3600.0, 3600.0)])
def test_the_target_is_told_how_long_we_wait(
    serve: Serve, seconds: float, least: float, most: float
) -> None:
    server = serve(lambda handler, seen: handler.send({}))
    ask(client(server.url), seconds)
    assert least <= float(server.seen[0].headers["X-Deadline-Seconds"]) <= most


@pytest.mark.parametrize(("forgets", "opened"), [(False, 1), (True, 2)])
def test_connections_are_kept_alive_until_forgotten(
    serve: Serve, forgets: bool, opened: int
) -> None:
    ports = []

    def behave(handler: Handler, seen: Seen) -> None:
        ports.append(handler.client_address[1])
        handler.send({})

    transport = Transport()
    target = client(serve(behave).url, transport=transport)
    ask(target)
    if forgets:
        transport.drop_connections()
    ask(target)
    assert len(set(ports)) == opened
