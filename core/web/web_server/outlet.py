"""Send data to one client: the thread that handles a request writes, the loop sends the rest."""

import errno
import os
import select
import socket
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from tempfile import TemporaryFile
from threading import Lock
from typing import IO

from .limits import MAX_FILE_SPOOLED_BYTES, MAX_IN_MEMORY_BYTES, MIB, compute_send_deadline

MAX_BYTES_AT_ONCE = 4 * MIB
"""The maximum part of a file that one call sends, so that other clients get their turn."""


class TooSlow(ConnectionResetError):
    """Raised if a client is too slow. gunicorn logs it like a client that disconnected."""

    def __init__(self) -> None:
        super().__init__(errno.ECONNRESET, "The client is too slow")


@dataclass
class OutgoingPart:
    """The part of a file that remains to be sent.

    is_spool: whether the file is the outlet's own spool, which stays open.
    """

    descriptor: int
    offset: int
    remaining_bytes: int
    is_spool: bool = False


class SlowReaders:
    """A limit on threads that wait for clients to read.

    Beyond it, the slowest client is dropped.
    """

    def __init__(self, max_readers: int) -> None:
        self._max_readers = max_readers
        self._lock = Lock()
        self._waiting_outlets: list[Outlet] = []

    def enter(self, outlet: "Outlet") -> None:
        with self._lock:
            if len(self._waiting_outlets) >= self._max_readers:
                slowest = min(self._waiting_outlets, key=Outlet.rate)
                self._waiting_outlets.remove(slowest)
                slowest.give_up()
            self._waiting_outlets.append(outlet)

    def leave(self, outlet: "Outlet") -> None:
        with self._lock:
            if outlet in self._waiting_outlets:
                self._waiting_outlets.remove(outlet)


class Outlet:
    """A replacement for the socket while gunicorn writes the response.

    Two threads never write at once: the loop takes over only when the request has been handled. A
    thread waits only while more than MAX_FILE_SPOOLED_BYTES of its response are unread.
    """

    def __init__(self, sock: socket.socket, readers: SlowReaders) -> None:
        self._sock = sock
        self._readers = readers
        self._pending: deque[bytes | OutgoingPart] = deque()
        self._in_memory_bytes = 0
        self._spool: IO[bytes] | None = None
        self.spooled_bytes = 0
        self.is_broken = False
        self._start_measuring()

    def _start_measuring(self) -> None:
        """Start measuring how fast the client reads, when it first leaves a part unread."""
        self._began_at = self._progressed_at = time.monotonic()
        self._sent_bytes = 0

    def _record_sent(self, sent: int) -> None:
        """Record that the client read `sent` bytes."""
        self._sent_bytes += sent
        self._progressed_at = time.monotonic()

    def rate(self) -> float:
        """Return the bytes per second that the client has read since it first lagged behind."""
        return self._sent_bytes / (time.monotonic() - self._began_at + 1)

    @property
    def has_pending(self) -> bool:
        return bool(self._pending)

    @property
    def deadline(self) -> float:
        return compute_send_deadline(self._began_at, self._sent_bytes, self._progressed_at)

    # What gunicorn calls

    def sendall(self, data: bytes) -> None:
        """Send as much as the socket accepts. The loop sends the unsent bytes later.

        While more than MAX_FILE_SPOOLED_BYTES are unread, blocks the thread. Raises TooSlow if the
        client does not read them in time.
        """
        self.flush()
        if not self._pending:
            data = data[self._send(data) :]
        if data:
            self._keep_unsent(data)

    send = sendall

    def sendfile(self, file: IO[bytes], offset: int = 0, count: int = 0) -> None:
        """Send a part of a file, or leave it to the loop without blocking the thread."""
        if not self._pending:
            self._start_measuring()
        # The view's file is closed with its response, before the loop has sent it.
        self._pending.append(OutgoingPart(os.dup(file.fileno()), offset, count))
        self.flush()

    def gettimeout(self) -> float:
        return 0.0

    def setblocking(self, flag: bool) -> None:
        """Do nothing, because this socket never blocks."""

    settimeout = setblocking

    def shutdown(self, how: int) -> None:
        """Mark the response as broken, so that the loop closes the connection."""
        self.is_broken = True

    def recv(self, size: int) -> bytes:
        return b""

    def close(self) -> None:
        """Do nothing, because the loop closes the connection."""

    # What the loop calls

    def flush(self) -> None:
        """Send as much pending data as the socket accepts. Raises OSError after a disconnect."""
        if self.is_broken:
            raise TooSlow
        while self._pending:
            first_piece = self._pending[0]
            if isinstance(first_piece, OutgoingPart):
                if not self._flush_part(first_piece):
                    return
            else:
                sent_bytes = self._send(first_piece)
                self._in_memory_bytes -= sent_bytes
                if sent_bytes < len(first_piece):
                    self._pending[0] = first_piece[sent_bytes:]
                    return
            self._pending.popleft()

    def give_up(self) -> None:
        """Mark the response as broken, and wake the thread that waits for this client."""
        self.is_broken = True
        with suppress(OSError):
            # Not closed: the thread still polls it. This wakes the thread at once.
            self._sock.shutdown(socket.SHUT_RDWR)

    def drop(self) -> None:
        """Discard the unsent data and close its files."""
        self.is_broken = True
        for piece in self._pending:
            if isinstance(piece, OutgoingPart) and not piece.is_spool:
                os.close(piece.descriptor)
        self._pending.clear()
        if self._spool:
            self._spool.close()
            self._spool = None
        self._in_memory_bytes = self.spooled_bytes = 0

    def _send(self, data: bytes) -> int:
        """Send bytes; return how many the system accepted."""
        try:
            sent_bytes = self._sock.send(data)
        except BlockingIOError:
            return 0
        self._record_sent(sent_bytes)
        return sent_bytes

    def _flush_part(self, piece: OutgoingPart) -> bool:
        """Send up to MAX_BYTES_AT_ONCE from a file; return whether the part is finished.

        Raises TooSlow if the file has become shorter.
        """
        # The loop sends for all clients, and a fast one would keep it to the file's end.
        end = piece.remaining_bytes - MAX_BYTES_AT_ONCE
        while piece.remaining_bytes > max(0, end):
            size = min(piece.remaining_bytes, MAX_BYTES_AT_ONCE)
            try:
                sent_bytes = os.sendfile(self._sock.fileno(), piece.descriptor, piece.offset, size)
            except BlockingIOError:
                return False
            if not sent_bytes:
                raise TooSlow  # the file became shorter: the length that was announced never comes
            piece.offset += sent_bytes
            piece.remaining_bytes -= sent_bytes
            self._record_sent(sent_bytes)
        if piece.remaining_bytes:
            return False
        self._close(piece)
        return True

    def _close(self, piece: OutgoingPart) -> None:
        if not piece.is_spool:
            os.close(piece.descriptor)
        elif self._spool and not any(
            isinstance(other, OutgoingPart) and other.is_spool and other is not piece
            for other in self._pending
        ):
            # Nothing in it is left to send, so a long stream does not fill the disk.
            self._spool.truncate(0)
            self.spooled_bytes = 0

    def _keep_unsent(self, data: bytes) -> None:
        if not self._pending:
            self._start_measuring()
        last = self._pending[-1] if self._pending else None
        is_spooling = isinstance(last, OutgoingPart) and last.is_spool
        # What follows a spooled piece is spooled, too, which keeps the order.
        if not is_spooling and self._in_memory_bytes + len(data) <= MAX_IN_MEMORY_BYTES:
            self._pending.append(bytes(data))
            self._in_memory_bytes += len(data)
            return
        self._write_to_spool(data)
        if self.spooled_bytes > MAX_FILE_SPOOLED_BYTES:
            self._wait_until_read()

    def _write_to_spool(self, data: bytes) -> None:
        if self._spool is None:
            self._spool = TemporaryFile(buffering=0)  # noqa: SIM115 - as long as the connection
        last_piece = self._pending[-1] if self._pending else None
        if not (isinstance(last_piece, OutgoingPart) and last_piece.is_spool):
            last_piece = OutgoingPart(self._spool.fileno(), self.spooled_bytes, 0, is_spool=True)
            self._pending.append(last_piece)
        view = memoryview(data)
        while view:
            # Where a disk gets full it writes less than it was given.
            written_bytes = os.pwrite(self._spool.fileno(), view, self.spooled_bytes)
            self.spooled_bytes += written_bytes
            last_piece.remaining_bytes += written_bytes
            view = view[written_bytes:]

    def _wait_until_read(self) -> None:
        """Block the thread until the client has read everything. Raises TooSlow."""
        poll = select.poll()
        poll.register(self._sock, select.POLLOUT)
        self._readers.enter(self)
        try:
            while self._pending:
                remaining_seconds = self.deadline - time.monotonic()
                if remaining_seconds <= 0 or not poll.poll(remaining_seconds * 1000):
                    raise TooSlow
                self.flush()
        finally:
            self._readers.leave(self)
