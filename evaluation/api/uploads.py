"""API views of files that are uploaded in pieces, for programs and for the pages' own script.

docs/api.md describes the protocol. The pages use the same views at URLs of their own, where
messages are in the person's language (`evaluation/urls.py`).
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
from core.accounts.people import get_person
from core.web.api import read, read_query
from core.web.bodies import limit_body
from evaluation.isolation.uploads.chunked import (
    IN_CHECK_CONDITION,
    PIECE_BYTES,
    UploadRefused,
    WrongOffset,
    add_piece,
    begin_upload,
    build_needed_uploads_condition,
    discard_upload,
    select_open_uploads,
)
from evaluation.models import Upload

MAX_INTEGER = 2**63 - 1
MULTIPART_FORM_MESSAGE = (
    "Send only the bytes of the piece, without a form around it: `curl -X PUT "
    "--data-binary @FILE`, or `data=` of requests, not `-F` or `files=`."
)


class StreamParser(BaseParser):
    """A parser that passes on the body's stream, so that memory never holds the whole body.

    Accepts any media type except multipart forms, because programs label the same bytes
    differently: curl calls every body `application/x-www-form-urlencoded`, and others send no type.
    """

    media_type = "*/*"

    def parse(self, stream: IO[Any], media_type: str | None = None, *_: Any, **__: Any) -> Any:
        """Return the stream itself. Raises UnsupportedMediaType for multipart forms."""
        if (media_type or "").lower().startswith("multipart/"):
            raise UnsupportedMediaType(media_type or "", MULTIPART_FORM_MESSAGE)
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


def annotate_received_bytes(uploads: QuerySet[Upload]) -> QuerySet[Any]:
    """Annotate uploads with the number of bytes received, which their serializer shows."""
    received_bytes = Coalesce(Sum("pieces__size"), Value(0))
    return uploads.annotate(received=received_bytes, piece_bytes=Value(PIECE_BYTES))


@extend_schema_view(get=extend_schema(operation_id="uploads_list"))
class Uploads(generics.ListAPIView[Upload]):
    """List your uploads that are not submitted yet, so that you can resume them."""

    write_scope = ApiToken.Scope.SUBMIT
    serializer_class = UploadSerializer
    queryset = Upload.objects.none()

    def get_queryset(self) -> QuerySet[Any]:
        return annotate_received_bytes(select_open_uploads(get_person(self.request)))

    @write("uploads_create", NewUploadSerializer, {201: UploadSerializer})
    def post(self, request: Request) -> Response:
        """Begin an upload of `size` bytes. Then PUT its pieces."""
        fields = read(NewUploadSerializer, request)
        with _attribute_refusals("size"):
            upload = begin_upload(get_person(request), **fields)
        return Response(serialize_upload(upload.pk), status.HTTP_201_CREATED)


@contextmanager
def _attribute_refusals(field: str) -> Iterator[None]:
    """Attribute upload refusals in the block to this field of the request; "" means its body."""
    try:
        yield
    except UploadRefused as error:
        if not isinstance(error, WrongOffset):
            error.field = field
        raise


def serialize_upload(pk: UUID) -> Any:
    """Return the serialized upload as it is now."""
    return UploadSerializer(annotate_received_bytes(Upload.objects.filter(pk=pk)).get()).data


def get_content_length(request: Request) -> int | None:
    """Return the length of the body according to its header; None if the header is missing."""
    text = request.META.get("CONTENT_LENGTH") or ""
    if not text.isdigit():
        return None
    return int(text)


class PieceSerializer(serializers.Serializer[Any]):
    """The offset of a piece."""

    offset = serializers.IntegerField(min_value=0, max_value=MAX_INTEGER)


@limit_body(PIECE_BYTES)
class UploadView(APIView):
    reads_query = ("PUT",)
    write_scope = ApiToken.Scope.SUBMIT
    parser_classes = [StreamParser]

    def _find_upload(self, request: Request, pk: UUID) -> Upload:
        return get_object_or_404(Upload, pk=pk, owner=request.user)

    @extend_schema(operation_id="uploads_get", responses=UploadSerializer)
    def get(self, request: Request, pk: UUID) -> Response:
        """Get the number of bytes received."""
        return Response(serialize_upload(self._find_upload(request, pk).pk))

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
        upload = self._find_upload(request, pk)
        offset = read_query(PieceSerializer, request)["offset"]
        # Requests without a body have no stream.
        stream = request.data if hasattr(request.data, "read") else BytesIO()
        with _attribute_refusals(""):
            add_piece(upload, offset, stream, get_content_length(request))
        return Response(serialize_upload(upload.pk))

    @write("uploads_delete", None, {204: None})
    def delete(self, request: Request, pk: UUID) -> Response:
        """Discard an upload."""
        # A submitted file belongs to its model.
        discardable_uploads = Upload.objects.exclude(build_needed_uploads_condition())
        # So does a file that is still being checked.
        discardable_uploads = discardable_uploads.exclude(IN_CHECK_CONDITION)
        discard_upload(get_object_or_404(discardable_uploads, pk=pk, owner=request.user))
        return Response(status=status.HTTP_204_NO_CONTENT)
