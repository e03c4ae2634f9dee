"""Serve pictures and recordings to browsers."""

import re

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from tasks.contexts.media.selectors import can_open
from tasks.models import Media

RANGE_PATTERN = re.compile(r"bytes=(\d+)-(\d*)")
FILE_HEADERS = {
    "Accept-Ranges": "bytes",
    "Cache-Control": "private, max-age=31536000, immutable",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}


@login_not_required
@require_safe
def serve_media_file(request: HttpRequest, digest: str) -> HttpResponse:
    """Serve a picture or recording to people who may see something that refers to it.

    Only files written by `core.files.decoding` are served, with the type it wrote. The content for
    a digest never changes.
    """
    # The address has no task in it. Several tasks may have the same file, and whoever may see it
    # in one of them may open it.
    rows = Media.objects.filter(digest=digest).select_related("task", "sent_by")
    media = next((row for row in rows if can_open(request.user, row)), None)
    if media is None:
        raise Http404
    return serve_file(request, media)


def serve_file(request: HttpRequest, media: Media) -> HttpResponse:
    """Return a response with the file, for a person who may see it. Raises Http404.

    Answers 304 if the browser has the file, and 206 or 416 to a request for a range.
    """
    tag = f'"{media.digest}"'
    # The digest never changes, so a browser that has the file needs nothing more.
    if request.headers.get("If-None-Match") == tag:
        return HttpResponse(status=304, headers={**FILE_HEADERS, "ETag": tag})
    try:
        with media.file.open("rb") as file:
            data = file.read()
    except FileNotFoundError:
        raise Http404 from None
    return _serve_range(request, data, {**FILE_HEADERS, "ETag": tag, "Content-Type": media.mime})


def _serve_range(request: HttpRequest, data: bytes, headers: dict[str, str]) -> HttpResponse:
    """Return a response with the requested range of bytes, or all bytes if none is requested."""
    byte_range = RANGE_PATTERN.fullmatch(request.headers.get("Range", ""))
    if not byte_range:
        return HttpResponse(data, headers=headers)
    start, end = int(byte_range[1]), min(int(byte_range[2] or len(data)), len(data) - 1)
    if start > end:
        headers["Content-Range"] = f"bytes */{len(data)}"
        return HttpResponse(status=416, headers=headers)
    headers["Content-Range"] = f"bytes {start}-{end}/{len(data)}"
    return HttpResponse(data[start : end + 1], status=206, headers=headers)
