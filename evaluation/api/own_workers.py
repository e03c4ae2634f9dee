"""The API for evaluating models on the machines of their own submitters (docs/cluster.md)."""

from collections.abc import Iterator
from itertools import compress, repeat
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet
from django.http import FileResponse, Http404, HttpResponseBase
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.accounts.api import write
from core.accounts.models import ApiToken
from core.accounts.people import get_person
from core.files.storage.disk import open_scratch_folder
from core.mail.addresses import AddressSerializerField
from core.web.api import JSON_LINES_RESPONSE, LateChoiceField, Pages, read
from core.web.downloads import BINARY_TYPE, respond_with_lines
from core.web.form_fields import build_request_field
from evaluation.api.runs import UsageSerializer
from evaluation.contract import Outcome
from evaluation.isolation.queue.attempt_keys import build_sent_examples
from evaluation.kinds import kind_choices
from evaluation.models import EvaluationRun, OwnWorker
from evaluation.submissions.own_workers import services
from evaluation.submissions.own_workers.forms import OwnWorkerForm
from evaluation.submissions.own_workers.selectors import (
    choose_asked_examples,
    find_leased_run,
    find_workers,
)
from evaluation.task_shape import format_model_config
from evaluation.test_sets.selectors import read_input_rows
from evaluation.test_sets.services import record_inputs_taken
from tasks.access import find_task, require_permission
from tasks.contexts.media.selectors import prepare_for_models
from tasks.permissions import can_own, can_see
from tasks.services import find_account_within_limit

LEASE_PARAMETER = OpenApiParameter("token", OpenApiTypes.UUID, "path", description="Of the lease.")
MAX_USAGE = 1e15  # for any figure: a petabyte, or 30 million years
OWN_WORKER_OUTCOMES = [
    outcome.value for outcome in Outcome if outcome not in (Outcome.CANCELLED, Outcome.OVER_BUDGET)
]
"""The outcomes that a machine may report. Only this site cancels runs and enforces cost caps."""


class OwnWorkerSerializer(serializers.ModelSerializer[OwnWorker]):
    """A person's permission to evaluate their and their teams' models on their own machines."""

    email = serializers.EmailField(source="user.email")
    model = serializers.UUIDField(
        source="submission_id",
        allow_null=True,
        help_text="Only this model. null: all models of the person.",
    )
    evaluation_set = serializers.CharField(
        source="evaluation_set.name",
        allow_null=True,
        default=None,
        help_text="Only this one; null: each whose inputs may leave.",
    )

    class Meta:
        model = OwnWorker
        fields = read_only_fields = (
            *("id", "email", "model", "evaluation_set", "takes_sealed", "second"),
            *("made_at", "heard_at"),
        )


class NewOwnWorkerSerializer(serializers.Serializer[Any]):
    """A person and what they may evaluate: all their models, one model, or all on one set."""

    email = AddressSerializerField(help_text="Of an account.")
    model = serializers.UUIDField(allow_null=True, default=None)
    evaluation_set = serializers.CharField(allow_null=True, default=None, help_text="Its name.")
    takes_sealed = build_request_field(
        OwnWorkerForm,
        "takes_sealed",
        help_text="You agree that inputs of sealed sets go there, which is logged.",
    )
    second = build_request_field(
        OwnWorkerForm, "second", help_text="Who must agree on a random tenth."
    )


@extend_schema_view(get=extend_schema(operation_id="own_workers_list"))
class OwnWorkers(generics.ListAPIView[OwnWorker]):
    """List who may evaluate models of the task on their own machines. Task owners only."""

    write_scope, throttle = ApiToken.Scope.OWN, "submit"
    serializer_class = OwnWorkerSerializer
    pagination_class = Pages
    queryset = OwnWorker.objects.none()

    def get_queryset(self) -> QuerySet[OwnWorker]:
        task = find_task(self.request, self.kwargs["code"], can_own)
        return task.own_workers.select_related("user", "evaluation_set")

    @write("own_workers_create", NewOwnWorkerSerializer, {201: OwnWorkerSerializer})
    def post(self, request: Request, code: str) -> Response:
        """Permit a person to evaluate their models of this task on their own machines.

        Task owners only.
        """
        task, actor = find_task(request, code, can_own), get_person(request)
        fields = read(NewOwnWorkerSerializer, request)
        user = find_account_within_limit(actor, fields["email"])
        submission = evaluation_set = None
        if fields["model"]:
            submission = get_object_or_404(task.submissions, pk=fields["model"])
        if fields["evaluation_set"]:
            evaluation_set = get_object_or_404(task.evaluation_sets, name=fields["evaluation_set"])
        worker = services.add_worker(
            task=task,
            user=user,
            actor=actor,
            second=fields["second"],
            takes_sealed=fields["takes_sealed"],
            submission=submission,
            evaluation_set=evaluation_set,
        )
        worker.refresh_from_db()  # for the database's default of `made_at`
        return Response(OwnWorkerSerializer(worker).data, status.HTTP_201_CREATED)


class OwnWorkerView(APIView):
    write_scope = ApiToken.Scope.OWN

    @write("own_workers_delete", None, {204: None})
    def delete(self, request: Request, code: str, pk: int) -> Response:
        """Revoke a permission, which ends its leases. Task owners only."""
        task = find_task(request, code, can_own)
        worker = get_object_or_404(task.own_workers, pk=pk)
        services.remove_worker(worker=worker, actor=get_person(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class LeaseFilterSerializer(serializers.Serializer[Any]):
    """Filters for the runs that a machine takes.

    Without filters, the machine takes any run that it may evaluate.
    """

    model = serializers.UUIDField(required=False, help_text="Its id.")
    evaluation_set = serializers.CharField(required=False, max_length=60)


class LeaseSerializer(serializers.Serializer[Any]):
    """A run leased to a machine, which must renew the lease at least every minute."""

    token = serializers.UUIDField(source="lease_token")
    run = serializers.UUIDField(source="pk")
    model = serializers.UUIDField(source="submission_id")
    kind = LateChoiceField(kind_choices, source="submission.kind")
    adapter = serializers.CharField(source="submission.adapter")
    digest = serializers.CharField(
        source="submission.digest", help_text="Of the model's files, or the image's id."
    )
    evaluation_set = serializers.CharField(source="version.evaluation_set.name")
    examples = serializers.SerializerMethodField()
    lease_until = serializers.DateTimeField()
    config_text = serializers.SerializerMethodField(help_text="What concerns models.")
    memory_gib = serializers.SerializerMethodField()
    cpus = serializers.SerializerMethodField()
    seconds = serializers.SerializerMethodField()

    def get_examples(self, run: EvaluationRun) -> int:
        is_chosen = choose_asked_examples(run)  # for a second opinion: a random tenth
        return run.version.size if is_chosen is None else sum(is_chosen)

    def get_config_text(self, run: EvaluationRun) -> str:
        return format_model_config(run.submission.task.config)

    def get_memory_gib(self, run: EvaluationRun) -> int:
        return int(settings.EVALUATION_MEMORY_GIB)

    def get_cpus(self, run: EvaluationRun) -> float:
        return float(settings.EVALUATION_CPUS)

    def get_seconds(self, run: EvaluationRun) -> float:
        return float(settings.EVALUATION_SECONDS)


class TakeLeaseView(APIView):
    write_scope = ApiToken.Scope.SUBMIT

    @write("leases_take", LeaseFilterSerializer, {200: LeaseSerializer, 204: None})
    def post(self, request: Request, code: str) -> Response:
        """Lease the oldest run that your machine may evaluate. Returns 204 if there is none."""
        task, filters = find_task(request, code), read(LeaseFilterSerializer, request)
        workers = find_workers(get_person(request), task)
        # People without permission must not learn whether there are runs.
        if not workers:
            raise Http404
        # The start of the token, because a second opinion must use another one.
        key = request.auth.prefix if isinstance(request.auth, ApiToken) else ""
        run = services.lease_run(workers=workers, key=key, **filters)
        if run is None:
            return Response(status=status.HTTP_204_NO_CONTENT)
        return Response(LeaseSerializer(run).data)


class _LeaseBaseView(APIView):
    read_scope = write_scope = ApiToken.Scope.SUBMIT

    def find_leased_run(self, token: UUID) -> EvaluationRun:
        """Return the run with this lease.

        Raises Http404 if this person's machine no longer has it.
        """
        run = find_leased_run(get_person(self.request), token)
        if run is None:
            raise Http404
        # The person may have lost access to the task since taking the lease.
        require_permission(self.request.user, run.submission.task, can_see)
        return run


class LeaseProgressSerializer(serializers.Serializer[Any]):
    """The progress of a leased run."""

    progress = serializers.FloatField(min_value=0, max_value=1, default=0)


class LeaseBeat(_LeaseBaseView):
    @write("leases_keep", LeaseProgressSerializer, {204: None})
    def post(self, request: Request, token: UUID) -> Response:
        """Renew the lease for two minutes. Fails with 404 or 409 if the lease is lost."""
        run, progress = (
            self.find_leased_run(token),
            read(LeaseProgressSerializer, request)["progress"],
        )
        services.renew_lease(run=run, user=get_person(request), progress=progress)
        return Response(status=status.HTTP_204_NO_CONTENT)


class LeaseInputs(_LeaseBaseView):
    throttle, throttles_reads = "export", True

    @extend_schema(
        operation_id="lease_inputs_get", responses=JSON_LINES_RESPONSE, parameters=[LEASE_PARAMETER]
    )
    def get(self, request: Request, token: UUID) -> HttpResponseBase:
        """Download the examples as lines `{"id", "inputs"}`, with new ids and in random order."""
        run = self.find_leased_run(token)
        if not record_inputs_taken(run.version, get_person(request)):
            raise Http404
        return respond_with_lines(_iterate_inputs(run), "examples.jsonl")


def _iterate_inputs(run: EvaluationRun) -> Iterator[bytes]:
    """Yield the examples of a run as lines, with the ids of this lease."""
    task, config = run.submission.task, run.submission.task.config
    assert run.lease_token
    is_chosen = choose_asked_examples(run) or repeat(True)
    with open_scratch_folder() as folder:
        sent_examples = build_sent_examples(run.lease_token, folder / "examples.jsonl")
        chosen_rows = compress(read_input_rows(run.version), is_chosen)
        rows = (prepare_for_models(config, task, row["inputs"]) for row in chosen_rows)
        sent_examples.write(rows, config.model_fields, lambda progress, message: None)
        with sent_examples.path.open("rb") as file:
            yield from file


class LeaseModel(_LeaseBaseView):
    throttle, throttles_reads = "export", True

    @extend_schema(
        operation_id="lease_model_get",
        responses={(200, "application/octet-stream"): OpenApiTypes.BINARY},
        parameters=[LEASE_PARAMETER],
    )
    def get(self, request: Request, token: UUID) -> HttpResponseBase:
        """Download the checked model: a tar archive of its folder, or a `docker save` archive."""
        file = self.find_leased_run(token).submission.file.open("rb")
        return FileResponse(
            file, as_attachment=True, filename="model.tar", content_type=BINARY_TYPE
        )


class OwnUsageSerializer(UsageSerializer):
    """The resources that a run used, as the machine reports them.

    The site itself counts the unanswered examples.
    """

    unanswered = None  # type: ignore[assignment]


class RunEndingSerializer(serializers.Serializer[Any]):
    """How a model's run ended, and the resources that it used."""

    outcome = serializers.ChoiceField(OWN_WORKER_OUTCOMES)
    sentence = serializers.CharField(allow_blank=True, max_length=500, default="")
    usage = OwnUsageSerializer()

    def validate_usage(self, usage: dict[str, float | None]) -> dict[str, float | None]:
        """Check the reported numbers, because leaderboards compute with them.

        Raises ValidationError.
        """
        invalid_names = []
        for name, value in usage.items():
            if value is not None and not 0 <= value <= MAX_USAGE:
                invalid_names.append(name)
        if invalid_names:
            messages = [f"Give a number from 0 to {MAX_USAGE:.0e}."]
            raise serializers.ValidationError(dict.fromkeys(invalid_names, messages))
        return usage


class LeaseAnswersSerializer(serializers.Serializer[Any]):
    """The answers from a machine."""

    upload = serializers.UUIDField(
        allow_null=True, default=None, help_text="Of the lines of answers."
    )
    runner = serializers.CharField(max_length=16)
    ending = RunEndingSerializer()


class LeaseAnswers(_LeaseBaseView):
    @write("leases_end", LeaseAnswersSerializer, {204: None})
    def post(self, request: Request, token: UUID) -> Response:
        """Submit the model's answers, which are scored here. This ends the lease."""
        run = self.find_leased_run(token)
        services.submit_answers(
            run=run, user=get_person(request), **read(LeaseAnswersSerializer, request)
        )
        return Response(status=status.HTTP_204_NO_CONTENT)
