"""Addresses to which a file is sent in pieces; docs/evaluation.md has an example."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_http_methods, require_POST

from dynabench.lib.bodies import takes
from evaluation.models import Upload
from evaluation.uploads.chunked import (
    PIECE_BYTES,
    UploadRefused,
    WrongOffset,
    add_piece,
    begin_upload,
    discard,
    received,
)


@require_POST
def uploads(request: HttpRequest) -> JsonResponse:
    """Begin an upload of `size` bytes under the name `file_name`."""
    text = request.POST.get("size", "")
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        return _refused("size: a whole number of bytes is needed.", 400)
    try:
        made = begin_upload(request.user, request.POST.get("file_name", ""), int(text))  # type: ignore[arg-type]
    except UploadRefused as error:
        return _refused(str(error), 422)
    return JsonResponse({**_state(made), "piece": PIECE_BYTES}, status=201)


@takes(PIECE_BYTES)
@require_http_methods(["GET", "PUT", "DELETE"])
def upload(request: HttpRequest, pk: UUID) -> HttpResponse:
    """How far an upload is; PUT adds the piece at `offset`, DELETE takes all of it away."""
    one = get_object_or_404(Upload, pk=pk, owner=request.user)
    if request.method == "DELETE":
        discard(one)
        return HttpResponse(status=204)
    if request.method == "PUT":
        text = request.GET.get("offset", "")
        if not (text.isascii() and text.isdigit() and len(text) < 16):
            return _refused("offset: the number of bytes before this piece is needed.", 400)
        try:
            add_piece(one, int(text), request, _length(request))  # type: ignore[arg-type]
        except WrongOffset as error:
            return JsonResponse({"error": str(error), "offset": error.offset}, status=409)
        except UploadRefused as error:
            return _refused(str(error), 422)
    return JsonResponse(_state(one))


def _length(request: HttpRequest) -> int | None:
    text = request.META.get("CONTENT_LENGTH") or ""
    return int(text) if text.isdigit() else None


def _state(one: Upload) -> dict[str, str | int]:
    return {"id": str(one.pk), "offset": received(one), "size": one.size}


def _refused(message: str, status: int) -> JsonResponse:
    return JsonResponse({"error": message}, status=status)
