"""Liveness and readiness of this process and the site's parts, for supervisors."""

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.contrib.staticfiles.storage import ManifestFilesMixin, staticfiles_storage
from django.core.handlers.wsgi import WSGIRequest
from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import gettext as _

from core.errors import Unavailable
from core.versions import version
from core.web.outages import unavailable
from dynabench.operations.soundness.health import check_schema, check_static_files, read_part_states

CACHE_SECONDS = 1.0
_asking = threading.Lock()
_last: tuple[float, dict[str, str]] | None = None


@login_not_required
def healthz(request: HttpRequest) -> HttpResponse:
    """Show that the web process responds, and its version.

    It checks nothing else, because a restart would not cure that.
    """
    return JsonResponse({"status": "ok", "version": version()})


Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def open_when_ready(make: Callable[[], Application]) -> Application:
    """Return the application of `make`, which responds with 503 until its version is set up.

    Before `manage.py migrate` the application would fail or store incomplete rows, and
    before `collectstatic` each page would fail. `/healthz/` gives the reason, so that a
    proxy keeps sending people to the former version. The application opens by itself and
    then never checks again. It is rebuilt on opening, because the closed one knows no
    static files.
    """
    application, is_open, was_closed = make(), False, False
    opening_lock = threading.Lock()

    def served(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        nonlocal application, is_open, was_closed
        if is_open:  # nearly always
            return application(environ, start_response)
        try:
            reason = _explain_unready()
        except (DatabaseError, InterfaceError):
            # The application itself tells of that. Whether it may open is asked the next time.
            return application(environ, start_response)
        if not reason:
            with opening_lock:  # of several threads that find it ready, one opens it
                if was_closed and not is_open:
                    _read_static_names()
                    application = make()
                is_open = True
            return application(environ, start_response)
        was_closed = True
        # Pages of the former version, which serves beside this one, name static files here too.
        if environ["PATH_INFO"].startswith(settings.STATIC_URL):
            return application(environ, start_response)
        response = _respond_closed(WSGIRequest(environ), reason)
        start_response(f"503 {response.reason_phrase}", list(response.items()))
        return response

    return served


def _read_static_names() -> None:
    """Reload the names of the collected static files."""
    if isinstance(staticfiles_storage, ManifestFilesMixin):
        storage: Any = staticfiles_storage
        storage.hashed_files, storage.manifest_hash = storage.load_manifest()


def _explain_unready() -> str:
    """Return what this version lacks to serve, as a sentence; empty if nothing.

    Raises DatabaseError or InterfaceError if the database does not respond.
    """
    findings = [check_schema(), check_static_files()]
    return " ".join(finding.message for finding in findings if finding.state != "ok")


def _respond_closed(request: HttpRequest, reason: str) -> HttpResponse:
    if request.path == "/healthz/":
        body = {"status": "waits", "version": version(), "reason": reason}
        return JsonResponse(body, status=503, headers={"Retry-After": "5"})
    error = Unavailable(_("The site is being upgraded. Try again in a minute."), wait=5)
    response = unavailable(request, error)
    assert response is not None  # an Unavailable always has an answer
    return response


@login_not_required
def readyz(request: HttpRequest) -> HttpResponse:
    """Show the state of each part of the site by name; status 503 if one is not ok."""
    body = _read_parts()
    failing_parts = [name for name, state in body.items() if state != "ok"]
    if not failing_parts:
        return JsonResponse({"status": "ok", "parts": body})
    response = JsonResponse({"status": "down", "parts": body}, status=503)
    response["Retry-After"] = "5"
    response.reason_logged = f"not well: {', '.join(failing_parts)}"  # type: ignore[attr-defined]
    return response


def _read_parts() -> dict[str, str]:
    """Return the states of the parts, at most a few seconds old. Only one thread checks at a time.

    While a part hangs, only that thread waits; others get the former states.
    """
    global _last
    former_reading = _last
    if not _asking.acquire(blocking=former_reading is None):
        assert former_reading is not None  # or this thread had waited
        return former_reading[1]
    try:
        if _last is None or time.monotonic() - _last[0] > CACHE_SECONDS:
            _last = (time.monotonic(), read_part_states())
        return _last[1]
    finally:
        _asking.release()
