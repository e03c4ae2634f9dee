"""Remember the page that asked somebody to confirm an address, and lead them back to it."""

from django.http import HttpRequest

SESSION_KEY = "place_before_confirming"


def remember_return_page(request: HttpRequest) -> None:
    """Remember in the session the page to return to after the person confirms an address."""
    # Setting it stores the session again, which each reload of the page would do.
    if request.session.get(SESSION_KEY) != request.path:
        request.session[SESSION_KEY] = request.path


def pop_return_page(request: HttpRequest) -> str:
    """Return the remembered page and forget it; "" without one."""
    return str(request.session.pop(SESSION_KEY, ""))
