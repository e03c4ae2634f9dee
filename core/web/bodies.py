"""How large the body of a request may be; asked before a byte of it is read."""

from collections import Counter
from collections.abc import Callable
from threading import Lock
from typing import Any, TypeVar

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse, UnreadablePostError
from django.shortcuts import render
from django.utils.deprecation import MiddlewareMixin
from django.utils.translation import gettext as _
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.settings import api_settings

from core.errors import Unavailable
from core.files.storage.disk import check_room
from core.web.outages import api_error, unavailable

Most = int | Callable[[Any], int]
View = TypeVar("View", bound=Callable[..., Any])
FORM_BYTES = 64 * 1024  # of a form, around its file
MOST_AT_ONCE = 2
"""Large bodies of one person that a process reads at once: a third of its threads read such bodies,
and a person who sends slowly would keep all of them."""
_reading: Counter[Any] = Counter()
_lock = Lock()


def takes(max_bytes: Most) -> Callable[[View], View]:
    """Mark a view, a function or a class, whose requests may have up to `max_bytes` bytes.

    max_bytes: a number, or a function of the user. It applies only to people with an account;
    visitors have the usual limit everywhere.
    """

    def mark(view: View) -> View:
        view.most_bytes = max_bytes  # type: ignore[attr-defined]
        return view

    return mark


def keep_body(request: HttpRequest) -> None:
    """Read a body that `takes` allows, because Django's `body` applies only the usual limit."""
    # Where Django's `body` and the API's parsers find it afterwards.
    request._body = request.read()  # type: ignore[attr-defined]


class Bodies(MiddlewareMixin):
    """Middleware that refuses bodies which are too large, of unknown size, or exceed free space.

    It comes before any middleware that reads forms.
    """

    def process_view(
        self, request: HttpRequest, view: Any, args: Any, kwargs: Any
    ) -> HttpResponse | None:
        # Such a body tells its size only at its end.
        if "chunked" in request.headers.get("Transfer-Encoding", "").lower():
            return refusal(
                request, 411, "length", _("Say how long the body is, in Content-Length.")
            )
        size = int(request.META.get("CONTENT_LENGTH") or 0)
        usual_max = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        if size <= usual_max:
            return None
        try:
            max_bytes = max(usual_max, _most_of(request, view))
        except AuthenticationFailed as why:
            headers = {"WWW-Authenticate": "Bearer"}
            return api_error(why.default_code, str(why.detail), why.status_code, headers)
        if size > max_bytes:
            message = _("A request here has at most %(most)s bytes; this one has %(size)s.")
            words = message % {"most": f"{max_bytes:,}", "size": f"{size:,}"}
            return refusal(request, 413, "too_large", words)
        try:
            check_room(size)
        except Unavailable as why:
            return unavailable(request, why)
        if not _begin_reading(request):
            words = _("You are sending other files at this moment. Wait until they have arrived.")
            answer = refusal(request, 429, "uploads", words)
            answer["Retry-After"] = "30"
            return answer
        return None

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """Record that a large body was read or abandoned."""
        reader = getattr(request, "reads_for", None)
        if reader is not None:
            with _lock:
                _reading[reader] -= 1
                # Otherwise an entry of everybody who ever sent a file would stay.
                if not _reading[reader]:
                    del _reading[reader]
        return response

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Answer if a body did not arrive, or arrived too slowly; None for other exceptions."""
        if not isinstance(exception, UnreadablePostError):
            return None
        words = _("What you sent did not arrive. Check your connection and try again.")
        return refusal(request, 408, "too_slow", words)


def _begin_reading(request: HttpRequest) -> bool:
    """Count a large body of its sender; return False if they already send the maximum number."""
    sender = _sender(request).pk
    with _lock:
        if _reading[sender] >= MOST_AT_ONCE:
            return False
        _reading[sender] += 1
    request.reads_for = sender  # type: ignore[attr-defined]
    return True


def _most_of(request: HttpRequest, view: Any) -> int:
    # `as_view` of the API's framework makes a function, which names its class so.
    marked = view if hasattr(view, "most_bytes") else getattr(view, "cls", None)
    max_bytes: Most = getattr(marked, "most_bytes", 0)
    user = _sender(request)
    if not user.is_authenticated:
        return 0
    return max_bytes(user) if callable(max_bytes) else max_bytes


def _sender(request: HttpRequest) -> Any:
    """Return the user of the request's session or, in the API, of its token.

    Raises AuthenticationFailed for an invalid token.
    """
    if request.path.startswith("/api/"):
        of_token: Any = api_settings.DEFAULT_AUTHENTICATION_CLASSES[0]
        if authenticated := of_token().authenticate(request):
            return authenticated[0]
    return request.user


def refusal(request: HttpRequest, status: int, code: str, words: str) -> HttpResponse:
    """Return a refusal: in the API's error format, as JSON for scripts, or as a page."""
    if request.path.startswith("/api/"):
        return api_error(code, words, status)
    if not request.accepts("text/html"):  # a script of ours
        return JsonResponse({"error": words}, status=status)
    return render(request, "not_taken.html", {"words": words}, status=status)
