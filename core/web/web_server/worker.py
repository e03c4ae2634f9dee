"""A gunicorn worker whose loop receives requests and sends responses, so that threads only compute.

gunicorn's own threaded worker takes a thread for each connection that has sent a byte, without a
time limit.
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
    MAX_CONNECTIONS_PER_ADDRESS,
    MAX_LINGER_BYTES,
    MAX_RECEIVED_BYTES,
    MAX_SPOOLED_BYTES,
    WAIT_SECONDS,
    count_slots,
)
from .outlet import SlowReaders

OWN_FILES = 200
"""The number of file descriptors reserved for the database, files and models."""
CHECK_INTERVAL_SECONDS = 0.25
"""How often the loop checks for connections past their deadline."""
TIMEOUT_RESPONSE = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
BUSY_RESPONSE = (
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
)
OUT_OF_FILES_ERRORS = (errno.EMFILE, errno.ENFILE)
GONE_ERRORS = (errno.EAGAIN, errno.ECONNABORTED, errno.EWOULDBLOCK)


class Worker(ThreadWorker):  # type: ignore[misc]
    """A gunicorn worker that serves connections in three steps.

    1. The loop receives the head, and a body of up to MAX_BUFFERED_BYTES.
    2. A thread of the pool runs gunicorn's `handle`, which also reads larger bodies.
    3. The loop sends the part of the response that the client did not read at once.
    """

    worker_connections: int

    @classmethod
    def check_config(cls, cfg: Any, log: Any) -> None:
        """Raise ConfigError for a configuration that this worker does not support."""
        if cfg.is_ssl:
            raise ConfigError("Let a proxy end TLS: this worker speaks plain HTTP.")

    def init_process(self) -> None:
        """Prepare the loop's state, and run it."""
        self.open: dict[Connection, None] = {}  # oldest first
        self._counts_by_address: Counter[str] = Counter()
        self._upload_count = 0
        self._waiting_uploads: deque[Connection] = deque()
        self._slot_count = count_slots(self.cfg.threads)
        # In this process: the main one, which imported this module, forgot all of ours.
        from core.outside import limit_waiting_threads

        limit_waiting_threads(self._slot_count)
        self._readers = SlowReaders(self._slot_count)
        # As settings.py reads it, which is not loaded yet.
        is_behind_proxy = os.environ.get("BEHIND_PROXY", "").strip().lower() in ("1", "true", "yes")
        self._next_check_at = self._full_until = 0.0
        self.worker_connections = _raise_file_limit(self.worker_connections)
        self._max_per_address = (
            self.worker_connections if is_behind_proxy else MAX_CONNECTIONS_PER_ADDRESS
        )
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
            self._enforce_deadlines()
        self.set_accept_enabled(False)
        self._finish()
        for conn in [*self.open]:
            self._close_connection(conn)
        # Requests that outlasted the grace period must not hold up the end.
        self.tpool.shutdown(wait=False)
        self.poller.close()
        self.method_queue.close()
        for listener in self.sockets:
            listener.close()

    def _finish(self) -> None:
        """Finish received requests, and wait briefly for requests on idle connections."""
        now = time.monotonic()
        for conn in self.open:
            if conn.state is State.RECEIVING:
                seconds = STOP_KEEPALIVE_LINGER if conn.is_idle else HEAD_SECONDS
                conn.deadline = min(conn.deadline, now + seconds)
        deadline = now + self.cfg.graceful_timeout
        while self.open and time.monotonic() < deadline:
            self.notify()
            self.wait_for_and_dispatch_events(timeout=0.2)
            self._enforce_deadlines()

    def _enforce_deadlines(self) -> None:
        """Close connections past their deadline, and the oldest if too much is buffered."""
        now = time.monotonic()
        if now < self._next_check_at:
            return
        self._next_check_at = now + CHECK_INTERVAL_SECONDS
        # A copy, as dropping one changes it.
        for conn in [*self.open]:
            if conn.state is State.SENDING:
                # Only this one: the connection's own deadline was that of its request's head.
                if conn.sock.deadline < now:
                    self._close_connection(conn)
            elif conn.state is not State.HANDLED and conn.deadline < now:
                self._time_out(conn)
        self._close_beyond(MAX_RECEIVED_BYTES, State.RECEIVING, lambda conn: len(conn.received))
        self._close_beyond(MAX_SPOOLED_BYTES, State.SENDING, lambda conn: conn.sock.spooled_bytes)

    def _time_out(self, conn: Connection) -> None:
        """Close a connection that took too long. If its request had begun, send an error first."""
        if conn.state is State.WAITING:
            self._waiting_uploads.remove(conn)
            self._send_at_once(conn, BUSY_RESPONSE)
        # An idle client would take an error for the answer to its next request.
        elif conn.state is State.RECEIVING and (conn.received or conn.request):
            self._send_at_once(conn, TIMEOUT_RESPONSE)
        self._close_connection(conn)

    def _send_at_once(self, conn: Connection, answer: bytes) -> None:
        try:
            # `send` and not `sendall`, because the loop must not wait for a slow client.
            conn.raw_socket.send(answer)
        except OSError:
            self.log.debug("A slow client is gone")

    # Connections come

    def accept(self, listener: socket.socket) -> None:
        """Accept a new connection, and read what has already arrived."""
        try:
            client_socket, client = listener.accept()
        except OSError as error:
            if error.errno in OUT_OF_FILES_ERRORS:
                self._full_until = time.monotonic() + CHECK_INTERVAL_SECONDS
                self._close_slowest()
            # Another worker took the connection, or its client is gone.
            elif error.errno not in GONE_ERRORS:
                raise
            return
        try:
            conn = Connection(self.cfg, client_socket, client, self._readers)
        except OSError:  # gone already
            client_socket.close()
            return
        self.open[conn] = None
        self._counts_by_address[conn.address] += 1
        self.nr_conns = len(self.open)
        # Most clients send the request with the connection: that saves a turn of the loop.
        self._on_event(conn, None)
        # Behind a proxy all have one address, and the proxy counts.
        if conn.address and self._counts_by_address[conn.address] > self._max_per_address:
            self._close_slowest(conn.address)

    def _make_room(self) -> bool:
        """Return whether a new connection fits, after closing a slow one if necessary."""
        return len(self.open) < self.worker_connections or self._close_slowest()

    def _close_slowest(self, address: str | None = None) -> bool:
        """Close the connection that has waited longest for its client; return whether one was.

        address: if given, consider only connections from this address. Lingering and idle
        connections are closed first.
        """
        slow_connections = [
            conn
            for conn in self.open
            if conn.state not in (State.HANDLED, State.WAITING)
            and (address is None or conn.address == address)
        ]
        if not slow_connections:
            return False
        self._close_connection(min(slow_connections, key=_build_close_order))
        return True

    def _close_beyond(self, max_bytes: int, state: State, get_size: Any) -> None:
        connections = [conn for conn in self.open if conn.state is state and get_size(conn)]
        total = sum(map(get_size, connections))
        for conn in sorted(connections, key=lambda conn: conn.began_at):
            if total <= max_bytes:
                return
            total -= get_size(conn)
            self._close_connection(conn)

    # Receiving

    def _start_polling(self, conn: Connection, events: int) -> None:
        call = partial(self._on_event, conn)
        try:
            self.poller.modify(conn.raw_socket, events, call)
        except KeyError:
            self.poller.register(conn.raw_socket, events, call)

    def _stop_polling(self, conn: Connection) -> None:
        """Stop polling a connection until a thread has finished its request."""
        if conn.raw_socket in self.poller.get_map():
            self.poller.unregister(conn.raw_socket)

    def _on_event(self, conn: Connection, _: Any) -> None:
        """Take the next step of a connection in its current state. Ignore a closed one."""
        if conn.state is State.RECEIVING:
            self._run_step(self._receive, conn)
        elif conn.state is State.SENDING:
            self._run_step(self._send, conn)
        elif conn.state is State.LINGERING:
            self._run_step(self._drain, conn)

    def _run_step(self, step: Callable[[Connection], None], conn: Connection) -> None:
        """Run a step. An error closes only its own connection."""
        try:
            step(conn)
        except OSError:
            self._close_connection(conn)
        except Exception:
            self.log.exception("A connection failed")
            self._close_connection(conn)

    def _receive(self, conn: Connection) -> None:
        if conn.receive():
            self._advance(conn)
        else:
            self._close_connection(conn)

    def _advance(self, conn: Connection) -> None:
        """Pass a request to the thread pool once it is complete or malformed."""
        try:
            if not conn.is_complete():
                self._start_polling(conn, selectors.EVENT_READ)
                return
        # For the caller, who drops the connection: gunicorn has nobody to answer.
        except OSError:
            raise
        except HeadTooLarge:
            conn.fail(LimitRequestHeaders("the head is too large"))
        except Exception as error:  # as gunicorn's parser says it: `handle` knows them all
            conn.fail(error)
        self._stop_polling(conn)
        if (
            conn.state is State.RECEIVING
            and conn.is_large
            and self._upload_count >= self._slot_count
        ):
            conn.state = State.WAITING
            conn.deadline = time.monotonic() + WAIT_SECONDS
            self._waiting_uploads.append(conn)
            return
        self._hand_over(conn)

    def _hand_over(self, conn: Connection) -> None:
        if conn.state is not State.HANDLED:  # as where its head could not be read
            self._upload_count += conn.is_large
            conn.begin_handling()
        self.enqueue_req(conn)

    # After the answer

    def _keepalive_after(self, conn: Connection, keepalive: bool) -> bool:
        """Return whether another request may follow on the connection.

        Unlike gunicorn's own method, this never waits for the body.
        """
        return bool(keepalive and conn.end_handling())

    def finish_request(self, conn: Connection, done: "Future[bool]") -> None:
        """Continue with a connection after a thread has finished its request. Runs in the loop."""
        if conn.is_large and conn.request is not None:
            self._upload_count -= 1
            # A place is free: the upload that has waited longest is next.
            while self._waiting_uploads and self._upload_count < self._slot_count:
                self._hand_over(self._waiting_uploads.popleft())
        # In this order: `result` would raise what the thread raised.
        can_keep = not done.cancelled() and done.exception() is None and done.result()
        conn.is_kept = bool(can_keep)
        self._run_step(self._send, conn)

    def _send(self, conn: Connection) -> None:
        """Send the rest of the response, then wait for the next request or close the connection."""
        conn.sock.flush()
        if conn.sock.has_pending:
            conn.state = State.SENDING
            self._start_polling(conn, selectors.EVENT_WRITE)
        elif conn.is_kept:
            self._keep_alive(conn)
        else:
            conn.linger()
            self._start_polling(conn, selectors.EVENT_READ)

    def _keep_alive(self, conn: Connection) -> None:
        seconds = self.cfg.keepalive if self.alive else STOP_KEEPALIVE_LINGER
        # A client may have sent its next request before our answer had come.
        conn.expect_request(HEAD_SECONDS if conn.received else seconds)
        self._advance(conn)

    def _drain(self, conn: Connection) -> None:
        data = conn.raw_socket.recv(RECEIVE_BYTES)
        conn.lingered_bytes += len(data)
        if not data or conn.lingered_bytes >= MAX_LINGER_BYTES:
            self._close_connection(conn)

    def _close_connection(self, conn: Connection) -> None:
        if conn.state is State.CLOSED:
            return
        self._stop_polling(conn)
        conn.close()
        del self.open[conn]
        self._counts_by_address[conn.address] -= 1
        if not self._counts_by_address[conn.address]:
            # Without this, the counter would grow with every address that ever connected.
            del self._counts_by_address[conn.address]
        self.nr_conns = len(self.open)


def _build_close_order(conn: Connection) -> tuple[bool, float]:
    """Return a sort key for closing connections: lingering and idle ones first, then the oldest."""
    return not (conn.state is State.LINGERING or conn.is_idle), conn.began_at


def _raise_file_limit(connections: int) -> int:
    """Raise the limit on open files as far as possible; return how many connections fit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    file_limit = connections + OWN_FILES
    if resource.RLIM_INFINITY in (soft, hard) or soft >= file_limit:
        return connections
    soft = min(file_limit, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(OWN_FILES, soft - OWN_FILES)
