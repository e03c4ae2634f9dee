"""One client: what has come of its request, and when it is too slow."""

import select
import socket
import struct
import time
from collections.abc import Iterator
from enum import Enum
from io import BytesIO
from typing import Any

from gunicorn.http.body import Body, LengthReader
from gunicorn.http.message import Request
from gunicorn.http.unreader import Unreader

from .limits import (
    BUFFERED_BYTES,
    HEAD_BYTES,
    HEAD_SECONDS,
    KIB,
    LINGER_SECONDS,
    body_deadline,
    upload_deadline,
)
from .outlet import Outlet, Readers, TooSlow

RECEIVE_BYTES = 256 * KIB
# SO_LINGER of no seconds: closing drops unsent bytes and resets the connection.
RESET = struct.pack("ii", 1, 0)
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class State(Enum):
    """The state of a connection. Only a `HANDLED` one has a thread or waits for one."""

    RECEIVING = "receiving"
    WAITING = "waiting"
    HANDLED = "handled"
    SENDING = "sending"
    LINGERING = "lingering"
    CLOSED = "closed"


class HeadTooLarge(Exception):
    """Raised for a request head that exceeds the limit."""


class Connection:
    """A client's socket, with the attributes that gunicorn's `handle` needs of a connection."""

    # Otherwise `handle` would wait for data in the thread.
    initialized = data_ready = True
    is_http2 = False

    def __init__(self, cfg: Any, plain: socket.socket, client: Any, readers: Readers) -> None:
        plain.setblocking(False)
        self.plain = plain
        self.cfg, self.client, self.server = cfg, client, plain.getsockname()
        self.sock = Outlet(plain, readers)
        self.parser: Iterator[Any] = iter(())
        self.state = State.RECEIVING
        self._requests = 0
        self.received = bytearray()
        self.lingered = 0
        self.is_kept = False
        self.expect_request(HEAD_SECONDS)

    @property
    def address(self) -> str:
        """Return the peer's IP address; "" for a Unix socket."""
        return self.client[0] if isinstance(self.client, tuple) else ""

    @property
    def is_idle(self) -> bool:
        """Return whether the connection waits for another request, and nothing of it has come."""
        return bool(self._requests) and not self.received and self.request is None

    def init(self) -> None:
        """Do nothing, because what gunicorn would prepare here is ready."""

    def expect_request(self, seconds: float) -> None:
        """Reset the state, and allow `seconds` until the first byte of another request."""
        self.state = State.RECEIVING
        self.request: Any = None
        self.length = 0
        self.is_large = False
        self._searched = 0
        self.began = time.monotonic()
        self.deadline = self.began + seconds

    def receive(self) -> bool:
        """Read available bytes; return False if the client has closed the connection."""
        try:
            data = self.plain.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return True
        if data and not self.received and self.request is None:
            self.began = time.monotonic()
            self.deadline = self.began + HEAD_SECONDS
        self.received += data
        return bool(data)

    def is_complete(self) -> bool:
        """Return whether a thread can handle the request.

        Raises the exceptions of gunicorn's parser for a malformed head.
        """
        if self.request is None and not self._has_head():
            return False
        if self.request is None:
            self._parse_head()
        # A large body is not received here: it would lie in memory, and a view may refuse it.
        if self.is_large or len(self.received) >= self.length:
            return True
        self.deadline = body_deadline(self.began, len(self.received), time.monotonic())
        if self.request._expected_100_continue:
            self.request._expected_100_continue = False
            # A client that sends already does not wait for it.
            if not self.received:
                self.sock.sendall(CONTINUE)
        return False

    def _has_head(self) -> bool:
        head_end = self.received.find(b"\r\n\r\n", self._searched)
        # The end of a head may arrive in two pieces. Nothing else is searched twice.
        self._searched = max(0, len(self.received) - 3)
        if head_end < 0 and len(self.received) > HEAD_BYTES:
            raise HeadTooLarge
        return head_end >= 0

    def _parse_head(self) -> None:
        source = Source(self)
        source.unread(bytes(self.received))
        self.received.clear()
        self._requests += 1
        self.request = Request(self.cfg, source, self.client, self._requests)
        self.received += source.take_buffered()
        self._source = source
        reader = self.request.body.reader
        # A chunked body has no length: the site refuses it unread.
        self.length = reader.length if isinstance(reader, LengthReader) else 0
        is_sized = isinstance(reader, LengthReader)
        self.is_large = not is_sized or self.length > BUFFERED_BYTES

    def begin_handling(self) -> None:
        """Pass the request to `parser`, with the part of its body that has arrived."""
        self.state = State.HANDLED
        if self.is_large:
            self._source.begin(self.request)
            self._source.unread(bytes(self.received))
            self.received.clear()
        else:
            body = bytes(self.received[: self.length])
            del self.received[: self.length]
            self.request.body = Body(BytesIO(body))
            self.request._expected_100_continue = False  # it has come without
        self.parser = iter((self.request,))

    def fail(self, error: Exception) -> None:
        """Have gunicorn answer with the error in the head."""
        self.state = State.HANDLED
        self.received.clear()
        self.parser = _raised(error)

    def end_handling(self) -> bool:
        """Return whether the whole body was read, so that another request may follow."""
        if not self.is_large:
            return True
        reader = self.request.body.reader
        if not isinstance(reader, LengthReader) or reader.length or self.request.body.failed:
            return False
        self.received += self._source.take_buffered()
        return True

    def linger(self) -> None:
        """Shut down sending. Incoming bytes are still read, or the client might lose our answer."""
        self.state = State.LINGERING
        self.deadline = time.monotonic() + LINGER_SECONDS
        self.received.clear()
        self.plain.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close the socket. Unread parts of an answer are dropped, even in the kernel's buffer."""
        if self.sock.has_pending:
            self.plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.state = State.CLOSED
        self.sock.drop()
        self.received.clear()
        self.plain.close()


def _raised(error: Exception) -> Iterator[Any]:
    raise error
    # Makes this a generator, so that the error is raised where `handle` asks for a request.
    yield


class Source(Unreader):  # type: ignore[misc]
    """The reader for gunicorn's parser: the received bytes, then a large body as it arrives."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._sock = connection.plain
        self._outlet = connection.sock
        self._may_wait = False
        self._says_continue = False

    def begin(self, request: Any) -> None:
        """Wait for the body from now on, whenever it is read."""
        self._may_wait = True
        self._says_continue = request._expected_100_continue
        request._expected_100_continue = False
        self._began = self._moved = time.monotonic()
        self._got = 0

    def chunk(self, size_hint: int | None = None) -> bytes:
        """Return more of the body; empty if the client closed the connection. Raises TooSlow."""
        if not self._may_wait:
            return b""
        # Only now somebody wants the body: before, a refusal spares the client the upload.
        if self._says_continue:
            self._says_continue = False
            self._outlet.sendall(CONTINUE)
        poll = select.poll()
        poll.register(self._sock, select.POLLIN)
        left = upload_deadline(self._began, self._got, self._moved) - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            raise TooSlow
        data = self._sock.recv(max(8 * KIB, min(size_hint or 0, RECEIVE_BYTES)))
        self._got += len(data)
        self._moved = time.monotonic()
        return data
