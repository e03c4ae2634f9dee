"""The API's views of a round's contexts."""

import base64
import binascii
from io import BytesIO
from typing import Any

from django.db.models import Count, QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.accounts.api import write
from core.accounts.models import ApiToken
from core.web.api import read
from core.web.bodies import limit_body, read_whole_body
from tasks.access import find_task, find_task_and_editor
from tasks.api.serializers import ContextSerializer
from tasks.contexts.files import Summary
from tasks.contexts.services import import_contexts, preview_contexts, set_retired, undo_import
from tasks.contexts.uploads import MAX_BYTES
from tasks.line_files import FileError
from tasks.models import Context, ContextBatch
from tasks.permissions import can_edit, can_read

BINARY_FORMATS = ["xlsx", "xls", "ods", "zip"]
MAX_JSON_BYTES = 32 << 20  # MAX_BYTES and what JSON puts before quotes and line breaks


class NewContextsSerializer(serializers.Serializer[Any]):
    """A file of contexts: text, or a spreadsheet or archive in base64."""

    format = serializers.ChoiceField(["jsonl", "csv", "tsv", "txt", *BINARY_FORMATS])
    text = serializers.CharField(
        max_length=MAX_JSON_BYTES,
        trim_whitespace=False,
        help_text="The context fields, with an optional tag and metadata. For a spreadsheet "
        "or zip, its base64. A zip contains one table, and the pictures and "
        "recordings that it names.",
    )
    dry_run = serializers.BooleanField(default=False, help_text="Only tell what it would bring.")
    skip_bad = serializers.BooleanField(
        default=False, help_text="Store the good lines. Otherwise one bad line refuses all."
    )


class BadLineSerializer(serializers.Serializer[Any]):
    """A line that cannot be stored, and how to correct it."""

    line = serializers.IntegerField()
    message = serializers.CharField()


class DuplicateContextSerializer(BadLineSerializer):
    """A line that repeats an earlier line or a context of the round."""

    of = serializers.IntegerField(allow_null=True, help_text="That line; null: in the round.")


class ImportedContextsSerializer(serializers.Serializer[Any]):
    """The result of an import or of a dry run, with at most 200 errors and 200 duplicates."""

    stored = serializers.IntegerField(source="stored_count")
    new = serializers.IntegerField(source="new_count", help_text="Good rows that the round lacked.")
    error_count = serializers.IntegerField()
    duplicate_count = serializers.IntegerField()
    errors: Any = BadLineSerializer(many=True)
    duplicates = DuplicateContextSerializer(many=True)


@limit_body(MAX_JSON_BYTES)
@extend_schema_view(get=extend_schema(operation_id="contexts_list"))
class Contexts(generics.ListAPIView[Context]):
    """All contexts of a round. Members only."""

    write_scope = ApiToken.Scope.OWN
    serializer_class = ContextSerializer
    queryset = Context.objects.none()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        # The body is read once here, with the limit for files in place of the usual one.
        if request.method == "POST":
            read_whole_body(request._request)

    def get_queryset(self) -> QuerySet[Context]:
        task = find_task(self.request, self.kwargs["code"], can_read)
        round = get_object_or_404(task.rounds, number=self.kwargs["number"])
        return round.contexts.select_related("batch")

    @write(
        "contexts_import",
        NewContextsSerializer,
        {200: ImportedContextsSerializer, 201: ImportedContextsSerializer},
    )
    def post(self, request: Request, code: str, number: int) -> Response:
        """Import contexts into a round. The status is 201 if they are stored, 200 for a dry run."""
        task, editor = find_task_and_editor(request, code)
        round = get_object_or_404(task.rounds, number=number)
        data = read(NewContextsSerializer, request)
        file = BytesIO(_read_upload(data))
        name = f"api.{data['format']}"
        try:
            summary = preview_contexts(round=round, lines=file, file_name=name)
        except FileError as error:
            raise serializers.ValidationError({"text": [str(error)]}) from None
        if data["dry_run"]:
            return Response(ImportedContextsSerializer(summary).data)
        if summary.errors and not data["skip_bad"]:
            raise serializers.ValidationError({"text": _list_errors(summary)})
        import_contexts(round=round, summary=summary, file_name=name, actor=editor)
        return Response(ImportedContextsSerializer(summary).data, status.HTTP_201_CREATED)


def _read_upload(request_data: dict[str, Any]) -> bytes:
    """Return the content of the uploaded file. Raises ValidationError."""
    data: bytes = request_data["text"].encode()
    if request_data["format"] in BINARY_FORMATS:
        try:
            return base64.b64decode(data, validate=True)
        except binascii.Error:
            raise serializers.ValidationError({"text": ["This isn't base64."]}) from None
    # The limit of the request is larger, for JSON escapes characters.
    if len(request_data["text"]) > MAX_BYTES:
        raise serializers.ValidationError({"text": ["The file is larger than 20 MB. Split it."]})
    return data


def _list_errors(summary: Summary) -> list[str]:
    """Return a message for each invalid line in the summary, and one that counts the others."""
    messages = [f"line {error.line}: {error.message}" for error in summary.errors]
    unlisted_count = summary.error_count - len(messages)
    if unlisted_count:
        messages.append(f"{unlisted_count} more lines are wrong")
    return messages


class ContextChangeSerializer(serializers.Serializer[Any]):
    """Whether a context is retired, and so no longer assigned."""

    is_retired = serializers.BooleanField()


class ContextView(APIView):
    """One context."""

    write_scope = ApiToken.Scope.OWN

    @write("contexts_change", ContextChangeSerializer, ContextSerializer)
    def patch(self, request: Request, code: str, number: int, pk: int) -> Response:
        """Retire a context, so that it is no longer assigned, or restore it."""
        task, editor = find_task_and_editor(request, code)
        data = read(ContextChangeSerializer, request)
        contexts = Context.objects.filter(round__task=task, round__number=number, pk=pk)
        get_object_or_404(contexts)
        set_retired(contexts=contexts, actor=editor, **data)
        return Response(ContextSerializer(contexts.select_related("batch").get()).data)


class ContextBatchSerializer(serializers.ModelSerializer[ContextBatch]):
    """One import of contexts."""

    contexts = serializers.IntegerField(help_text="How many it brought.")

    class Meta:
        model = ContextBatch
        fields = read_only_fields = ("id", "file_name", "imported_at", "contexts")


@extend_schema_view(get=extend_schema(operation_id="context_batches_list"))
class ContextBatches(generics.ListAPIView[ContextBatch]):
    """The imports of a round's contexts. Task editors only."""

    serializer_class = ContextBatchSerializer
    queryset = ContextBatch.objects.none()

    def get_queryset(self) -> QuerySet[ContextBatch]:
        task = find_task(self.request, self.kwargs["code"], can_edit)
        round = get_object_or_404(task.rounds, number=self.kwargs["number"])
        return round.batches.annotate(contexts=Count("context"))


class ContextBatchView(APIView):
    """One import of contexts."""

    write_scope = ApiToken.Scope.OWN

    @write("context_batches_undo", gives={204: None})
    def delete(self, request: Request, code: str, number: int, pk: int) -> Response:
        """Undo an import: delete its contexts. Refused if one of them was used."""
        task, editor = find_task_and_editor(request, code)
        batches = ContextBatch.objects.filter(round__task=task, round__number=number)
        undo_import(batch=get_object_or_404(batches, pk=pk), actor=editor)
        return Response(status=status.HTTP_204_NO_CONTENT)
