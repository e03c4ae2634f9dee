"""Whether this process lives, and whether the parts of the site answer. For supervisors."""

import threading
import time

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse

from dynabench.lib.versions import version
from evaluation.operations.health import parts

KEPT_SECONDS = 1.0
_asking = threading.Lock()
_last: tuple[float, dict[str, str]] | None = None


@login_not_required
def healthz(request: HttpRequest) -> HttpResponse:
    """The web process answers, and of which version; a restart would mend nothing else."""
    return JsonResponse({"status": "ok", "version": version()})


@login_not_required
def readyz(request: HttpRequest) -> HttpResponse:
    """Each part of the site by its name, ok or not; 503 when one is not."""
    body = _parts()
    down = [name for name, state in body.items() if state != "ok"]
    if not down:
        return JsonResponse({"status": "ok", "parts": body})
    response = JsonResponse({"status": "down", "parts": body}, status=503)
    response["Retry-After"] = "5"
    response.reason_logged = f"not well: {', '.join(down)}"  # type: ignore[attr-defined]
    return response


def _parts() -> dict[str, str]:
    """What is true now, or was a moment ago: one thread asks, however many want to know."""
    global _last
    with _asking:
        if _last is None or time.monotonic() - _last[0] > KEPT_SECONDS:
            found = parts()
            _last = (time.monotonic(), found)
        return _last[1]
