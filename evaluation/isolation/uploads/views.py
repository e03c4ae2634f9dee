"""Uploads in pieces from the pages; docs/api.md has the protocol."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_http_methods, require_POST
from rest_framework.request import Request

from core.errors import Refused
from core.web.bodies import takes
from evaluation.isolation.uploads.chunked import (
    PIECE_BYTES,
    WrongOffset,
    add_piece,
    begin_upload,
    discard,
    received,
)
from evaluation.models import Upload


@require_POST
def uploads(request: HttpRequest) -> JsonResponse:
    """Begin an upload of `size` bytes with the name `file_name`."""
    try:
        size = _whole(request.POST.get("size"), "size: a whole number of bytes is needed.")
        new_upload = begin_upload(request.user, request.POST.get("file_name", ""), size)  # type: ignore[arg-type]
    except Refused as error:
        return _refusal(error)
    return JsonResponse({**_state(new_upload), "piece": PIECE_BYTES}, status=201)


@takes(PIECE_BYTES)
@require_http_methods(["GET", "PUT", "DELETE"])
def upload(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Return the progress of an upload.

    PUT adds the piece at `offset`, DELETE discards the upload.
    """
    own_upload = get_object_or_404(Upload, pk=pk, owner=request.user)
    if request.method == "DELETE":
        discard(own_upload)
        return HttpResponse(status=204)
    if request.method == "PUT":
        missing = "offset: the number of bytes before this piece is needed."
        try:
            offset = _whole(request.GET.get("offset"), missing)
            add_piece(own_upload, offset, request, announced_bytes(request))
        except Refused as error:
            return _refusal(error)
    return JsonResponse(_state(own_upload))


def announced_bytes(request: HttpRequest | Request) -> int | None:
    """Return the length of the body according to its header; None if the header is missing."""
    text = request.META.get("CONTENT_LENGTH") or ""
    if not text.isdigit():
        return None
    return int(text)


def _whole(text: str | None, missing: str) -> int:
    """Return a form or query value as an integer. Raises Refused (400)."""
    if text and text.isascii() and text.isdigit() and len(text) < 16:
        return int(text)
    raise Refused(missing, status=400)


def _state(upload: Upload) -> dict[str, str | int]:
    return {"id": str(upload.pk), "offset": received(upload), "size": upload.size}


def _refusal(error: Refused) -> JsonResponse:
    body: dict[str, str | int] = {"error": str(error)}
    if isinstance(error, WrongOffset):
        body["offset"] = error.offset
    return JsonResponse(body, status=error.status)
