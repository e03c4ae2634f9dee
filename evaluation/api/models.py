"""API views of submitted models: submitting, reading, changing and publishing them."""

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.accounts.api import write
from core.accounts.models import ApiToken, User
from core.accounts.people import get_person
from core.accounts.services import get_annotator
from core.web.api import LateChoiceField, Pages, read, read_query
from core.web.form_fields import build_request_field
from evaluation.api.chat import ChatSerializer, build_settings
from evaluation.api.model_data import (
    CardSerializer,
    ModelSerializer,
    WholeModelSerializer,
)
from evaluation.isolation.uploads.allowances import get_max_models_per_day
from evaluation.isolation.uploads.chunked import get_max_upload_bytes
from evaluation.kinds import list_submitted_kinds
from evaluation.models import EvaluationSetVersion, Submission, Team, Upload
from evaluation.runs.short.services import evaluate_in_full
from evaluation.submissions import services as submissions
from evaluation.submissions.cards import ModelCard
from evaluation.submissions.forms import AnonymousForm, EmbargoForm, SubmitForm
from evaluation.submissions.kinds.chat import ChatForm
from evaluation.submissions.kinds.llm import LlmForm
from evaluation.submissions.selectors import (
    build_public_condition,
    find_person_submissions,
    list_runs,
    prefetch_runs,
    select_submissions,
)
from evaluation.submissions.services import find_remaining_quota
from evaluation.submissions.teams.forms import TeamForm
from evaluation.submissions.teams.selectors import find_teams
from evaluation.submissions.visibility import (
    Viewer,
    find_owned_submission,
    find_submission,
    make_viewer_function,
)
from evaluation.test_sets.selectors import select_open_versions
from tasks.access import find_task
from tasks.api.tasks import TaskPartView
from tasks.models import Task
from tasks.permissions import can_submit

SUBMIT_SCOPE = ApiToken.Scope.SUBMIT


class NewModelSerializer(serializers.Serializer[Any]):
    """A model to submit. Which fields are needed depends on its kind."""

    kind = LateChoiceField(list_submitted_kinds)
    name = build_request_field(SubmitForm, "name", help_text="With its version.")
    upload = serializers.UUIDField(
        required=False,
        allow_null=True,
        help_text="directory, predictions; image, llm, unless `source`.",
    )
    source = build_request_field(
        ChatForm,
        "source",
        required=False,
        allow_blank=True,
        help_text="A hub id, an image `name@sha256:…`, or an endpoint's or a chat model's address.",
    )
    revision = serializers.CharField(
        max_length=100, required=False, allow_blank=True, help_text="hub, llm: the full commit."
    )
    adapter = serializers.ChoiceField(
        Submission.Adapter.choices, required=False, help_text="image, endpoint: how it is asked."
    )
    evaluation_set = serializers.CharField(
        max_length=60, required=False, allow_blank=True, help_text="predictions: of which set."
    )
    secret = build_request_field(
        ChatForm,
        "secret",
        write_only=True,
        help_text="endpoint, chat: a bearer token. Kept encrypted and never shown.",
    )
    chat = ChatSerializer(required=False, help_text="chat, llm: how it is asked.")
    base = build_request_field(
        LlmForm,
        "base",
        help_text="llm: of a LoRA adapter, `org/name@commit` or a language model's id here.",
    )
    gpus = serializers.IntegerField(
        min_value=0,
        max_value=1,
        required=False,
        help_text="image, directory, hub: that it runs on.",
    )
    card = CardSerializer(required=False)
    team = build_request_field(
        TeamForm,
        "name",
        required=False,
        allow_blank=True,
        help_text="Your team, by its name.",
    )


class NewestFirstPages(Pages):
    """A pagination by time, newest first."""

    ordering = "-queued_at"


class ModelList(generics.ListAPIView[Submission]):
    """Base view of lists of models."""

    serializer_class = ModelSerializer
    pagination_class = NewestFirstPages
    queryset = Submission.objects.none()


@extend_schema_view(get=extend_schema(operation_id="models_list"))
class TaskModels(TaskPartView, ModelList):
    """List the published models of a task, including targets, newest first."""

    is_public = True
    write_scope = SUBMIT_SCOPE
    throttle = "submit"

    def get_queryset(self) -> QuerySet[Submission]:
        published_models = select_submissions().filter(build_public_condition(), task=self.task)
        return prefetch_runs(published_models.defer("log"))

    def get_serializer_context(self) -> dict[str, Any]:
        viewer = make_viewer_function(self.request.user, self.task)
        return {**super().get_serializer_context(), "viewer": viewer}

    @write("models_create", NewModelSerializer, {201: WholeModelSerializer})
    def post(self, request: Request, code: str) -> Response:
        """Submit a model. It is checked first; get the model again to see its progress.

        Fails with 409 and the code `quota` if you have used up the day's quota.
        """
        task = find_task(request, code, can_submit)
        fields = read(NewModelSerializer, request)
        owner = get_person(request)
        get_annotator(owner)  # the submitter's public name
        # The service expects objects: a card, settings, an upload, a version, a team.
        fields["card"] = ModelCard(**fields.get("card", {}))
        fields["chat"] = build_settings(task.config, fields.get("chat"))
        fields["upload"] = find_upload(owner, fields.get("upload"))
        fields["evaluation_set"] = _find_version(task, fields.get("evaluation_set"))
        fields["team"] = find_team(owner, fields.get("team"))
        submission = submissions.submit_model(task=task, owner=owner, **fields)
        return Response(describe_whole_model(request, submission.pk), status.HTTP_201_CREATED)


def find_upload(user: User, pk: UUID | None) -> Upload | None:
    """Return the person's upload with this id; None without an id. Raises ValidationError."""
    if pk is None:
        return None
    upload = Upload.objects.filter(pk=pk, owner=user).first()
    if upload is None:
        raise serializers.ValidationError({"upload": ["You have no such file here. Upload it."]})
    return upload


def find_team(user: User, name: str | None) -> Team | None:
    """Return the person's team with this name; None without a name. Raises ValidationError."""
    if not name:
        return None
    team = find_teams(user).filter(name__iexact=name).first()
    if team is None:
        names = ", ".join(find_teams(user).values_list("name", flat=True)) or "none"
        message = f"You are in no team of this name. Your teams: {names}."
        raise serializers.ValidationError({"team": [message]})
    return team


def _find_version(task: Task, name: str | None) -> EvaluationSetVersion | None:
    """Return the newest version of the set with this name; None without a name.

    Raises ValidationError.
    """
    if not name:
        return None
    versions = select_open_versions(task)
    version = versions.filter(evaluation_set__name=name).first()
    if version is None:
        names = ", ".join(versions.values_list("evaluation_set__name", flat=True)) or "none"
        message = (
            f"This set doesn't exist, or its inputs cannot be downloaded. Choose from: {names}."
        )
        raise serializers.ValidationError({"evaluation_set": [message]})
    return version


def describe_whole_model(request: Request, pk: UUID) -> Any:
    """Return all data of a model that this person may see."""
    submission, viewer = find_submission(request, pk)
    context = {"viewer": lambda _: viewer, "runs": list_runs(submission)}
    return WholeModelSerializer(submission, context=context).data


@extend_schema_view(get=extend_schema(operation_id="my_models_list"))
class MyModels(ModelList):
    """List all models that you have submitted, newest first."""

    def get_queryset(self) -> QuerySet[Submission]:
        return find_person_submissions(get_person(self.request)).defer("log")

    def get_serializer_context(self) -> dict[str, Any]:
        # All of them are the person's own, which saves a query for each.
        viewer = Viewer(is_owner=True, is_task_owner=False)
        return {**super().get_serializer_context(), "viewer": lambda _: viewer}


class ModelChangeSerializer(serializers.Serializer[Any]):
    """Changes to a model. Fields that are left out stay as they are."""

    card = CardSerializer()


class ModelView(APIView):
    is_public = True
    write_scope = SUBMIT_SCOPE

    @extend_schema(operation_id="models_get", responses=WholeModelSerializer)
    def get(self, request: Request, pk: UUID) -> Response:
        """Get a model with its progress, problems and card."""
        return Response(describe_whole_model(request, pk))

    @write("models_change", ModelChangeSerializer, WholeModelSerializer)
    def patch(self, request: Request, pk: UUID) -> Response:
        """Change a model's card. Model owners only."""
        submission, user = find_owned_submission(request, pk)
        changes = read(ModelChangeSerializer, request)["card"]
        current_values = {name: getattr(submission, name) for name in vars(ModelCard())}
        card = ModelCard(**current_values | changes)
        submissions.update_card(submission=submission, actor=user, card=card)
        return Response(describe_whole_model(request, pk))


def _make_action(name: str, service: Callable[..., Any], description: str) -> type[APIView]:
    """Return a view with which a model's owner calls the service on the model.

    name: part of the operation id. description: the operation's description.
    """

    class Action(APIView):
        write_scope = SUBMIT_SCOPE

        @extend_schema(description=description)
        @write(f"models_{name}", None, WholeModelSerializer)
        def post(self, request: Request, pk: UUID) -> Response:
            submission, user = find_owned_submission(request, pk)
            service(submission=submission, actor=user)
            return Response(describe_whole_model(request, pk))

    return Action


ACTIONS: Mapping[str, type[APIView]] = {
    "publish": _make_action(
        "publish", submissions.publish_model, "Show a model that has a score to everyone."
    ),
    "unpublish": _make_action(
        "unpublish", submissions.unpublish_model, "Show it to you and the task's owners only."
    ),
    "cancel": _make_action(
        "cancel",
        submissions.cancel_evaluations,
        "End what is not over of its check and evaluations.",
    ),
    "evaluate-in-full": _make_action(
        "evaluate_in_full",
        evaluate_in_full,
        "Evaluate a model of only short evaluations on all examples of all sets.",
    ),
    "withdraw": _make_action(
        "withdraw",
        submissions.withdraw_model,
        "Withdraw it permanently. Its files, name and card are deleted.",
    ),
}


class AnonymityPeriodSerializer(serializers.Serializer[Any]):
    """The date until which names are hidden."""

    until = build_request_field(
        AnonymousForm,
        "anonymous_until",
        required=True,
        help_text="The names stay hidden until this day. null: they are shown.",
    )


class AnonymityView(APIView):
    write_scope = SUBMIT_SCOPE

    @write("models_hide", AnonymityPeriodSerializer, WholeModelSerializer)
    def post(self, request: Request, pk: UUID) -> Response:
        """Hide the names of model and owner until a day, at most a year ahead, or show them."""
        submission, user = find_owned_submission(request, pk)
        until = read(AnonymityPeriodSerializer, request)["until"]
        submissions.set_anonymous_until(submission=submission, actor=user, until=until)
        return Response(describe_whole_model(request, pk))


class EmbargoSerializer(serializers.Serializer[Any]):
    """The date on which a model is published automatically."""

    day = build_request_field(
        EmbargoForm, "publish_on", required=True, help_text="null: not by itself."
    )


class EmbargoView(APIView):
    write_scope = SUBMIT_SCOPE

    @write("models_embargo", EmbargoSerializer, WholeModelSerializer)
    def post(self, request: Request, pk: UUID) -> Response:
        """Set the day, at most a year ahead, on which the model is published if it has a score.

        Without a score on that day, it is published as soon as it has one.
        """
        submission, user = find_owned_submission(request, pk)
        day = read(EmbargoSerializer, request)["day"]
        submissions.set_publish_on(submission=submission, actor=user, day=day)
        return Response(describe_whole_model(request, pk))


class QuotaSerializer(serializers.Serializer[Any]):
    """The number of models that may still be submitted."""

    left = serializers.IntegerField()
    most = serializers.IntegerField(help_text="In a day.")
    most_refused = serializers.IntegerField(help_text="In a day, of those that are refused.")
    free_at = serializers.DateTimeField(allow_null=True, help_text="None is left: the next one.")
    largest_bytes = serializers.IntegerField(
        help_text="The most that your next upload may have, by what you have here already."
    )


class QuotaQuery(serializers.Serializer[Any]):
    """The query parameters of the quota."""

    team = serializers.CharField(
        max_length=60, required=False, help_text="Your team's quota, which also applies."
    )


class QuotaView(APIView):
    reads_query = ("GET",)

    @extend_schema(operation_id="quota_get", parameters=[QuotaQuery], responses=QuotaSerializer)
    def get(self, request: Request, code: str) -> Response:
        """Get the number of models that you may still submit to a task."""
        task = find_task(request, code, can_submit)
        user = get_person(request)
        team = find_team(user, read_query(QuotaQuery, request).get("team"))
        quota = find_remaining_quota(user, task, team)
        body = {
            "left": quota.left,
            "most": get_max_models_per_day(task, team or user),
            "most_refused": settings.REFUSED_SUBMISSIONS_PER_DAY,
            "free_at": quota.free_at,
            "largest_bytes": get_max_upload_bytes(user),
        }
        return Response(QuotaSerializer(body).data)
