"""Files that come in pieces: one protocol for programs and for the script of the pages.

docs/api.md has the protocol. Pages have the same views at addresses of their own, where messages
are in the language of the person (`evaluation/urls.py`).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import IO, Any
from uuid import UUID

from django.db.models import QuerySet, Sum, Value
from django.db.models.functions import Coalesce
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import generics, serializers, status
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.accounts.api import write
from core.accounts.models import ApiToken
from core.accounts.people import person
from core.web.api import read, wanted
from core.web.bodies import takes
from evaluation.isolation.uploads.chunked import (
    PIECE_BYTES,
    UploadRefused,
    WrongOffset,
    add_piece,
    are_waiting_answers,
    begin_upload,
    discard,
    open_uploads,
)
from evaluation.models import Upload

MAX_INTEGER = 2**63 - 1
FORM_REFUSAL = (
    "A form around a file is no piece of it. Send only its bytes: `curl -X PUT --data-binary @FILE`"
    ", or `data=` of requests, not `-F` or `files=`."
)


class Octets(BaseParser):
    """A parser that passes on the body's stream, so that memory never holds the whole body.

    Accepts any media type but forms, because programs name it differently: curl calls every body
    `application/x-www-form-urlencoded`, and others send no type.
    """

    media_type = "*/*"

    def parse(self, stream: IO[Any], media_type: str | None = None, *_: Any, **__: Any) -> Any:
        """Return the stream itself. Raises UnsupportedMediaType for multipart forms."""
        if (media_type or "").lower().startswith("multipart/"):
            raise UnsupportedMediaType(media_type or "", FORM_REFUSAL)
        return stream


class UploadSerializer(serializers.ModelSerializer[Upload]):
    """An upload and the number of bytes received."""

    received = serializers.IntegerField(help_text="Bytes; the offset of the next piece.")
    piece_bytes = serializers.IntegerField(help_text="The most that a piece may have.")

    class Meta:
        model = Upload
        fields = ("id", "file_name", "size", "received", "piece_bytes", "begun_at")


class NewUploadSerializer(serializers.Serializer[Any]):
    """A file to upload."""

    file_name = serializers.CharField(max_length=1000)
    size = serializers.IntegerField(min_value=1, max_value=MAX_INTEGER, help_text="Bytes.")


def annotate_received(uploads: QuerySet[Upload]) -> QuerySet[Any]:
    """Annotate uploads with the number of bytes received, which their serializer shows."""
    here = Coalesce(Sum("pieces__size"), Value(0))
    return uploads.annotate(received=here, piece_bytes=Value(PIECE_BYTES))


@extend_schema_view(get=extend_schema(operation_id="uploads_list"))
class Uploads(generics.ListAPIView[Upload]):
    """List your uploads that are not submitted yet, so that you can resume them."""

    write_scope = ApiToken.Scope.SUBMIT
    serializer_class = UploadSerializer
    queryset = Upload.objects.none()

    def get_queryset(self) -> QuerySet[Any]:
        return annotate_received(open_uploads(person(self.request)))

    @write("uploads_create", NewUploadSerializer, {201: UploadSerializer})
    def post(self, request: Request) -> Response:
        """Begin an upload of `size` bytes. Then PUT its pieces."""
        fields = read(NewUploadSerializer, request)
        with _attribute_refusals("size"):
            upload = begin_upload(person(request), **fields)
        return Response(upload_body(upload.pk), status.HTTP_201_CREATED)


@contextmanager
def _attribute_refusals(field: str) -> Iterator[None]:
    """Attribute refusals within the block to a field of this request; "" for its body."""
    try:
        yield
    except UploadRefused as error:
        if not isinstance(error, WrongOffset):
            error.field = field
        raise


def upload_body(pk: UUID) -> Any:
    """Return the serialized upload as it is now."""
    return UploadSerializer(annotate_received(Upload.objects.filter(pk=pk)).get()).data


def content_length_of(request: Request) -> int | None:
    """Return the length of the body according to its header; None if the header is missing."""
    text = request.META.get("CONTENT_LENGTH") or ""
    if not text.isdigit():
        return None
    return int(text)


class PieceSerializer(serializers.Serializer[Any]):
    """The offset of a piece."""

    offset = serializers.IntegerField(min_value=0, max_value=MAX_INTEGER)


@takes(PIECE_BYTES)
class UploadView(APIView):
    reads_query = ("PUT",)
    write_scope = ApiToken.Scope.SUBMIT
    parser_classes = [Octets]

    def _find(self, request: Request, pk: UUID) -> Upload:
        return get_object_or_404(Upload, pk=pk, owner=request.user)

    @extend_schema(operation_id="uploads_get", responses=UploadSerializer)
    def get(self, request: Request, pk: UUID) -> Response:
        """Get the number of bytes received."""
        return Response(upload_body(self._find(request, pk).pk))

    @extend_schema(
        operation_id="uploads_put",
        parameters=[PieceSerializer],
        request={"application/octet-stream": OpenApiTypes.BINARY},
        responses=UploadSerializer,
    )
    def put(self, request: Request, pk: UUID) -> Response:
        """Add the piece that begins at `offset`. A piece that was already received changes nothing.

        The body is the bytes of the piece, with any Content-Type except multipart forms. Fails with
        409 and the code `offset` if another piece is next; `received` then says which. A piece may
        be sent again, so no Idempotency-Key is needed.
        """
        upload = self._find(request, pk)
        offset = wanted(PieceSerializer, request)["offset"]
        # A request without a body has no stream.
        stream = request.data if hasattr(request.data, "read") else BytesIO()
        with _attribute_refusals(""):
            add_piece(upload, offset, stream, content_length_of(request))
        return Response(upload_body(upload.pk))

    @write("uploads_delete", None, {204: None})
    def delete(self, request: Request, pk: UUID) -> Response:
        """Discard an upload."""
        # A submitted file belongs to its model.
        free = Upload.objects.exclude(are_waiting_answers())
        discard(get_object_or_404(free, pk=pk, owner=request.user))
        return Response(status=status.HTTP_204_NO_CONTENT)
