"""A threaded worker whose loop receives requests and sends answers, so that threads only compute.

gunicorn's own takes a thread for each connection that has sent a byte, and has no limit of time.
"""

import errno
import os
import resource
import selectors
import socket
import time
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

from gunicorn.errors import ConfigError
from gunicorn.http.errors import LimitRequestHeaders
from gunicorn.workers.gthread import STOP_KEEPALIVE_LINGER, ThreadWorker

from .connection import RECEIVE_BYTES, Connection, HeadTooLarge, State
from .limits import (
    HEAD_SECONDS,
    LINGER_BYTES,
    MOST_OF_ONE_ADDRESS,
    MOST_RECEIVED_BYTES,
    MOST_SPOOLED_BYTES,
    WAIT_SECONDS,
    slots,
)
from .outlet import Readers

FILES_OF_OURS = 200
"""Descriptors that are kept for the database, files and models."""
LOOK_SECONDS = 0.25
"""How often the loop looks for connections whose time is over."""
TOO_LATE = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
TOO_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
FULL = (errno.EMFILE, errno.ENFILE)
GONE = (errno.EAGAIN, errno.ECONNABORTED, errno.EWOULDBLOCK)


class Worker(ThreadWorker):  # type: ignore[misc]
    """A gunicorn worker that serves connections in three steps; only the second uses a thread.

    receive: the head, and a body up to BUFFERED_BYTES. handle: gunicorn's `handle` in the pool;
    larger bodies are read there. send: what the client did not read at once.
    """

    worker_connections: int

    @classmethod
    def check_config(cls, cfg: Any, log: Any) -> None:
        """Refuse a configuration that this worker does not support."""
        if cfg.is_ssl:
            raise ConfigError("Let a proxy end TLS: this worker speaks plain HTTP.")

    def init_process(self) -> None:
        """Prepare the loop's state, and run it."""
        self.open: dict[Connection, None] = {}  # oldest first
        self._of_address: Counter[str] = Counter()
        self._uploads = 0
        self._waiting: deque[Connection] = deque()
        self._slots = slots(self.cfg.threads)
        # In this process: the main one, which imported this module, forgot all of ours.
        from core.outside import limit_waiting

        limit_waiting(self._slots)
        self._readers = Readers(self._slots)
        # As settings.py reads it, which is not loaded yet.
        is_behind_proxy = os.environ.get("BEHIND_PROXY", "").strip().lower() in ("1", "true", "yes")
        self._next_look = self._full_until = 0.0
        self.worker_connections = _allow_files(self.worker_connections)
        self._most_of_one = self.worker_connections if is_behind_proxy else MOST_OF_ONE_ADDRESS
        super().init_process()

    # The loop

    def run(self) -> None:
        """Serve until the worker is asked to stop, then finish running requests."""
        wake = self.method_queue
        # Threads write to it, to wake the loop when they have answered.
        self.poller.register(wake.fileno(), selectors.EVENT_READ, wake.run_callbacks)
        while self.alive:
            self.notify()
            is_full = time.monotonic() < self._full_until
            # A listener that nobody may serve stays readable, and the loop would spin.
            self.set_accept_enabled(not is_full and self._make_room())
            self.wait_for_and_dispatch_events(timeout=1.0)
            # Without its main process nobody would end this one.
            if not self.is_parent_alive():
                break
            self._look_at_clock()
        self.set_accept_enabled(False)
        self._finish()
        for conn in [*self.open]:
            self._drop(conn)
        self.tpool.shutdown(wait=False)
        self.poller.close()
        self.method_queue.close()
        for listener in self.sockets:
            listener.close()

    def _finish(self) -> None:
        """Answer received requests, and those that clients may be sending on kept connections."""
        now = time.monotonic()
        for conn in self.open:
            if conn.state is State.RECEIVING:
                seconds = STOP_KEEPALIVE_LINGER if conn.is_idle else HEAD_SECONDS
                conn.deadline = min(conn.deadline, now + seconds)
        end = now + self.cfg.graceful_timeout
        while self.open and time.monotonic() < end:
            self.notify()
            self.wait_for_and_dispatch_events(timeout=0.2)
            self._look_at_clock()

    def _look_at_clock(self) -> None:
        """Close connections past their deadline, and the oldest of those with too much data."""
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + LOOK_SECONDS
        # A copy, as dropping one changes it.
        for conn in [*self.open]:
            if conn.state is State.SENDING and conn.sock.deadline < now:
                self._drop(conn)
            elif conn.state is not State.HANDLED and conn.deadline < now:
                self._time_out(conn)
        self._shed_beyond(MOST_RECEIVED_BYTES, State.RECEIVING, lambda conn: len(conn.received))
        self._shed_beyond(MOST_SPOOLED_BYTES, State.SENDING, lambda conn: conn.sock.spooled)

    def _time_out(self, conn: Connection) -> None:
        """Close a connection; if its request had begun, send an error status first."""
        if conn.state is State.WAITING:
            self._waiting.remove(conn)
            self._say(conn, TOO_BUSY)
        elif conn.state is State.RECEIVING and (conn.received or conn.request):
            self._say(conn, TOO_LATE)
        self._drop(conn)

    def _say(self, conn: Connection, answer: bytes) -> None:
        try:
            conn.plain.send(answer)
        except OSError:
            self.log.debug("A slow client is gone")

    # Connections come

    def accept(self, listener: socket.socket) -> None:
        """Accept a new connection, and read what it has sent already."""
        try:
            client_socket, client = listener.accept()
        except OSError as error:
            if error.errno in FULL:
                self._full_until = time.monotonic() + LOOK_SECONDS
                self._shed()
            # Another worker took the connection, or its client is gone.
            elif error.errno not in GONE:
                raise
            return
        try:
            conn = Connection(self.cfg, client_socket, client, self._readers)
        except OSError:  # gone already
            client_socket.close()
            return
        self.open[conn] = None
        self._of_address[conn.address] += 1
        self.nr_conns = len(self.open)
        # Most clients send the request with the connection: that saves a turn of the loop.
        self._on_event(conn, None)
        # Behind a proxy all have one address, and the proxy counts.
        if conn.address and self._of_address[conn.address] > self._most_of_one:
            self._shed(conn.address)

    def _make_room(self) -> bool:
        """Return whether a new connection fits, after closing a slow one if necessary."""
        return len(self.open) < self.worker_connections or self._shed()

    def _shed(self, address: str | None = None) -> bool:
        """Close the connection that has waited longest for its client; return whether one was.

        address: only connections from this address. Lingering and idle connections are closed
        first.
        """
        slow = [
            conn
            for conn in self.open
            if conn.state not in (State.HANDLED, State.WAITING)
            and (address is None or conn.address == address)
        ]
        if not slow:
            return False
        self._drop(min(slow, key=_use))
        return True

    def _shed_beyond(self, most: int, state: State, size: Any) -> None:
        connections = [conn for conn in self.open if conn.state is state and size(conn)]
        total = sum(map(size, connections))
        for conn in sorted(connections, key=lambda conn: conn.began):
            if total <= most:
                return
            total -= size(conn)
            self._drop(conn)

    # Receiving

    def _poll(self, conn: Connection, events: int) -> None:
        call = partial(self._on_event, conn)
        try:
            self.poller.modify(conn.plain, events, call)
        except KeyError:
            self.poller.register(conn.plain, events, call)

    def _rest(self, conn: Connection) -> None:
        """Stop listening to a connection until a thread has answered."""
        if conn.plain in self.poller.get_map():
            self.poller.unregister(conn.plain)

    def _on_event(self, conn: Connection, _: Any) -> None:
        """Continue a connection according to its state; ignore one that has just been closed."""
        if conn.state is State.RECEIVING:
            self._attempt(self._receive, conn)
        elif conn.state is State.SENDING:
            self._attempt(self._send, conn)
        elif conn.state is State.LINGERING:
            self._attempt(self._read_off, conn)

    def _attempt(self, step: Callable[[Connection], None], conn: Connection) -> None:
        """Run a step. An error closes only its own connection."""
        try:
            step(conn)
        except OSError:
            self._drop(conn)
        except Exception:
            self.log.exception("A connection failed")
            self._drop(conn)

    def _receive(self, conn: Connection) -> None:
        if conn.receive():
            self._advance(conn)
        else:
            self._drop(conn)

    def _advance(self, conn: Connection) -> None:
        """Pass a complete request to the thread pool."""
        try:
            if not conn.is_complete():
                self._poll(conn, selectors.EVENT_READ)
                return
        # For the caller, who drops the connection: gunicorn has nobody to answer.
        except OSError:
            raise
        except HeadTooLarge:
            conn.fail(LimitRequestHeaders("the head is too large"))
        except Exception as error:  # as gunicorn's parser says it: `handle` knows them all
            conn.fail(error)
        self._rest(conn)
        if conn.state is State.RECEIVING and conn.is_large and self._uploads >= self._slots:
            conn.state = State.WAITING
            conn.deadline = time.monotonic() + WAIT_SECONDS
            self._waiting.append(conn)
            return
        self._hand_over(conn)

    def _hand_over(self, conn: Connection) -> None:
        if conn.state is not State.HANDLED:  # as where its head could not be read
            self._uploads += conn.is_large
            conn.begin_handling()
        self.enqueue_req(conn)

    # After the answer

    def _keepalive_after(self, conn: Connection, keepalive: bool) -> bool:
        """Return whether another request may follow.

        Unlike gunicorn's own, this never waits for the body.
        """
        return bool(keepalive and conn.end_handling())

    def finish_request(self, conn: Connection, done: "Future[bool]") -> None:
        """Continue with a connection that a thread has answered. Called in the loop."""
        if conn.is_large and conn.request is not None:
            self._uploads -= 1
            # A place is free: the upload that has waited longest is next.
            while self._waiting and self._uploads < self._slots:
                self._hand_over(self._waiting.popleft())
        # In this order: `result` would raise what the thread raised.
        keep = not done.cancelled() and done.exception() is None and done.result()
        conn.is_kept = bool(keep)
        self._attempt(self._send, conn)

    def _send(self, conn: Connection) -> None:
        """Send the rest of the answer, then await the next request or close."""
        conn.sock.flush()
        if conn.sock.has_pending:
            conn.state = State.SENDING
            self._poll(conn, selectors.EVENT_WRITE)
        elif conn.is_kept:
            self._keep(conn)
        else:
            conn.linger()
            self._poll(conn, selectors.EVENT_READ)

    def _keep(self, conn: Connection) -> None:
        seconds = self.cfg.keepalive if self.alive else STOP_KEEPALIVE_LINGER
        # A client may have sent its next request before our answer had come.
        conn.expect_request(HEAD_SECONDS if conn.received else seconds)
        self._advance(conn)

    def _read_off(self, conn: Connection) -> None:
        data = conn.plain.recv(RECEIVE_BYTES)
        conn.lingered += len(data)
        if not data or conn.lingered >= LINGER_BYTES:
            self._drop(conn)

    def _drop(self, conn: Connection) -> None:
        if conn.state is State.CLOSED:
            return
        self._rest(conn)
        conn.close()
        del self.open[conn]
        self._of_address[conn.address] -= 1
        if not self._of_address[conn.address]:
            del self._of_address[conn.address]
        self.nr_conns = len(self.open)


def _use(conn: Connection) -> tuple[bool, float]:
    """Return a sort key for closing connections: idle ones first, then the oldest."""
    return not (conn.state is State.LINGERING or conn.is_idle), conn.began


def _allow_files(connections: int) -> int:
    """Raise the limit of open files as far as possible; return how many connections fit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    file_limit = connections + FILES_OF_OURS
    if resource.RLIM_INFINITY in (soft, hard) or soft >= file_limit:
        return connections
    soft = min(file_limit, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(FILES_OF_OURS, soft - FILES_OF_OURS)
