"""API views of evaluation sets: reading and changing them, and downloading their inputs."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet
from django.http import Http404, HttpResponseBase
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import (
    extend_schema,
    extend_schema_field,
    extend_schema_view,
)
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.accounts.api import write
from core.accounts.models import ApiToken, User
from core.errors import Refused
from core.web.api import JSON_LINES_RESPONSE, read
from core.web.downloads import respond_with_lines
from core.web.form_fields import build_request_field
from evaluation.isolation.inference.precheck import EXAMPLE_COUNT
from evaluation.isolation.sandbox.limits import CHECK_SECONDS
from evaluation.isolation.uploads.chunked import (
    UploadRefused,
    assemble_upload,
    discard_upload,
    select_open_uploads,
)
from evaluation.models import EvaluationSet, EvaluationSetVersion
from evaluation.submissions.selectors import list_public_inputs
from evaluation.task_shape import describe_model_shape, format_model_config
from evaluation.test_sets.forms import MAX_FILE_BYTES, AboutForm, NewSetForm
from evaluation.test_sets.parsing import InvalidLines, SetFile
from evaluation.test_sets.selectors import (
    select_newest_versions,
    select_open_versions,
    yield_input_lines,
)
from evaluation.test_sets.services import (
    EDITABLE_FIELDS,
    change_set,
    create_set_with_version,
    make_version,
    record_inputs_taken,
    record_shown_examples,
)
from evaluation.test_sets.source_services import make_requested_round_version
from tasks.access import find_task, find_task_and_editor
from tasks.api.tasks import TaskPartView
from tasks.line_files import FileError
from tasks.models import Round, Task
from tasks.permissions import can_download, can_edit

OWN_SCOPE = ApiToken.Scope.OWN


class VersionSerializer(serializers.ModelSerializer[EvaluationSetVersion]):
    """A version of an evaluation set. It never changes."""

    overlap = serializers.FloatField(
        source="compute_overlap",
        allow_null=True,
        help_text="The part of it (0-1) that is in seeds or released rounds; null: not compared.",
    )

    class Meta:
        model = EvaluationSetVersion
        fields = (
            *("version", "size", "overlap", "made_at", "is_provisional", "judged", "to_judge"),
            *("exposed_at", "left_out"),
        )
        extra_kwargs = {
            "left_out": {
                "help_text": "Examples of its round about which nobody was asked, as people judged "
                "a sample; null: they judged all."
            },
            "exposed_at": {"help_text": "While sealed, its inputs first left; null: never."},
            "judged": {"help_text": "Examples of its round that were judged when it was taken."},
            "to_judge": {"help_text": "How many examples of its round are judged in total."},
        }

    is_provisional = serializers.BooleanField(
        read_only=True, help_text="Its round was still judged when it was taken."
    )


class EvaluationSetSerializer(serializers.ModelSerializer[EvaluationSet]):
    """An evaluation set and its newest version."""

    round = serializers.IntegerField(source="round.number", allow_null=True, default=None)
    newest = serializers.SerializerMethodField()

    class Meta:
        model = EvaluationSet
        fields = ("name", "source", "round", *EDITABLE_FIELDS, "newest")

    @extend_schema_field(VersionSerializer(allow_null=True))
    def get_newest(self, evaluation_set: EvaluationSet) -> Any:
        """Return the newest version; None if the set has none."""
        versions = list(evaluation_set.versions.all())
        return VersionSerializer(versions[-1]).data if versions else None


class AboutSetSerializer(serializers.Serializer[Any]):
    """The access settings and description of a set."""

    access = build_request_field(AboutForm, "access", required=False)
    may_leave = build_request_field(
        AboutForm,
        "may_leave",
        required=False,
        help_text="The inputs may be downloaded and sent to remote models.",
    )
    answers_public = build_request_field(
        AboutForm,
        "answers_public",
        required=False,
        help_text="The set is not sealed: scores are shown exactly, and by slice.",
    )
    description = build_request_field(AboutForm, "description", help_text="Markdown.")


class NewVersionSerializer(serializers.Serializer[Any]):
    """The examples of a new version."""

    upload = serializers.UUIDField(help_text="JSON lines (also .gz), CSV or Parquet.")


class NewSetSerializer(NewVersionSerializer, AboutSetSerializer):
    """A new set with its first version."""

    name = build_request_field(
        NewSetForm, "name", help_text="Letters, digits, hyphens, underscores."
    )


class EvaluationSetBaseView(TaskPartView):
    """Base view of the evaluation sets of a task that the reader may see."""

    is_public = True
    write_scope = OWN_SCOPE
    serializer_class = EvaluationSetSerializer
    queryset = EvaluationSet.objects.none()
    lookup_field = "name"

    def get_queryset(self) -> QuerySet[EvaluationSet]:
        sets = self.task.evaluation_sets.select_related("round").prefetch_related("versions")
        if can_edit(self.request.user, self.task):
            return sets
        # Others must not learn that hidden sets exist.
        return sets.exclude(access=EvaluationSet.Access.HIDDEN)

    def respond_with_set(self, name: str, status: int = status.HTTP_200_OK) -> Response:
        """Return a response with the set as it is now."""
        return Response(EvaluationSetSerializer(self.get_queryset().get(name=name)).data, status)


@extend_schema_view(get=extend_schema(operation_id="evaluation_sets_list"))
class EvaluationSets(EvaluationSetBaseView, generics.ListAPIView[EvaluationSet]):
    """List the sets on which models are run. Hidden sets are listed for the task's editors only."""

    @write("evaluation_sets_create", NewSetSerializer, {201: EvaluationSetSerializer})
    def post(self, request: Request, code: str) -> Response:
        """Make a set from an upload, which is then deleted. Task editors only.

        If lines are invalid, the error names them and nothing is stored.
        """
        task, editor = find_task_and_editor(request, code)
        values = read(NewSetSerializer, request)
        upload = values.pop("upload")

        def make(rows: SetFile) -> EvaluationSetVersion:
            return create_set_with_version(rows, task=task, actor=editor, **values)

        _make_from_upload(upload, task, editor, make)
        return self.respond_with_set(values["name"], status.HTTP_201_CREATED)


@extend_schema_view(get=extend_schema(operation_id="evaluation_sets_get"))
class EvaluationSetView(EvaluationSetBaseView, generics.RetrieveAPIView[EvaluationSet]):
    """Get a set and its newest version."""

    @write("evaluation_sets_change", AboutSetSerializer, EvaluationSetSerializer)
    def patch(self, request: Request, code: str, name: str) -> Response:
        """Change a set's access settings and description. Task editors only."""
        task, editor = find_task_and_editor(request, code)
        evaluation_set = get_object_or_404(task.evaluation_sets, name=name)
        changes = read(AboutSetSerializer, request)
        current_values = {field: getattr(evaluation_set, field) for field in EDITABLE_FIELDS}
        change_set(evaluation_set=evaluation_set, actor=editor, **current_values | changes)
        return self.respond_with_set(name)


class EvaluationSetVersions(EvaluationSetBaseView):
    is_public = False

    @write("evaluation_set_versions_create", NewVersionSerializer, {201: EvaluationSetSerializer})
    def post(self, request: Request, code: str, name: str) -> Response:
        """Make the next version of a set from an upload, which is then deleted. Task editors only.

        Only for sets that were made from uploads. If the examples are the same as before, no
        version is made.
        """
        task, editor = find_task_and_editor(request, code)
        uploaded = task.evaluation_sets.filter(source=EvaluationSet.Source.UPLOAD)
        evaluation_set = get_object_or_404(uploaded, name=name)
        upload = read(NewVersionSerializer, request)["upload"]
        _make_from_upload(
            upload, task, editor, lambda rows: make_version(evaluation_set, rows, editor)
        )
        return self.respond_with_set(name, status.HTTP_201_CREATED)


class TakeRoundSerializer(serializers.Serializer[Any]):
    """The reason why the set should not wait for open judgements."""

    reason = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=500,
        help_text="Needed while examples wait to be judged; it is logged.",
    )


class TakeRoundView(EvaluationSetBaseView):
    is_public = False

    @write("evaluation_sets_take", TakeRoundSerializer, {201: EvaluationSetSerializer})
    def post(self, request: Request, code: str, name: str) -> Response:
        """Make the next version of a round's set from the closed round as it is now.

        While examples wait to be judged, a reason is needed, which is logged. Task editors only.
        """
        task, editor = find_task_and_editor(request, code)
        reason = read(TakeRoundSerializer, request).get("reason", "")
        sets = task.evaluation_sets.select_related("round__task")
        round = get_object_or_404(sets, name=name).round
        if round is None or round.state != Round.State.CLOSED:
            raise Http404
        if make_requested_round_version(round=round, actor=editor, reason=reason) is None:
            raise Refused("Nothing is confirmed yet.")
        return self.respond_with_set(name, status.HTTP_201_CREATED)


def _make_from_upload(
    pk: UUID, task: Task, user: User, make_version: Callable[[SetFile], EvaluationSetVersion]
) -> None:
    """Make a version from the person's upload, then delete the upload.

    Raises ValidationError, which names each invalid line, and Refused.
    """
    upload = select_open_uploads(user).filter(pk=pk).first()
    if upload is None:
        raise serializers.ValidationError({"upload": ["You have no such file here. Upload it."]})
    # Reading more would take too long for a request.
    if upload.size > MAX_FILE_BYTES:
        raise Refused("It is too large for this. Use add_evaluation_set.", status=422)
    try:
        with assemble_upload(upload) as path:
            make_version(SetFile(path, upload.file_name, task.config))
    except InvalidLines as error:
        messages = [f"line {line_error.line}: {line_error.message}" for line_error in error.errors]
        raise serializers.ValidationError({"upload": messages}) from None
    except (FileError, UploadRefused) as error:
        raise serializers.ValidationError({"upload": [str(error)]}) from None
    # Only now, so that the same upload can be used again after an error.
    discard_upload(upload)


class EvaluationSetInputs(APIView):
    is_public = True
    throttle, throttles_reads = "export", True

    @extend_schema(operation_id="evaluation_set_inputs_get", responses=JSON_LINES_RESPONSE)
    def get(self, request: Request, code: str, name: str) -> HttpResponseBase:
        """Download the examples to answer in a predictions file, as lines `{"id", "inputs"}`.

        The examples are those of the set's newest version. Only for sets with downloadable inputs.
        Hidden sets are available to the task's editors only.
        """
        task = find_task(request, code, can_download)
        is_editor = can_edit(request.user, task)
        # Editors also get hidden sets, but not their inputs if these may not leave.
        downloadable_versions = select_newest_versions(task).filter(evaluation_set__may_leave=True)
        versions = downloadable_versions if is_editor else select_open_versions(task)
        version = get_object_or_404(versions, evaluation_set__name=name)
        if not record_inputs_taken(version):
            raise Http404
        return respond_with_lines(
            yield_input_lines(version), f"{code}-{name}-v{version.version}.jsonl"
        )


class ModelInterfaceSerializer(serializers.Serializer[Any]):
    """The fields that a model of a task reads, and its possible answers."""

    kind = serializers.CharField(allow_null=True, help_text="Of a folder; null: images only.")
    type = serializers.CharField(help_text="Of the answer's field.")
    fields = serializers.ListField(child=serializers.CharField())  # type: ignore[assignment]
    output = serializers.CharField()
    labels = serializers.ListField(child=serializers.CharField(), allow_null=True)


class CheckSerializer(serializers.Serializer[Any]):
    """The examples and limits with which a submitted model is checked."""

    inputs = serializers.ListField(child=serializers.DictField(), help_text="Five.")
    model = ModelInterfaceSerializer()
    config_text = serializers.CharField(help_text="Of the configuration what concerns models.")
    memory_gib = serializers.IntegerField()
    cpus = serializers.FloatField()
    seconds = serializers.FloatField()


class CheckInputs(APIView):
    is_public = True

    @extend_schema(operation_id="check_inputs_get", responses=CheckSerializer)
    def get(self, request: Request, code: str) -> Response:
        """Get the five examples and the limits with which a submitted model is checked.

        With them you can check a model yourself before you submit it.
        """
        task = find_task(request, code, can_download)
        # These five are inputs of a set, so their first disclosure is recorded.
        record_shown_examples(task, EXAMPLE_COUNT)
        body = {
            "inputs": list_public_inputs(task),
            "model": describe_model_shape(task.config),
            "config_text": format_model_config(task.config),
            "memory_gib": settings.EVALUATION_MEMORY_GIB,
            "cpus": settings.EVALUATION_CPUS,
            "seconds": CHECK_SECONDS,
        }
        return Response(CheckSerializer(body).data)
