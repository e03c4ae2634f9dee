"""Which shape of a page a request wants."""

from collections.abc import Mapping
from typing import Any

from django.forms import BaseForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers


def htmx_partial(request: HttpRequest) -> bool:
    """Return whether the request asks for a part of the page."""
    htmx = request.htmx  # type: ignore[attr-defined]
    return bool(htmx) and not htmx.boosted and not htmx.history_restore_request


def render_page(
    request: HttpRequest,
    template: str,
    context: Mapping[str, Any],
    *,
    part: str,
    status: int = 200,
) -> HttpResponse:
    """Render the page or, for htmx, the named part of the same template."""
    name = f"{template}#{part}" if htmx_partial(request) else template
    response = render(request, name, {**context, "is_part": htmx_partial(request)}, status=status)
    # Otherwise a browser that goes back would show the cached part as the page.
    patch_vary_headers(response, ["HX-Request"])
    return response


def form_status(*forms: BaseForm | None) -> int:
    """Return the status for a page with these forms: 422 if one of them has errors, else 200."""
    for form in forms:
        if form is not None and form.errors:
            return 422
    return 200
