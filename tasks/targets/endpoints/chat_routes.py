"""Find the routes of a chat model's server below the URL that somebody entered."""

import re
from collections.abc import Callable

import httpx

from tasks.targets.endpoints.base import EndpointError
from tasks.targets.endpoints.transport import Reply

COMPLETIONS_ROUTE, RESPONSES_ROUTE = "/chat/completions", "/responses"
MODELS_ROUTE = "/models"
COPIED_ROUTES = (COMPLETIONS_ROUTE, "/completions", RESPONSES_ROUTE, MODELS_ROUTE)
"""Ends of URLs that people copy from a server's documentation."""
V1_PATH, VERSION_PATTERN = "/v1", re.compile(r"/v\d")

# Addresses without a version whose routes lie below `/v1`, so that each is met once a process.
_urls_without_v1: set[str] = set()


class RequestRefused(EndpointError):
    """Raised if a server refuses the form of a request.

    error_json: the error that the server sent, as JSON. It may name what is not supported.
    has_no_route: whether the path does not exist, rather than the model.
    """

    def __init__(self, error: EndpointError, error_json: str, has_no_route: bool) -> None:
        super().__init__(str(error), error.reason, error.is_permanent, error.retry_after)
        self.error_json, self.has_no_route = error_json, has_no_route


def has_route(url: httpx.URL, route: str) -> bool:
    """Return whether a URL ends with a route."""
    return url.path.rstrip("/").endswith(route)


def wants_responses(refusal: RequestRefused) -> bool:
    """Return whether /responses may serve what a server refused at /chat/completions.

    Some models have only the newer protocol, which OpenAI's refusal names.
    """
    return refusal.has_no_route or "supported in v1/responses" in refusal.error_json


def strip_route(url: httpx.URL) -> httpx.URL:
    """Return a URL without the route that people may have copied with it."""
    path = url.path.rstrip("/")
    route = next((route for route in COPIED_ROUTES if path.endswith(route)), "")
    return url.copy_with(path=path.removesuffix(route))


def ask_route(url: httpx.URL, route: str, send: Callable[[str], Reply]) -> Reply:
    """Return the reply of `send` at a route, with or without `/v1`.

    If the route does not exist and the base has no version, it is tried below `/v1`, too. Raises
    EndpointError; if neither path has the route, the error of the first attempt.
    """
    base = str(url)
    # Learnt before: the routes of this base lie below /v1.
    if base in _urls_without_v1:
        return send(V1_PATH + route)
    try:
        return send(route)
    except RequestRefused as failure:
        # Any other refusal means the request, and an address with a version is complete.
        if not failure.has_no_route or VERSION_PATTERN.search(url.path):
            raise
        first_failure = failure
    try:
        reply = send(V1_PATH + route)
    except RequestRefused as failure:
        raise (first_failure if failure.has_no_route else failure) from None
    # Remembered only after a success, so that a server that was down is tried in full again.
    _urls_without_v1.add(base)
    return reply
