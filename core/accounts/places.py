"""Where somebody was asked to confirm an address first, to lead them back there once they have."""

from django.http import HttpRequest

PLACE = "place_before_confirming"


def keep_place(request: HttpRequest) -> None:
    """Remember the request's page until the person has confirmed an address."""
    # Setting it stores the session again, which each reload of the page would do.
    if request.session.get(PLACE) != request.path:
        request.session[PLACE] = request.path


def leave_place(request: HttpRequest) -> str:
    """Return the remembered page and forget it; "" without one."""
    return str(request.session.pop(PLACE, ""))
