"""A Redis cache shared by web processes, replaced by a local cache per process during an outage."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache, wraps
from typing import Any

from django.core.cache.backends.locmem import LocMemCache
from django.core.cache.backends.redis import RedisCache
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError
from redis.retry import Retry

logger = logging.getLogger(__name__)

PAUSE_SECONDS = 2.0
"""Seconds between two attempts during an outage, so that few requests wait for the timeout."""
TIMEOUT_SECONDS = 0.5
MAX_LOCAL_ENTRIES = 10_000


class ServerState:
    """The state of a Redis server as far as this process knows it. Its threads share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_outage = False
        self._changed_at = self._next_try_at = 0.0

    def may_ask_server(self) -> bool:
        """Return whether to try Redis: always while it works; during an outage once per pause."""
        with self._lock:
            now = time.monotonic()
            if self._is_outage and now < self._next_try_at:
                return False
            # Before this caller asks: the others must not wait for the timeout with it.
            self._next_try_at = now + PAUSE_SECONDS
            return True

    def record_result(self, error: Exception | None, asked_at: float) -> bool:
        """Record the result of a call; return whether an outage begins with it.

        Logs the beginning and the end once. asked_at: time of the call on the monotonic clock; a
        call from before the last change is ignored.
        """
        has_failed = error is not None
        with self._lock:
            if has_failed == self._is_outage or asked_at < self._changed_at:
                return False
            self._is_outage, self._changed_at = has_failed, time.monotonic()
        if has_failed:
            logger.error("The cache is away, and each process uses its own: %s", error)
        else:
            logger.warning("The cache is back.")
        return has_failed


@cache
def get_server_state(server: str) -> ServerState:
    """Return the server's state in this process, shared by the caches of all threads."""
    return ServerState()


def _build_fallback_method(name: str) -> Callable[..., Any]:
    """Return a cache method of this name that uses Redis, or a local cache during an outage."""
    redis_method, local_method = getattr(RedisCache, name), getattr(LocMemCache, name)

    @wraps(redis_method)
    def call_either(self: "SharedCache", *args: Any, **kwargs: Any) -> Any:
        args = tuple(list(arg) if isinstance(arg, Iterator) else arg for arg in args)  # read twice
        if self.server_state.may_ask_server():
            asked_at = time.monotonic()
            try:
                answer = redis_method(self, *args, **kwargs)
            except RedisError as error:
                if self.server_state.record_result(error, asked_at):
                    self.local.clear()  # what an earlier outage left
            else:
                self.server_state.record_result(None, asked_at)
                return answer
        return local_method(self.local, *args, **kwargs)

    return call_either


class SharedCache(RedisCache):
    """A Redis cache that falls back to a local cache per process while Redis is unavailable."""

    def __init__(self, server: str, params: dict[str, Any]) -> None:
        timeout_options = {
            "socket_connect_timeout": TIMEOUT_SECONDS,
            "socket_timeout": TIMEOUT_SECONDS,
            # Once: a restart of Redis breaks the connections that are kept open.
            "retry": Retry(NoBackoff(), 1, supported_errors=(RedisConnectionError,)),
        }
        # The operator's own options win over these.
        super().__init__(server, {**params, "OPTIONS": timeout_options | params.get("OPTIONS", {})})
        # Redis's own options mean nothing to it.
        local_params = {**params, "OPTIONS": {"MAX_ENTRIES": MAX_LOCAL_ENTRIES}}
        self.local = LocMemCache(f"instead of {server}", local_params)
        self.server_state = get_server_state(server)

    def ping(self) -> None:
        """Ping Redis, without falling back to the local cache. Raises RedisError."""
        self._cache.get_client(write=True).ping()

    add = _build_fallback_method("add")
    get = _build_fallback_method("get")
    set = _build_fallback_method("set")
    touch = _build_fallback_method("touch")
    delete = _build_fallback_method("delete")
    get_many = _build_fallback_method("get_many")
    has_key = _build_fallback_method("has_key")
    incr = _build_fallback_method("incr")
    set_many = _build_fallback_method("set_many")
    delete_many = _build_fallback_method("delete_many")
    clear = _build_fallback_method("clear")
