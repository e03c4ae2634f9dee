"""Respond to requests for charts as files."""

from collections.abc import Mapping
from hashlib import sha256

from allauth.account.adapter import get_adapter
from django.core.cache import cache
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from core.figures.figure import Figure, render_figure_png, write_figure_svg
from core.web.downloads import respond_with_attachment
from core.web.throttles import is_used_up

FORMATS = ("svg", "png")
"""The endings of the files' names in URLs."""
PICTURE_SECONDS = 600
"""How long a picture is cached. Drawing one blocks all other requests of its process."""
LIMIT_SECONDS = 3600


def respond_with_figure(
    request: HttpRequest,
    figures: Mapping[str, Figure],
    name: str,
    format: str,
    *,
    prefix: str,
    page: str,
    edition: str = "",
) -> HttpResponse:
    """Return a chart as a file. Raises Http404 for an unknown chart or format.

    Returns status 429 if the caller has requested too many new pictures within the hour.

    prefix: the beginning of the file name. page: the URL of the page that shows the chart. edition:
    identifies the data, such as a snapshot's number.
    """
    if name not in figures or format not in FORMATS:
        raise Http404
    # Both formats are made of the same drawing.
    svg = write_figure_svg(figures[name], describe_source(request, page, edition))
    file_name = f"{prefix}-{name}.{format}"
    if format == "svg":
        return respond_with_attachment(svg, file_name, "image/svg+xml")
    picture = _get_or_render_picture(request, svg)
    if picture is None:
        return _build_limit_response()
    # A picture is bytes, for which the usual attachment has no use.
    headers = {"Content-Disposition": f'attachment; filename="{file_name}"'}
    return HttpResponse(picture, content_type="image/png", headers=headers)


def _get_or_render_picture(request: HttpRequest, svg: str) -> bytes | None:
    """Return the cached picture of the drawing, or a new one; None if the limit is reached."""
    # By all that it shows, so that nobody gets a picture of what they may not see.
    key = f"figure-png:{sha256(svg.encode()).hexdigest()}"
    # A cached picture costs nothing, so it is given beyond the limit, too.
    picture: bytes | None = cache.get(key)
    if picture is None and not is_used_up("chart", _identify_caller(request)):
        picture = render_figure_png(svg)
        cache.set(key, picture, PICTURE_SECONDS)
    return picture


def _identify_caller(request: HttpRequest) -> object:
    """Return the id of the person, or the address of somebody who is not signed in."""
    if request.user.is_authenticated:
        return request.user.pk
    return get_adapter().get_client_ip(request)


def _build_limit_response() -> HttpResponse:
    message = _("You've reached the hourly limit. Try again in an hour.")
    return HttpResponse(
        f"{message}\n",
        status=429,
        content_type="text/plain; charset=utf-8",
        headers={"Retry-After": str(LIMIT_SECONDS)},
    )


def describe_source(request: HttpRequest, page: str, edition: str) -> str:
    """Return the line that names a chart's source: the page's absolute URL and the edition."""
    # Absolute: a file is read far from the site.
    address = request.build_absolute_uri(page)
    source = _("Source: %(address)s") % {"address": address}
    return f"{source}, {edition}" if edition else source
