"""The worker of gunicorn: what slow clients may cost, and HTTP as clients speak it."""

import os
import signal
import time

import pytest

from tests.support.live import wait_until
from tests.support.slow_clients import (
    NEVER,
    Server,
    has_failed,
    is_open,
    read_all,
    read_answer,
    small_site,
    until_closed,
)
from tests.support.small_site import FILE

MANY = 200
QUICK_STOP = ("--graceful-timeout", "1")
HOST = b"Host: localhost\r\n"
GET = b"GET /hello HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
POST = b"POST /echo HTTP/1.1\r\n" + HOST
BEGUN = {
    "nothing": b"",
    "half a head": b"POST /echo HTTP/1.1\r\nHost: loc",
    "no body": POST + b"Content-Length: 1000\r\n\r\n",
    "half a body": POST + b"Content-Length: 1000\r\n\r\nabc",
    "almost all": POST + b"Content-Length: 100000\r\n\r\n" + b"a" * 99_000,
    "awaits 100": POST + b"Expect: 100-continue\r\nContent-Length: 10\r\n\r\n",
    "two, half": GET.replace(b"Connection: close\r\n", b"") + b"GET /hello",
    "keeps": GET.replace(b"Connection: close\r\n", b""),
    "reads no stream": b"GET /stream?8 HTTP/1.1\r\n" + HOST + b"\r\n",
    "reads no file": b"GET /file HTTP/1.1\r\n" + HOST + b"\r\n",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with small_site(tmp_path_factory.mktemp("server"), **NEVER) as site:
        yield site


@pytest.mark.parametrize("begun", BEGUN.values(), ids=BEGUN)
def test_slow_clients_take_no_thread(server, begun):
    """With a thread for each, four of them stop the site."""
    slow = [server.connect(small_window=True) for _ in range(MANY)]
    for client in slow:
        client.sendall(begun)
    for _ in range(3):
        assert b'{"path": "/hello"}' in server.ask(GET)
        body = POST + b"Connection: close\r\nContent-Length: 5\r\n\r\nhello"
        assert b'"bytes": 5' in server.ask(body)
    answers = begun == b"" or b"HTTP/1.1\r\n" + HOST not in begun or begun.startswith(POST)
    assert not answers or b"Expect" in begun or all(map(is_open, slow))
    for client in slow:
        client.close()


def test_one_who_drips_is_served_in_the_end(server):
    whole = POST + b"Content-Length: 5\r\n\r\nhello"
    with server.connect() as client:
        for byte in whole:
            client.sendall(bytes([byte]))
            time.sleep(0.001)
        assert read_answer(client) == (200, {"bytes": 5, "sum": sum(b"hello") % 251, "said": 5})


@pytest.mark.parametrize("size", [0, 1, 70_000, 2_621_440, 2_621_441, 5_000_000])
@pytest.mark.parametrize("expect", [b"", b"Expect: 100-continue\r\n"])
def test_bodies_of_each_size_arrive_whole_and_the_connection_stays(server, size, expect):
    body = bytes(range(250)) * (size // 250 + 1)
    head = POST + expect + b"Content-Length: %d\r\n\r\n" % size
    with server.connect() as client:
        for _ in range(2):
            client.sendall(head)
            if expect and size:
                assert client.recv(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
            client.sendall(body[:size])
            said = {"bytes": size, "sum": sum(body[:size]) % 251, "said": size}
            assert read_answer(client) == (200, said)


def test_requests_in_a_row_are_answered_in_turn(server):
    kept = GET.replace(b"Connection: close\r\n", b"")
    with server.connect() as client:
        client.sendall(kept + POST + b"Content-Length: 3\r\n\r\nabc" + kept + GET)
        paths = [read_answer(client)[1] for _ in range(4)]
        assert [one.get("bytes") for one in paths] == [None, 3, None, None]
        assert client.recv(1) == b""


def test_a_chunked_body_is_read(server):
    chunks = b"5\r\nhello\r\n3\r\nabc\r\n0\r\n\r\n"
    head = POST + b"Transfer-Encoding: chunked\r\n\r\n"
    assert b'"bytes": 8' in server.ask(head + chunks)


def test_http_1_0_is_answered_and_closed(server):
    assert b"200 OK" in server.ask(b"GET /hello HTTP/1.0\r\n\r\n")
    body = b"POST /echo HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc"
    assert b'"bytes": 3' in server.ask(body)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (POST + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400),
        (POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc", 400),
        (POST + b"Content-Length: -1\r\n\r\n", 400),
        (POST + b"Content-Length: x\r\n\r\n", 400),
        (POST + b"Transfer-Encoding: gzip\r\n\r\n", 400),
        (POST + b"Expect: coffee\r\nContent-Length: 1\r\n\r\na", 417),
        (b"\r\n\r\n\r\n", 400),
        (b"nonsense\r\n\r\n", 400),
        (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\n" + b"A: " + b"b" * 70_000, 431),
        (b"GET / HTTP/1.1\r\n" + HOST + b"A: b\r\n" * 200 + b"\r\n", 431),
    ],
)
def test_what_is_no_request_is_refused_at_once(server, request_, status):
    assert server.ask(request_).startswith(b"HTTP/1.1 %d " % status)


def test_what_is_not_read_is_not_waited_for(server):
    """A refusal comes before the body, and the connection then ends."""
    for size in (3_000_000, 10**12):
        head = b"POST /refuse HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n" % size
        assert b'{"refused": %d}' % size in server.ask(head)
        asked = head.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n")
        assert server.ask(asked).startswith(b"HTTP/1.1 413 ")


def test_one_who_leaves_is_forgotten(server):
    for begun in BEGUN.values():
        client = server.connect()
        client.sendall(begun)
        client.close()
    assert b"200 OK" in server.ask(GET)
    assert b"Traceback" not in server.log.read_bytes()


def test_long_answers_arrive_whole(server):
    streamed = server.ask(b"GET /stream?70 HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n")
    assert len(streamed) > 70 * 2**20
    with server.connect() as client:
        client.sendall(b"GET /file HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n")
        server.ask(GET)  # the answer before waits for its reader
        _, _, body = read_all(client).partition(b"\r\n\r\n")
        assert body == FILE


def test_events_come_as_they_are_made(server):
    with server.connect() as client:
        client.sendall(b"GET /events HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n")
        found = b""
        while b"first" not in found:
            found += client.recv(1000)
        server.ask(GET.replace(b"/hello", b"/open"))
        assert b"data: last" in read_all(client)


def test_an_answer_that_fails_halfway_ends(server):
    said = server.ask(GET.replace(b"/hello", b"/broken"))
    assert said.endswith(b"half")


def test_time_is_over_for_each_kind_of_slow_client(tmp_path):
    short = {"HEAD_SECONDS": 0.3, "BODY_GRACE_SECONDS": 0.3, "SEND_GRACE_SECONDS": 0.3}
    short |= {
        "UPLOAD_GRACE_SECONDS": 0.3,
        "LINGER_SECONDS": 0.3,
        "MIN_SEND_BYTES_PER_SECOND": 1e12,
        "MIN_BODY_BYTES_PER_SECOND": 1e12,
    }
    with small_site(tmp_path, **short) as server:
        for name, begun in BEGUN.items():
            with server.connect(small_window=True) as client:
                client.sendall(begun)
                if name.startswith("reads"):
                    wait_until(lambda client=client: has_failed(client))
                    continue
                said = until_closed(client)
                assert name in ("nothing", "keeps") or b" 408 " in said, name
        upload = POST + b"Content-Length: 3000000\r\n\r\nabc"
        with server.connect() as client:
            client.sendall(upload)
            until_closed(client)
        assert b"200 OK" in server.ask(GET)


@pytest.mark.parametrize("path", [b"/file", b"/stream?16"])
def test_one_who_reads_for_longer_than_a_head_may_take_gets_all(tmp_path, path):
    """The deadline of the request's head must not end a long download."""
    limits = {**NEVER, "HEAD_SECONDS": 0.2}
    with small_site(tmp_path, **limits) as server, server.connect(small_window=True) as client:
        client.sendall(b"GET " + path + b" HTTP/1.0\r\n\r\n")
        begun = client.recv(1)
        time.sleep(1.5)  # the loop looks four times a second
        answer = begun + read_all(client)
    assert len(answer.partition(b"\r\n\r\n")[2]) == 2**24


def test_the_oldest_slow_ones_go_first_when_an_address_has_too_many(tmp_path):
    with small_site(tmp_path, **NEVER, MAX_CONNECTIONS_PER_ADDRESS=20) as server:
        slow = []
        for _ in range(30):
            slow.append(server.connect())
            slow[-1].sendall(BEGUN["half a body"])
            assert b"200 OK" in server.ask(GET)
        assert not any(map(is_open, slow[:10]))
        assert all(map(is_open, slow[-15:]))
        for client in slow:
            client.close()


def test_the_oldest_slow_ones_go_first_when_the_server_is_full(tmp_path):
    with small_site(tmp_path, "--worker-connections", "20", **NEVER) as server:
        slow = []
        for _ in range(30):
            slow.append(server.connect())
            slow[-1].sendall(BEGUN["half a body"])
            assert b"200 OK" in server.ask(GET)
        assert not any(map(is_open, slow[:10]))
        assert all(map(is_open, slow[-15:]))


def test_slow_uploads_leave_threads_to_others(tmp_path):
    with small_site(tmp_path, *QUICK_STOP, **NEVER) as server:
        slow = [server.connect() for _ in range(20)]
        for client in slow:
            client.sendall(POST + b"Content-Length: 3000000\r\n\r\nabc")
        assert b"200 OK" in server.ask(GET)
        assert all(map(is_open, slow))


def test_slow_readers_of_endless_answers_leave_threads_to_others(tmp_path):
    with small_site(tmp_path, *QUICK_STOP, **NEVER, MAX_SPOOLED_BYTES=2**20) as server:
        slow = [server.connect(small_window=True) for _ in range(20)]
        for client in slow:
            client.sendall(b"GET /stream?64 HTTP/1.1\r\n" + HOST + b"\r\n")
        assert b"200 OK" in server.ask(GET)


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGHUP])
def test_a_stop_finishes_what_was_begun(tmp_path, kind):
    with small_site(tmp_path, **NEVER) as server:
        assert b"200 OK" in server.ask(GET)
        with server.connect() as busy, server.connect() as sending, server.connect() as idle:
            busy.sendall(GET.replace(b"/hello", b"/slow"))
            sending.sendall(POST + b"Content-Length: 5\r\n\r\nhel")
            idle.sendall(GET.replace(b"Connection: close\r\n", b""))
            assert read_answer(idle)[0] == 200
            os.kill(server.process.pid, kind)
            assert b"200 OK" in read_all(busy)
            sending.sendall(b"lo")
            assert b'"bytes": 5' in read_all(sending)
            assert idle.recv(1) == b""
        if kind == signal.SIGTERM:
            wait_until(lambda: server.process.poll() is not None)
        else:
            assert b"200 OK" in server.ask(GET)


def test_a_worker_that_has_served_enough_is_replaced(tmp_path):
    with small_site(tmp_path, "--max-requests", "5", **NEVER) as server:
        for _ in range(12):
            assert b"200 OK" in server.ask(GET)
        wait_until(lambda: server.log.read_bytes().count(b"Booting worker") > 2)


def test_the_server_has_no_socket_for_commands(server: Server):
    assert b"Worker" in server.log.read_bytes()
