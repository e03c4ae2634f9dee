"""Where a chat model's server answers: the routes below the address that somebody entered."""

import re
from collections.abc import Callable

import httpx

from tasks.targets.endpoints.base import EndpointError
from tasks.targets.endpoints.transport import Reply

COMPLETIONS, MODELS = "/chat/completions", "/models"
COPIED_ROUTES = (COMPLETIONS, "/completions", "/responses", MODELS)
"""Ends of addresses that people copy from a server's documents."""
V1, VERSION = "/v1", re.compile(r"/v\d")

# Addresses without a version whose routes lie below `/v1`, so that each is met once a process.
_without_v1: set[str] = set()


class RequestRefused(EndpointError):
    """Raised if a server refuses the form of a request.

    words: the server's message, which may name what it does not support. has_no_route: whether the
    path does not exist, rather than the model.
    """

    def __init__(self, error: EndpointError, words: str, has_no_route: bool) -> None:
        super().__init__(str(error), error.reason, error.permanent, error.retry_after)
        self.words, self.has_no_route = words, has_no_route


def strip_route(url: httpx.URL) -> httpx.URL:
    """Return the base of a URL, without the route that people may have copied with it."""
    path = url.path.rstrip("/")
    route = next((route for route in COPIED_ROUTES if path.endswith(route)), "")
    return url.copy_with(path=path.removesuffix(route))


def ask_route(url: httpx.URL, route: str, ask: Callable[[str], Reply]) -> Reply:
    """Return the reply of `ask` at a route; try below `/v1` if a base without version lacks it.

    Raises EndpointError; if neither path has the route, that of the first attempt.
    """
    base = str(url)
    # Learnt before: the routes of this base lie below /v1.
    if base in _without_v1:
        return ask(V1 + route)
    try:
        return ask(route)
    except RequestRefused as failure:
        # Any other refusal means the request, and an address with a version is complete.
        if not failure.has_no_route or VERSION.search(url.path):
            raise
        first_failure = failure
    try:
        reply = ask(V1 + route)
    except RequestRefused as failure:
        raise (first_failure if failure.has_no_route else failure) from None
    # Remembered only after a success, so that a server that was down is tried in full again.
    _without_v1.add(base)
    return reply
