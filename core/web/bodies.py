"""Limit the size of request bodies before they are read."""

from collections import Counter
from collections.abc import Callable
from threading import Lock
from typing import Any, TypeVar

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse, UnreadablePostError
from django.shortcuts import render
from django.template.defaultfilters import filesizeformat
from django.utils.deprecation import MiddlewareMixin
from django.utils.translation import gettext as _
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.settings import api_settings

from core.errors import Unavailable
from core.files.storage.disk import check_free_space
from core.web.outages import respond_api_error, respond_unavailable

MaxBytes = int | Callable[[Any], int]
View = TypeVar("View", bound=Callable[..., Any])
FORM_BYTES = 64 * 1024  # of a form, around its file
MAX_BODIES_AT_ONCE = 2
"""How many large bodies of one person a process reads at once, a third of its threads.

Otherwise a person who sends slowly could occupy all of them.
"""
_reading_counts: Counter[Any] = Counter()
_lock = Lock()


def limit_body(max_bytes: MaxBytes) -> Callable[[View], View]:
    """Return a decorator that allows requests to a view with bodies of up to `max_bytes` bytes.

    max_bytes: a number, or a function of the user. It applies only to people with an account;
    visitors have the usual limit everywhere.
    """

    def mark(view: View) -> View:
        view.max_body_bytes = max_bytes  # type: ignore[attr-defined]
        return view

    return mark


def read_whole_body(request: HttpRequest) -> None:
    """Read the body of a request to a `limit_body` view, as Django's `body` has a smaller limit."""
    # Where Django's `body` and the API's parsers find it afterwards.
    request._body = request.read()  # type: ignore[attr-defined]


class BodyLimitMiddleware(MiddlewareMixin):
    """Middleware that refuses bodies of unknown size, and those too large for the view or the disk.

    It must come before any middleware that reads forms.
    """

    def process_view(
        self, request: HttpRequest, view: Any, args: Any, kwargs: Any
    ) -> HttpResponse | None:
        # Such a body tells its size only at its end.
        if "chunked" in request.headers.get("Transfer-Encoding", "").lower():
            return build_refusal(request, 411, "length", _("Send a Content-Length header."))
        size = int(request.META.get("CONTENT_LENGTH") or 0)
        usual_max = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        if size <= usual_max:
            return None
        try:
            max_bytes = max(usual_max, _get_max_bytes(request, view))
        except AuthenticationFailed as error:
            headers = {"WWW-Authenticate": "Bearer"}
            return respond_api_error(
                error.default_code, str(error.detail), error.status_code, headers
            )
        if size > max_bytes:
            message = _("Send at most %(most)s per request. This one has %(size)s.")
            message = message % {"most": filesizeformat(max_bytes), "size": filesizeformat(size)}
            return build_refusal(request, 413, "too_large", message)
        try:
            check_free_space(size)
        except Unavailable as error:
            return respond_unavailable(request, error)
        if not _begin_reading(request):
            message = _("You're already uploading other files. Wait until they finish.")
            answer = build_refusal(request, 429, "uploads", message)
            answer["Retry-After"] = "30"
            return answer
        return None

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """Free the slot that a large body took from its sender's limit; return the response."""
        sender = getattr(request, "reads_for", None)
        if sender is not None:
            with _lock:
                _reading_counts[sender] -= 1
                # Otherwise an entry of everybody who ever sent a file would stay.
                if not _reading_counts[sender]:
                    del _reading_counts[sender]
        return response

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Return an error response if a body arrived incompletely or too slowly; otherwise None."""
        if not isinstance(exception, UnreadablePostError):
            return None
        message = _("Your upload didn't arrive. Check your connection and try again.")
        return build_refusal(request, 408, "too_slow", message)


def _begin_reading(request: HttpRequest) -> bool:
    """Count a large body for its sender; return False if too many are arriving from them."""
    sender = _find_sender(request).pk
    with _lock:
        if _reading_counts[sender] >= MAX_BODIES_AT_ONCE:
            return False
        _reading_counts[sender] += 1
    request.reads_for = sender  # type: ignore[attr-defined]
    return True


def _get_max_bytes(request: HttpRequest, view: Any) -> int:
    # `as_view` of the API's framework makes a function, which names its class so.
    limited_view = view if hasattr(view, "max_body_bytes") else getattr(view, "cls", None)
    max_bytes: MaxBytes = getattr(limited_view, "max_body_bytes", 0)
    user = _find_sender(request)
    if not user.is_authenticated:
        return 0
    return max_bytes(user) if callable(max_bytes) else max_bytes


def _find_sender(request: HttpRequest) -> Any:
    """Return the user of the request's session or, in the API, of its token.

    Raises AuthenticationFailed for an invalid token.
    """
    if request.path.startswith("/api/"):
        token_authentication: Any = api_settings.DEFAULT_AUTHENTICATION_CLASSES[0]
        if authenticated := token_authentication().authenticate(request):
            return authenticated[0]
    return request.user


def build_refusal(request: HttpRequest, status: int, code: str, message: str) -> HttpResponse:
    """Return a refusal: in the API's error format, as JSON for scripts, or as a page.

    code: a word for programs, used only in the API. message: the reason, for people.
    """
    if request.path.startswith("/api/"):
        return respond_api_error(code, message, status)
    if not request.accepts("text/html"):  # a script of ours
        return JsonResponse({"error": message}, status=status)
    return render(request, "not_taken.html", {"words": message}, status=status)
