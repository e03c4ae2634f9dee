"""The API's views of pictures and recordings."""

import base64
import binascii
from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.accounts.api import write
from core.accounts.models import ApiToken
from core.accounts.people import get_person
from core.accounts.services import get_annotator
from core.errors import Refused
from core.files.decoding import MAX_BYTES
from core.web.api import read
from core.web.bodies import limit_body, read_whole_body
from core.web.throttles import is_used_up
from tasks.access import find_task
from tasks.contexts.media.selectors import can_open
from tasks.contexts.media.services import TOO_OFTEN_MESSAGE, store_media
from tasks.contexts.media.views import serve_file
from tasks.permissions import can_write

MAX_JSON_BYTES = MAX_BYTES * 4 // 3 + 2**16
"""The maximum size of a request. Base64 takes four bytes for three."""


class NewMediaSerializer(serializers.Serializer[Any]):
    """A picture or recording to store."""

    kind = serializers.ChoiceField(["image", "audio"])
    content = serializers.CharField(
        max_length=MAX_JSON_BYTES, help_text="The file in base64, at most 10 MB before that."
    )


class MediaSerializer(serializers.Serializer[Any]):
    """A stored file. With `alt` added, it is the value of a field."""

    digest = serializers.CharField()
    mime = serializers.CharField()
    bytes = serializers.IntegerField()
    width = serializers.IntegerField(required=False, help_text="Of a picture, in pixels.")
    height = serializers.IntegerField(required=False, help_text="Of a picture, in pixels.")
    seconds = serializers.FloatField(required=False, help_text="Of a recording.")


@limit_body(MAX_JSON_BYTES)
class NewMedia(APIView):
    """Uploads of pictures and recordings to a task."""

    write_scope = ApiToken.Scope.ANNOTATE

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        read_whole_body(request._request)

    @write("media_create", NewMediaSerializer, {201: MediaSerializer})
    def post(self, request: Request, code: str) -> Response:
        """Store a picture or recording for an example or a context of the task.

        A file that nothing refers to is deleted after a day.
        """
        task = find_task(request, code, can_write)
        upload = read(NewMediaSerializer, request)
        if upload["kind"] not in task.config.media_fields.values():
            raise serializers.ValidationError(
                {"kind": ["The task doesn't have a field of this type."]}
            )
        try:
            data = base64.b64decode(upload["content"], validate=True)
        except (binascii.Error, ValueError):
            raise serializers.ValidationError({"content": ["This isn't base64."]}) from None
        uploader = get_annotator(get_person(request))
        # Counted before the file is decoded, which takes the time.
        if is_used_up("media", uploader.pk):
            raise Refused(TOO_OFTEN_MESSAGE, code="throttled", status=429)
        stored_media = store_media(task=task, kind=upload["kind"], data=data, sent_by=uploader)
        return Response(stored_media, status.HTTP_201_CREATED)


class MediaFile(APIView):
    """One stored picture or recording."""

    @extend_schema(operation_id="media_get", responses={(200, "image/png"): OpenApiTypes.BINARY})
    def get(self, request: Request, code: str, digest: str) -> HttpResponse:
        """Return a picture or recording of the task as it is stored."""
        task = find_task(request, code)
        media = get_object_or_404(task.media.select_related("sent_by"), digest=digest)
        media.task = task
        if not can_open(request.user, media):
            raise Http404
        return serve_file(request._request, media)
