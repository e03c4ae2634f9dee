"""Limit how often one person may make expensive requests. The API's rates are in the settings.

The counts are in the cache, so without a shared cache each web process counts separately.
"""

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from django.core.cache import cache
from django.utils import timezone
from django.utils.crypto import salted_hmac
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.throttling import SimpleRateThrottle

if TYPE_CHECKING:
    from rest_framework.views import APIView

REQUESTS_PER_HOUR = {
    "saliency": 20,
    "try-out": 20,
    "media": 120,
    "talk": 300,
    "members": 30,
    "test": 60,
    "hub": 30,
    "joining": 60,
    "arriving": 600,
    "chart": 120,
}
"""The maximum number of uses per person or address in a clock hour, by action."""


def is_used_up(action: str, caller: object) -> bool:
    """Count one more use in this hour; return whether it exceeds the limit.

    caller: a person's id or an address, of which only a keyed hash is stored.
    """
    # Part of the key, so that each clock hour counts from 0.
    hour = timezone.now().strftime("%Y%m%d%H")
    key = f"{action}-{salted_hmac(action, f'{caller}{hour}').hexdigest()}"
    # Adds only where there is none. `incr` then counts in one step, so that no use is lost.
    cache.add(key, 0, timeout=3600)
    with suppress(ValueError):  # the entry may go between the two calls
        return cache.incr(key) > REQUESTS_PER_HOUR[action]
    return False


class ScopeThrottle(SimpleRateThrottle):
    """A rate limit per person (over all tokens) or network address, and per kind of request.

    A view's `throttle` names the kind for writes, or for everything with `throttles_reads`.
    """

    scope = "read"

    def allow_request(self, request: Request, view: "APIView") -> bool:
        self.scope = self._get_kind(request, view)
        # The framework does this when it makes a throttle, and the kind is known only here.
        self.rate = self.get_rate()
        self.num_requests, self.duration = self.parse_rate(self.rate)
        return super().allow_request(request, view)

    def _get_kind(self, request: Request, view: Any) -> str:
        if request.method in SAFE_METHODS and not getattr(view, "throttles_reads", False):
            return "read"
        return getattr(view, "throttle", "write")

    def get_cache_key(self, request: Request, view: "APIView") -> str:
        user = request.user
        identity = f"user-{user.pk}" if user.is_authenticated else self.get_ident(request)
        return self.cache_format % {"scope": self.scope, "ident": identity}
