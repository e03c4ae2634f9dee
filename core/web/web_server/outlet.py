"""What is sent to one client: the thread that answers writes, the loop sends what is left."""

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

from .limits import HELD_BYTES, MIB, SPOOLED_BYTES, send_deadline

AT_ONCE = 4 * MIB
"""Bytes of a file that one call sends, so that others have their turn."""


class TooSlow(ConnectionResetError):
    """Raised for a client that is too slow; gunicorn logs it like one that disconnected."""

    def __init__(self) -> None:
        super().__init__(errno.ECONNRESET, "The client is too slow")


@dataclass
class Outgoing:
    """The part of a file that remains to be sent."""

    descriptor: int
    offset: int
    left: int
    is_spool: bool = False


class Readers:
    """A limit on threads that wait for clients to read; above it the slowest client is dropped."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = Lock()
        self._waiting: list[Outlet] = []

    def enter(self, outlet: "Outlet") -> None:
        with self._lock:
            if len(self._waiting) >= self._most:
                slowest = min(self._waiting, key=Outlet.rate)
                self._waiting.remove(slowest)
                slowest.give_up()
            self._waiting.append(outlet)

    def leave(self, outlet: "Outlet") -> None:
        with self._lock:
            if outlet in self._waiting:
                self._waiting.remove(outlet)


class Outlet:
    """A replacement of the socket while gunicorn answers.

    Nothing is written while another thread may write: the loop takes over once the request has
    been handled. A thread waits only while SPOOLED_BYTES of its answer are unread.
    """

    def __init__(self, sock: socket.socket, readers: Readers) -> None:
        self._sock = sock
        self._readers = readers
        self._pending: deque[bytes | Outgoing] = deque()
        self._held = 0
        self._spool: IO[bytes] | None = None
        self.spooled = 0
        self.is_broken = False
        self._count()

    def _count(self) -> None:
        """Start measuring, from when the client was first too slow for an answer."""
        self._began = self._moved = time.monotonic()
        self._sent = 0

    def _note(self, sent: int) -> None:
        """Record that the client read `sent` bytes."""
        self._sent += sent
        self._moved = time.monotonic()

    def rate(self) -> float:
        """Return the bytes per second that the client has read since it was first too slow."""
        return self._sent / (time.monotonic() - self._began + 1)

    @property
    def has_pending(self) -> bool:
        return bool(self._pending)

    @property
    def deadline(self) -> float:
        return send_deadline(self._began, self._sent, self._moved)

    # What gunicorn calls

    def sendall(self, data: bytes) -> None:
        """Send what the socket accepts, and keep the rest."""
        self.flush()
        if not self._pending:
            data = data[self._send(data) :]
        if data:
            self._keep(data)

    send = sendall

    def sendfile(self, file: IO[bytes], offset: int = 0, count: int = 0) -> None:
        """Send a part of a file, or leave it to the loop without blocking the thread."""
        if not self._pending:
            self._count()
        # The view's file is closed with its response, before the loop has sent it.
        self._pending.append(Outgoing(os.dup(file.fileno()), offset, count))
        self.flush()

    def gettimeout(self) -> float:
        return 0.0

    def setblocking(self, flag: bool) -> None:
        """Do nothing, because this socket never blocks."""

    settimeout = setblocking

    def shutdown(self, how: int) -> None:
        """Mark an answer that failed halfway; the loop closes the connection."""
        self.is_broken = True

    def recv(self, size: int) -> bytes:
        return b""

    def close(self) -> None:
        """Do nothing, because the loop closes the connection."""

    # What the loop calls

    def flush(self) -> None:
        """Send what the socket accepts. Raises OSError if the client disconnected."""
        if self.is_broken:
            raise TooSlow
        while self._pending:
            first_piece = self._pending[0]
            if isinstance(first_piece, Outgoing):
                if not self._flush_part(first_piece):
                    return
            else:
                sent_bytes = self._send(first_piece)
                self._held -= sent_bytes
                if sent_bytes < len(first_piece):
                    self._pending[0] = first_piece[sent_bytes:]
                    return
            self._pending.popleft()

    def give_up(self) -> None:
        """Wake the thread that waits for this client, and send nothing more."""
        self.is_broken = True
        with suppress(OSError):
            # Not closed: the thread still polls it. This wakes the thread at once.
            self._sock.shutdown(socket.SHUT_RDWR)

    def drop(self) -> None:
        """Discard what was not sent."""
        self.is_broken = True
        for piece in self._pending:
            if isinstance(piece, Outgoing) and not piece.is_spool:
                os.close(piece.descriptor)
        self._pending.clear()
        if self._spool:
            self._spool.close()
            self._spool = None
        self._held = self.spooled = 0

    def _send(self, data: bytes) -> int:
        """Send bytes; return how many the system accepted."""
        try:
            sent_bytes = self._sock.send(data)
        except BlockingIOError:
            return 0
        self._note(sent_bytes)
        return sent_bytes

    def _flush_part(self, piece: Outgoing) -> bool:
        """Send from a file; return whether all of it was sent. A long part takes several calls."""
        # The loop sends for all clients, and a fast one would keep it to the file's end.
        end = piece.left - AT_ONCE
        while piece.left > max(0, end):
            size = min(piece.left, AT_ONCE)
            try:
                sent_bytes = os.sendfile(self._sock.fileno(), piece.descriptor, piece.offset, size)
            except BlockingIOError:
                return False
            if not sent_bytes:
                raise TooSlow  # the file became shorter: the length that was announced never comes
            piece.offset += sent_bytes
            piece.left -= sent_bytes
            self._note(sent_bytes)
        if piece.left:
            return False
        self._close(piece)
        return True

    def _close(self, piece: Outgoing) -> None:
        if not piece.is_spool:
            os.close(piece.descriptor)
        elif self._spool and not any(
            isinstance(other, Outgoing) and other.is_spool and other is not piece
            for other in self._pending
        ):
            # Nothing in it is left to send, so a long stream does not fill the disk.
            self._spool.truncate(0)
            self.spooled = 0

    def _keep(self, data: bytes) -> None:
        if not self._pending:
            self._count()
        last = self._pending[-1] if self._pending else None
        is_spooling = isinstance(last, Outgoing) and last.is_spool
        # What follows a spooled piece is spooled, too, which keeps the order.
        if not is_spooling and self._held + len(data) <= HELD_BYTES:
            self._pending.append(bytes(data))
            self._held += len(data)
            return
        self._write_to_spool(data)
        if self.spooled > SPOOLED_BYTES:
            self._wait_until_read()

    def _write_to_spool(self, data: bytes) -> None:
        if self._spool is None:
            self._spool = TemporaryFile(buffering=0)  # noqa: SIM115 - as long as the connection
        last_piece = self._pending[-1] if self._pending else None
        if not (isinstance(last_piece, Outgoing) and last_piece.is_spool):
            last_piece = Outgoing(self._spool.fileno(), self.spooled, 0, is_spool=True)
            self._pending.append(last_piece)
        view = memoryview(data)
        while view:
            # Where a disk gets full it writes less than it was given.
            written_bytes = os.pwrite(self._spool.fileno(), view, self.spooled)
            self.spooled += written_bytes
            last_piece.left += written_bytes
            view = view[written_bytes:]

    def _wait_until_read(self) -> None:
        """Block the thread until the client has read everything. Raises TooSlow."""
        poll = select.poll()
        poll.register(self._sock, select.POLLOUT)
        self._readers.enter(self)
        try:
            while self._pending:
                left = self.deadline - time.monotonic()
                if left <= 0 or not poll.poll(left * 1000):
                    raise TooSlow
                self.flush()
        finally:
            self._readers.leave(self)
