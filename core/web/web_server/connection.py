"""One client's connection: what has arrived of its request, and whether it is too slow."""

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
    HEAD_SECONDS,
    KIB,
    LINGER_SECONDS,
    MAX_BUFFERED_BYTES,
    MAX_HEAD_BYTES,
    compute_body_deadline,
    compute_upload_deadline,
)
from .outlet import Outlet, SlowReaders, TooSlow

RECEIVE_BYTES = 256 * KIB
# SO_LINGER of no seconds: closing drops unsent bytes and resets the connection.
RESET_OPTION = struct.pack("ii", 1, 0)
CONTINUE_RESPONSE = b"HTTP/1.1 100 Continue\r\n\r\n"


class State(Enum):
    """The state of a connection. Only a `HANDLED` one occupies a thread or waits for one."""

    RECEIVING = "receiving"
    WAITING = "waiting"
    HANDLED = "handled"
    SENDING = "sending"
    LINGERING = "lingering"
    CLOSED = "closed"


class HeadTooLarge(Exception):
    """Raised if the head of a request exceeds the limit."""


class Connection:
    """A client's socket, with the attributes that gunicorn's `handle` requires of a connection."""

    # Otherwise `handle` would wait for data in the thread.
    initialized = data_ready = True
    is_http2 = False

    def __init__(
        self, cfg: Any, raw_socket: socket.socket, client: Any, readers: SlowReaders
    ) -> None:
        raw_socket.setblocking(False)
        self.raw_socket = raw_socket
        self.cfg, self.client, self.server = cfg, client, raw_socket.getsockname()
        self.sock = Outlet(raw_socket, readers)
        self.parser: Iterator[Any] = iter(())
        self.state = State.RECEIVING
        self._requests = 0
        self.received = bytearray()
        self.lingered_bytes = 0
        self.is_kept = False
        self.expect_request(HEAD_SECONDS)

    @property
    def address(self) -> str:
        """Return the peer's IP address; "" for a Unix socket."""
        return self.client[0] if isinstance(self.client, tuple) else ""

    @property
    def is_idle(self) -> bool:
        """Return whether the connection waits for the first byte of another request."""
        return bool(self._requests) and not self.received and self.request is None

    def init(self) -> None:
        """Do nothing, because everything that gunicorn would prepare here is ready."""

    def expect_request(self, seconds: float) -> None:
        """Reset the state, and allow `seconds` until the first byte of another request."""
        self.state = State.RECEIVING
        self.request: Any = None
        self.length = 0
        self.is_large = False
        self._searched_bytes = 0
        self.began_at = time.monotonic()
        self.deadline = self.began_at + seconds

    def receive(self) -> bool:
        """Read available bytes; return False if the client has closed the connection."""
        try:
            data = self.raw_socket.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return True
        if data and not self.received and self.request is None:
            self.began_at = time.monotonic()
            self.deadline = self.began_at + HEAD_SECONDS
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
        self.deadline = compute_body_deadline(self.began_at, len(self.received), time.monotonic())
        if self.request._expected_100_continue:
            self.request._expected_100_continue = False
            # A client that sends already does not wait for it.
            if not self.received:
                self.sock.sendall(CONTINUE_RESPONSE)
        return False

    def _has_head(self) -> bool:
        head_end = self.received.find(b"\r\n\r\n", self._searched_bytes)
        # The end of a head may arrive in two pieces. Nothing else is searched twice.
        self._searched_bytes = max(0, len(self.received) - 3)
        if head_end < 0 and len(self.received) > MAX_HEAD_BYTES:
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
        self.is_large = not is_sized or self.length > MAX_BUFFERED_BYTES

    def begin_handling(self) -> None:
        """Have `parser` yield the request, with the part of its body that has arrived."""
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
        """Have gunicorn respond to an invalid head with an error. error: the parser's exception."""
        self.state = State.HANDLED
        self.received.clear()
        self.parser = _raise_later(error)

    def end_handling(self) -> bool:
        """Return whether the whole body was read, so that another request may follow.

        Bytes of a next request that have already arrived are kept.
        """
        if not self.is_large:
            return True
        reader = self.request.body.reader
        if not isinstance(reader, LengthReader) or reader.length or self.request.body.failed:
            return False
        self.received += self._source.take_buffered()
        return True

    def linger(self) -> None:
        """Shut down sending, but keep reading, or the client might lose our response."""
        self.state = State.LINGERING
        self.deadline = time.monotonic() + LINGER_SECONDS
        self.received.clear()
        self.raw_socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close the socket. Discard the unsent part of a response, even in the kernel's buffer."""
        if self.sock.has_pending:
            self.raw_socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_OPTION)
        self.state = State.CLOSED
        self.sock.drop()
        self.received.clear()
        self.raw_socket.close()


def _raise_later(error: Exception) -> Iterator[Any]:
    raise error
    # Makes this a generator, so that the error is raised where `handle` asks for a request.
    yield


class Source(Unreader):  # type: ignore[misc]
    """The reader for gunicorn's parser: the received bytes, then a large body as it arrives."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._sock = connection.raw_socket
        self._outlet = connection.sock
        self._may_wait = False
        self._must_send_continue = False

    def begin(self, request: Any) -> None:
        """Start to read the body: from now on `chunk` waits for data."""
        self._may_wait = True
        self._must_send_continue = request._expected_100_continue
        request._expected_100_continue = False
        self._began_at = self._progressed_at = time.monotonic()
        self._received_bytes = 0

    def chunk(self, size_hint: int | None = None) -> bytes:
        """Return more of the body; b"" if the client closed the connection or no body is expected.

        Raises TooSlow.
        """
        if not self._may_wait:
            return b""
        # Only now somebody wants the body: before, a refusal spares the client the upload.
        if self._must_send_continue:
            self._must_send_continue = False
            self._outlet.sendall(CONTINUE_RESPONSE)
        poll = select.poll()
        poll.register(self._sock, select.POLLIN)
        remaining_seconds = (
            compute_upload_deadline(self._began_at, self._received_bytes, self._progressed_at)
            - time.monotonic()
        )
        if remaining_seconds <= 0 or not poll.poll(remaining_seconds * 1000):
            raise TooSlow
        data = self._sock.recv(max(8 * KIB, min(size_hint or 0, RECEIVE_BYTES)))
        self._received_bytes += len(data)
        self._progressed_at = time.monotonic()
        return data
