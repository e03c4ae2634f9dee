"""Health checks for supervisors: whether this process lives and the site's parts are ready."""

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
from core.versions import get_version
from core.web.outages import respond_unavailable
from dynabench.operations.soundness.health import check_schema, check_static_files, read_part_states

CACHE_SECONDS = 1.0
_reading_lock = threading.Lock()
_last_reading: tuple[float, dict[str, str]] | None = None


@login_not_required
def show_health(request: HttpRequest) -> HttpResponse:
    """Show that the web process responds, and its version.

    Checks nothing else, because restarting the process would not repair anything else.
    """
    return JsonResponse({"status": "ok", "version": get_version()})


Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def open_when_ready(make_application: Callable[[], Application]) -> Application:
    """Return an application that responds with 503 until its version is set up.

    Before `manage.py migrate` the application would fail or store incomplete rows, and before
    `collectstatic` each page would fail. `/healthz/` gives the reason, so that a proxy continues
    to send people to the former version. The application opens by itself and then never checks
    again. Then `make_application` is called once more, because the first application knows no
    static files.
    """
    application, is_open, was_closed = make_application(), False, False
    opening_lock = threading.Lock()

    def serve_request(
        environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
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
                    application = make_application()
                is_open = True
            return application(environ, start_response)
        was_closed = True
        # Pages of the former version, which serves beside this one, name static files here too.
        if environ["PATH_INFO"].startswith(settings.STATIC_URL):
            return application(environ, start_response)
        response = _respond_closed(WSGIRequest(environ), reason)
        start_response(f"503 {response.reason_phrase}", list(response.items()))
        return response

    return serve_request


def _read_static_names() -> None:
    """Reload the names of the collected static files."""
    if isinstance(staticfiles_storage, ManifestFilesMixin):
        storage: Any = staticfiles_storage
        storage.hashed_files, storage.manifest_hash = storage.load_manifest()


def _explain_unready() -> str:
    """Return what keeps this version from serving, as sentences; "" if nothing does.

    Raises DatabaseError or InterfaceError if the database does not respond.
    """
    findings = [check_schema(), check_static_files()]
    return " ".join(finding.message for finding in findings if finding.state != "ok")


def _respond_closed(request: HttpRequest, reason: str) -> HttpResponse:
    if request.path == "/healthz/":
        body = {"status": "waits", "version": get_version(), "reason": reason}
        return JsonResponse(body, status=503, headers={"Retry-After": "5"})
    error = Unavailable(_("We're upgrading the site. Try again in a minute."), wait=5)
    response = respond_unavailable(request, error)
    assert response is not None  # an Unavailable always has an answer
    return response


@login_not_required
def show_readiness(request: HttpRequest) -> HttpResponse:
    """Show the state of each part of the site by name; status 503 if one is not ok."""
    part_states = _get_part_states()
    failing_parts = [name for name, state in part_states.items() if state != "ok"]
    if not failing_parts:
        return JsonResponse({"status": "ok", "parts": part_states})
    response = JsonResponse({"status": "down", "parts": part_states}, status=503)
    response["Retry-After"] = "5"
    response.reason_logged = f"unhealthy: {', '.join(failing_parts)}"  # type: ignore[attr-defined]
    return response


def _get_part_states() -> dict[str, str]:
    """Return the states of the parts by name, at most about CACHE_SECONDS old.

    Only one thread checks at a time. While a part hangs, only that thread waits; others get the
    former states.
    """
    global _last_reading
    former_reading = _last_reading
    if not _reading_lock.acquire(blocking=former_reading is None):
        assert former_reading is not None  # or this thread had waited
        return former_reading[1]
    try:
        if _last_reading is None or time.monotonic() - _last_reading[0] > CACHE_SECONDS:
            _last_reading = (time.monotonic(), read_part_states())
        return _last_reading[1]
    finally:
        _reading_lock.release()
