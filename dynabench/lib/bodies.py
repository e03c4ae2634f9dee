"""How large the body of a request may be; asked before a byte of it is read."""

from collections.abc import Callable
from typing import Any, TypeVar

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.deprecation import MiddlewareMixin
from django.utils.translation import gettext as _

from dynabench.lib.errors import Unavailable
from dynabench.lib.outages import api_error, unavailable
from dynabench.lib.storage.disk import check_room

Most = int | Callable[[HttpRequest], int]
View = TypeVar("View", bound=Callable[..., Any])
FORM_BYTES = 64 * 1024  # of a form, around its file


def takes(most: Most) -> Callable[[View], View]:
    """A view, as a function or a class, whose requests may have up to so many bytes.

    Of people with an account: strangers have the usual limit everywhere.
    """

    def mark(view: View) -> View:
        view.most_bytes = most  # type: ignore[attr-defined]
        return view

    return mark


def keep_body(request: HttpRequest) -> None:
    """Read a body that `takes` allows; Django's `body` knows the usual limit alone."""
    request._body = request.read()  # type: ignore[attr-defined]


class Bodies(MiddlewareMixin):
    """Refuse bodies that are too large, or of no known size, or for which there is no room.

    Before any middleware that reads forms.
    """

    def process_view(
        self, request: HttpRequest, view: Any, args: Any, kwargs: Any
    ) -> HttpResponse | None:
        if "chunked" in request.headers.get("Transfer-Encoding", "").lower():
            return refusal(
                request, 411, "length", _("Say how long the body is, in Content-Length.")
            )
        size = int(request.META.get("CONTENT_LENGTH") or 0)
        usual = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        if size <= usual:
            return None
        most = max(usual, _most_of(request, view))
        if size > most:
            message = _("A request here has at most %(most)s bytes; this one has %(size)s.")
            words = message % {"most": f"{most:,}", "size": f"{size:,}"}
            return refusal(request, 413, "too_large", words)
        try:
            check_room(size)
        except Unavailable as why:
            return unavailable(request, why)
        return None


def _most_of(request: HttpRequest, view: Any) -> int:
    marked = view if hasattr(view, "most_bytes") else getattr(view, "cls", None)
    most: Most = getattr(marked, "most_bytes", 0)
    # Where a token comes with it, the API asks whose it is before it reads.
    is_known = request.user.is_authenticated or "Authorization" in request.headers
    if not is_known:
        return 0
    return most(request) if callable(most) else most


def refusal(request: HttpRequest, status: int, code: str, words: str) -> HttpResponse:
    """What is not taken, in words: as the API tells errors there, else as a page."""
    if request.path.startswith("/api/"):
        return api_error(code, words, status)
    if not request.accepts("text/html"):  # a script of ours
        return JsonResponse({"error": words}, status=status)
    return render(request, "not_taken.html", {"words": words}, status=status)
