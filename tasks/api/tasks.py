"""The API's views of tasks: the list, a single task, and the models that people try to fool."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from django.db.models import Prefetch, QuerySet, prefetch_related_objects
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import exceptions, generics, serializers, status
from rest_framework.filters import SearchFilter
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.accounts.api import write
from core.accounts.models import ApiToken, User
from core.accounts.people import get_person
from core.data.dry_runs import rehearse
from core.text.words import normalise_line_ends
from core.web.api import check_query, read
from core.web.form_fields import build_request_field
from tasks.access import ALL_KINDS, find_task
from tasks.api.config import build_config_error
from tasks.api.serializers import (
    FullTaskSerializer,
    MadeTaskSerializer,
    TargetSerializer,
    TaskSerializer,
)
from tasks.config.parsing import MAX_BYTES, ConfigError
from tasks.making.services import make_own_task
from tasks.members.forms import VisibilityForm
from tasks.models import Round, RoundTarget, Task
from tasks.permissions import can_make_tasks, can_own, can_review, get_role
from tasks.selectors import PLANNED_STATES, find_visible_rounds, find_visible_tasks
from tasks.services import change_task, create_task
from tasks.targets.served import find_served_models

OPENED_ROUNDS = Prefetch(
    "rounds", Round.objects.exclude(state__in=PLANNED_STATES).order_by("number"), "opened"
)


class TaskChangeSerializer(serializers.Serializer[Any]):
    """Who can see a task and try its models. Omitted fields keep their value."""

    is_visible = build_request_field(
        VisibilityForm,
        "is_visible",
        required=False,
        help_text="Everyone can see it. Otherwise, only its members can.",
    )
    allow_try_out = build_request_field(
        VisibilityForm,
        "allow_try_out",
        required=False,
        help_text="People without an account may try the models; true at first.",
    )


class NewTaskSerializer(TaskChangeSerializer):
    """A task to create."""

    code = serializers.CharField(validators=Task._meta.get_field("code").validators)
    config_text = serializers.CharField(
        max_length=MAX_BYTES,
        trim_whitespace=False,
        help_text="YAML. A configuration of Dynabench 1.0 or 2.0 is converted.",
    )
    dry_run = serializers.BooleanField(
        default=False, help_text="Only check it, and tell what would be created."
    )


@extend_schema_view(get=extend_schema(operation_id="tasks_list"))
class Tasks(generics.ListAPIView[Task]):
    """The tasks that you may see, with a text search."""

    is_public = True
    write_scope = ApiToken.Scope.OWN
    serializer_class = TaskSerializer
    queryset = Task.objects.none()
    filter_backends = [SearchFilter]
    search_fields = ["name", "summary", "code"]

    def get_queryset(self) -> QuerySet[Task]:
        check_query(self.request, "search")
        return find_visible_tasks(self.request.user).prefetch_related(OPENED_ROUNDS)

    @write("tasks_create", NewTaskSerializer, {200: MadeTaskSerializer, 201: MadeTaskSerializer})
    def post(self, request: Request) -> Response:
        """Create a task if the site allows it. You own it, and at first only its members see it.

        A task that an administrator creates has no members yet and is visible to everybody. A dry
        run makes the same checks and stores nothing; its status is 200.
        """
        creator = get_person(request)
        if not can_make_tasks(creator):
            raise exceptions.PermissionDenied("You can't create tasks on this site.")
        data = read(NewTaskSerializer, request)
        text, is_dry_run = normalise_line_ends(data.pop("config_text")), data.pop("dry_run")
        try:
            with rehearse(is_dry_run):
                body = _create_task(creator, text, data)
        except ConfigError as error:
            raise build_config_error(error) from None
        return Response(body, status.HTTP_200_OK if is_dry_run else status.HTTP_201_CREATED)


def _create_task(creator: User, text: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Create a task and return what to answer. Raises ConfigError, Refused, Invalid."""
    if creator.is_superuser:
        task, notes = create_task(actor=creator, config_text=text, **fields)
    else:
        task, notes = make_own_task(creator=creator, text=text, **fields)
    served_models = []
    if task.config.kind != "arena":
        for target in find_served_models(task, creator):
            served_models.append(f"{target.task.code}/{target.name}")
    context = {"role": get_role(creator, task), "notes": notes, "served_models": served_models}
    # Read before a dry run is undone.
    return dict(MadeTaskSerializer(_prefetch_rounds(task), context=context).data)


def _prefetch_rounds(task: Task) -> Task:
    """Return the task with the opened rounds that its serializers need."""
    prefetch_related_objects([task], OPENED_ROUNDS)
    return task


class TaskView(APIView):
    """One task."""

    is_public = True
    write_scope = ApiToken.Scope.OWN

    @extend_schema(operation_id="tasks_get", responses=FullTaskSerializer)
    def get(self, request: Request, code: str) -> Response:
        """Return a task: its instructions, input, output, scoring and rounds."""
        task = _prefetch_rounds(find_task(request, code, kinds=ALL_KINDS))
        role = get_role(request.user, task)
        return Response(FullTaskSerializer(task, context={"role": role}).data)

    @write("tasks_change", TaskChangeSerializer, FullTaskSerializer)
    def patch(self, request: Request, code: str) -> Response:
        """Show or hide a task, and allow or forbid trying it out. Owners only."""
        task, owner = find_task(request, code, can_own, kinds=ALL_KINDS), get_person(request)
        change_task(task=task, actor=owner, fields=read(TaskChangeSerializer, request))
        return self.get(request, code)


class TaskPartView(generics.GenericAPIView[Any]):
    """Base view of something that belongs to a task."""

    @cached_property
    def task(self) -> Task:
        """Return the task. Raises Http404 for people who may not see it."""
        return find_task(self.request, self.kwargs["code"])

    @cached_property
    def can_see_plans(self) -> bool:
        """Return whether the person may see what the owners have planned."""
        return can_review(self.request.user, self.task)

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "can_see_plans": self.can_see_plans}


@extend_schema_view(
    get=extend_schema(
        operation_id="targets_list", parameters=[OpenApiParameter("code", str, "path")]
    )
)
class Targets(TaskPartView, generics.ListAPIView[RoundTarget]):
    """The models that people try to fool, by round, under the names shown to people."""

    is_public = True
    serializer_class = TargetSerializer
    queryset = RoundTarget.objects.none()

    def get_queryset(self) -> QuerySet[RoundTarget]:
        rounds = find_visible_rounds(self.task, include_planned=self.can_see_plans)
        targets = RoundTarget.objects.filter(round__in=rounds).select_related("round", "target")
        return targets.prefetch_related("round__round_targets__target")
