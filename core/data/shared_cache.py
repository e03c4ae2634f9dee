"""The cache that web processes share: Redis, and while it is away one of each process's own."""

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
"""Between two tries while it is away; else each request would wait for the timeout."""
TIMEOUT_SECONDS = 0.5
LOCAL_ENTRIES = 10_000


class Outage:
    """The state of Redis as this process knows it, shared by its threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_on = False
        self._changed = self._next_try = 0.0

    def may_ask(self) -> bool:
        """Return whether to ask Redis: always while it works, else one caller per pause."""
        with self._lock:
            now = time.monotonic()
            if self._is_on and now < self._next_try:
                return False
            # Before this caller asks: the others must not wait for the timeout with it.
            self._next_try = now + PAUSE_SECONDS
            return True

    def note(self, error: Exception | None, asked_at: float) -> bool:
        """Record the result of a call; return whether an outage begins with it.

        Logs the beginning and the end once. asked_at: time of the call on the monotonic clock; a
        call from before the last change is ignored.
        """
        is_away = error is not None
        with self._lock:
            if is_away == self._is_on or asked_at < self._changed:
                return False
            self._is_on, self._changed = is_away, time.monotonic()
        if is_away:
            logger.error("The cache is away, and each process uses its own: %s", error)
        else:
            logger.warning("The cache is back.")
        return is_away


@cache
def outage_of(server: str) -> Outage:
    """Return the server's state in this process, shared by the caches of all threads."""
    return Outage()


def _soft(name: str) -> Callable[..., Any]:
    """Return a cache method that asks Redis, or a local cache while Redis is unavailable."""
    of_redis, of_local = getattr(RedisCache, name), getattr(LocMemCache, name)

    @wraps(of_redis)
    def ask(self: "SharedCache", *args: Any, **kwargs: Any) -> Any:
        args = tuple(list(arg) if isinstance(arg, Iterator) else arg for arg in args)  # read twice
        if self.outage.may_ask():
            asked_at = time.monotonic()
            try:
                answer = of_redis(self, *args, **kwargs)
            except RedisError as error:
                if self.outage.note(error, asked_at):
                    self.local.clear()  # what an earlier outage left
            else:
                self.outage.note(None, asked_at)
                return answer
        return of_local(self.local, *args, **kwargs)

    return ask


class SharedCache(RedisCache):
    """A Redis cache that falls back to a local cache per process while Redis is unavailable."""

    def __init__(self, server: str, params: dict[str, Any]) -> None:
        quick = {
            "socket_connect_timeout": TIMEOUT_SECONDS,
            "socket_timeout": TIMEOUT_SECONDS,
            # Once: a restart of Redis breaks the connections that are kept open.
            "retry": Retry(NoBackoff(), 1, supported_errors=(RedisConnectionError,)),
        }
        super().__init__(server, {**params, "OPTIONS": quick | params.get("OPTIONS", {})})
        # Redis's own options mean nothing to it.
        own = {**params, "OPTIONS": {"MAX_ENTRIES": LOCAL_ENTRIES}}
        self.local = LocMemCache(f"instead of {server}", own)
        self.outage = outage_of(server)

    def ping(self) -> None:
        """Ping Redis itself. Raises RedisError."""
        self._cache.get_client(write=True).ping()

    add = _soft("add")
    get = _soft("get")
    set = _soft("set")
    touch = _soft("touch")
    delete = _soft("delete")
    get_many = _soft("get_many")
    has_key = _soft("has_key")
    incr = _soft("incr")
    set_many = _soft("set_many")
    delete_many = _soft("delete_many")
    clear = _soft("clear")
