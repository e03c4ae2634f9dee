"""The API's views of tasks: all that one may see, one with what it asks, targets."""

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
from core.accounts.models import ApiToken
from core.accounts.people import person
from core.text.words import with_lf
from core.web.api import check_query, read
from core.web.form_fields import request_field
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
from tasks.members.forms import SeenForm
from tasks.models import Round, RoundTarget, Task
from tasks.permissions import can_make_tasks, can_own, can_review, role_of
from tasks.selectors import PLANNED_STATES, find_known_rounds, find_visible_tasks
from tasks.services import change_task, create_task

OPENED_ROUNDS = Prefetch(
    "rounds", Round.objects.exclude(state__in=PLANNED_STATES).order_by("number"), "opened"
)


class TaskChangeSerializer(serializers.Serializer[Any]):
    """Who can see a task and try its models. Omitted fields keep their value."""

    is_visible = request_field(
        SeenForm,
        "is_visible",
        required=False,
        help_text="Everybody sees it. Otherwise only its members.",
    )
    allow_try_out = request_field(
        SeenForm,
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

    @write("tasks_create", NewTaskSerializer, {201: MadeTaskSerializer})
    def post(self, request: Request) -> Response:
        """Create a task if the site allows it. You own it, and at first only its members see it.

        A task that an administrator creates has no members yet and is visible to everybody.
        """
        maker = person(request)
        if not can_make_tasks(maker):
            raise exceptions.PermissionDenied("You may not make tasks on this site.")
        data = read(NewTaskSerializer, request)
        data["config_text"] = with_lf(data["config_text"])
        try:
            if maker.is_superuser:
                task, notes = create_task(actor=maker, **data)
            else:
                text = data.pop("config_text")
                task, notes = make_own_task(maker=maker, text=text, **data)
        except ConfigError as error:
            raise build_config_error(error) from None
        role = role_of(maker, task)
        body = MadeTaskSerializer(_prefetch_rounds(task), context={"role": role, "notes": notes})
        return Response(body.data, status.HTTP_201_CREATED)


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
        role = role_of(request.user, task)
        return Response(FullTaskSerializer(task, context={"role": role}).data)

    @write("tasks_change", TaskChangeSerializer, FullTaskSerializer)
    def patch(self, request: Request, code: str) -> Response:
        """Show or hide a task, and allow or forbid trying it out. Owners only."""
        task, owner = find_task(request, code, can_own, kinds=ALL_KINDS), person(request)
        change_task(task=task, actor=owner, fields=read(TaskChangeSerializer, request))
        return self.get(request, code)


class TaskPartView(generics.GenericAPIView[Any]):
    """Base view of something that belongs to a task."""

    @cached_property
    def task(self) -> Task:
        """Return the task. Raises Http404 for people who may not see it."""
        return find_task(self.request, self.kwargs["code"])

    @cached_property
    def knows(self) -> bool:
        """Return whether the person may see what the owners have planned."""
        return can_review(self.request.user, self.task)

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "knows": self.knows}


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
        rounds = find_known_rounds(self.task, planned=self.knows)
        targets = RoundTarget.objects.filter(round__in=rounds).select_related("round", "target")
        return targets.prefetch_related("round__round_targets__target")
