"""Respond to htmx with a part of a page, and to browsers with the whole page."""

from collections.abc import Mapping
from typing import Any

from django.forms import BaseForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers


def is_htmx_partial(request: HttpRequest) -> bool:
    """Return whether htmx asks for only a part of the page."""
    htmx = request.htmx  # type: ignore[attr-defined]
    # Boosted links and restored history replace the body, so they need the whole page.
    return bool(htmx) and not htmx.boosted and not htmx.history_restore_request


def render_page(
    request: HttpRequest,
    template: str,
    context: Mapping[str, Any],
    *,
    block_name: str,
    status: int = 200,
) -> HttpResponse:
    """Render the page or, for htmx, the named part of the same template."""
    name = f"{template}#{block_name}" if is_htmx_partial(request) else template
    response = render(
        request, name, {**context, "is_part": is_htmx_partial(request)}, status=status
    )
    # Otherwise a browser that goes back would show the cached part as the page.
    patch_vary_headers(response, ["HX-Request"])
    return response


def get_form_status(*forms: BaseForm | None) -> int:
    """Return the status for a page with these forms: 422 if one of them has errors, else 200."""
    for form in forms:
        if form is not None and form.errors:
            return 422
    return 200
