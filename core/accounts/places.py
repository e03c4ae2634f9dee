"""Where somebody was asked to confirm an address first, to lead them back there once they have."""

from django.http import HttpRequest

PLACE = "place_before_confirming"


def keep_place(request: HttpRequest) -> None:
    """Note that the page of the request waits for a confirmed address."""
    # Setting it stores the session again, which each reload of the page would do.
    if request.session.get(PLACE) != request.path:
        request.session[PLACE] = request.path


def leave_place(request: HttpRequest) -> str:
    """Return the remembered page and forget it; empty where there is none."""
    return str(request.session.pop(PLACE, ""))
