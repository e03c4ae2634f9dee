"""The API's addresses of a task's adversaries: create, start, stop, and read their log.

It calls the services of the pages, so the same rules apply.
"""

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.urls import path
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.accounts.api import write
from core.accounts.models import ApiToken
from core.accounts.people import get_person
from core.errors import Invalid, Refused
from core.web.api import NewestFirst, read
from core.web.form_fields import build_request_field
from dynabench.adversaries import services
from dynabench.adversaries.access import find_runnable_adversary
from dynabench.adversaries.fit import can_run_adversaries
from dynabench.adversaries.forms import AdversaryForm, OptionsForm
from dynabench.adversaries.kinds.base import KINDS
from dynabench.adversaries.models import BUDGET_FIELDS, Adversary, AdversaryRun, AdversaryTry
from dynabench.adversaries.ready_services import start_ready_adversaries
from dynabench.adversaries.selectors import find_current_run
from tasks.access import find_task
from tasks.models import Task


class AdversarySerializer(serializers.ModelSerializer[Adversary]):
    """An adversary with its settings and its budget for each run."""

    options = serializers.DictField(help_text="Values of the kind's settings.")

    class Meta:
        model = Adversary
        fields = (
            ("id", "name", "kind", "options", "seed", "is_nightly")
            + BUDGET_FIELDS
            + ("created_at", "retired_at")
        )


class AdversaryRunSerializer(serializers.ModelSerializer[AdversaryRun]):
    """A run of an adversary, with its limits and what it used."""

    round = serializers.IntegerField(source="round.number", help_text="Round number.")
    weak_spots = serializers.ListField(
        child=serializers.CharField(),
        allow_null=True,
        help_text="Words of the weak spots among its topics. null: it writes about none.",
    )

    class Meta:
        model = AdversaryRun
        fields = (
            ("number", "round", "state", "ended_by", "error", "log", "calls", "examples", "tokens")
            + ("cost", "seconds", "weak_spots")
            + BUDGET_FIELDS
            + ("queued_at", "finished_at")
        )


class AdversaryTrySerializer(serializers.ModelSerializer[AdversaryTry]):
    """A question of an adversary to the models, with their answers."""

    run = serializers.IntegerField(source="run.number", help_text="Number of the run.")
    outputs = serializers.ListField(
        child=serializers.DictField(), help_text="Of each model: `model`, `output`, `prob`."
    )
    previous: Any = serializers.IntegerField(
        source="previous_id",
        allow_null=True,
        help_text="The try of the turn before, in a conversation. null: there is none.",
    )
    example = serializers.UUIDField(
        source="example.uuid",
        default=None,
        allow_null=True,
        help_text="The example that people judge. null: none was stored.",
    )

    class Meta:
        model = AdversaryTry
        fields = ("id", "run", "label", "text", "step", "is_offered", "state", "reason") + (
            "outputs",
            "is_fooled",
            "chance",
            "previous",
            "example",
            "asked_at",
        )


class NewAdversarySerializer(serializers.Serializer[Any]):
    """A new adversary."""

    kind = serializers.CharField(help_text="Name of the kind, such as rules or search.")
    options = serializers.DictField(
        default=dict, help_text="Values of the kind's settings. Others have their defaults."
    )
    name = build_request_field(AdversaryForm, "name")
    seed = build_request_field(AdversaryForm, "seed")
    is_nightly = build_request_field(AdversaryForm, "is_nightly")
    max_calls = build_request_field(AdversaryForm, "max_calls")
    max_examples = build_request_field(AdversaryForm, "max_examples")
    max_minutes = build_request_field(AdversaryForm, "max_minutes")
    max_tokens = build_request_field(AdversaryForm, "max_tokens")
    max_cost = build_request_field(AdversaryForm, "max_cost")


class AdversaryScheduleSerializer(serializers.Serializer[Any]):
    """Whether an adversary runs every night."""

    is_nightly = serializers.BooleanField()


class AdversaryAPIView(APIView):
    """Base view of a task's adversaries, for its editors who may read labels."""

    write_scope = ApiToken.Scope.OWN

    def get_attacked_task(self) -> Task:
        """Return the task in the address. Raises Http404 and PermissionDenied."""
        return find_task(self.request, self.kwargs["code"], can_run_adversaries)

    def get_adversary(self) -> Adversary:
        """Return the adversary in the address. Raises Http404 and PermissionDenied."""
        adversaries = self.get_attacked_task().adversaries.select_related("task")
        return get_object_or_404(adversaries, pk=self.kwargs["pk"])


@extend_schema_view(get=extend_schema(operation_id="adversaries_list"))
class AdversaryList(AdversaryAPIView, generics.ListAPIView[Adversary]):
    """A task's adversaries, newest first. Editors who may read labels only."""

    serializer_class = AdversarySerializer
    pagination_class = NewestFirst
    queryset = Adversary.objects.none()

    def get_queryset(self) -> QuerySet[Adversary]:
        """Return the task's adversaries."""
        return self.get_attacked_task().adversaries.all()

    @write("adversaries_make", NewAdversarySerializer, {201: AdversarySerializer})
    def post(self, request: Request, code: str) -> Response:
        """Create an adversary. It asks nothing until it is started."""
        task = self.get_attacked_task()
        values = read(NewAdversarySerializer, request)
        options = read_options(task, values["kind"], values.pop("options"))
        adversary = services.create_adversary(
            task=task, actor=get_person(request), options=options, **values
        )
        return Response(AdversarySerializer(adversary).data, status.HTTP_201_CREATED)


def read_options(task: Task, kind_name: str, sent_options: dict[str, Any]) -> dict[str, Any]:
    """Return complete values of a kind's settings, with defaults for those that were not sent.

    Raises Invalid for an unknown kind or setting, and for a value that the page's form refuses.
    """
    kind = KINDS.get(kind_name)
    if kind is None:
        raise Invalid("Choose one of the kinds: " + ", ".join(sorted(KINDS)), field="kind")
    settings = kind.list_settings(is_talk=task.config.talk is not None)
    defaults = {setting.name: setting.default for setting in settings}
    if unknown_names := sorted(sent_options.keys() - defaults.keys()):
        raise Invalid(f"The kind has no setting {unknown_names[0]}.", field="options")
    form = OptionsForm(kind, task, defaults | sent_options)
    if not form.is_valid():
        name, errors = next(iter(form.errors.items()))
        raise Invalid(f"{name}: {errors[0]}", field="options")
    return form.cleaned_data


class ReadyAdversaries(AdversaryAPIView):
    """The ready adversaries of an official task."""

    @write("adversaries_start_ready", None, {201: AdversarySerializer(many=True)})
    def post(self, request: Request, code: str) -> Response:
        """Create and start the ready adversaries of an official task. Returns those started."""
        task = self.get_attacked_task()
        runs = start_ready_adversaries(task=task, actor=get_person(request))
        adversaries = [run.adversary for run in runs]
        return Response(AdversarySerializer(adversaries, many=True).data, status.HTTP_201_CREATED)


class AdversaryView(AdversaryAPIView):
    """An adversary of a task."""

    @extend_schema(operation_id="adversaries_get", responses=AdversarySerializer)
    def get(self, request: Request, code: str, pk: int) -> Response:
        """Return an adversary. Editors who may read labels only."""
        return Response(AdversarySerializer(self.get_adversary()).data)

    @write("adversaries_change", AdversaryScheduleSerializer, AdversarySerializer)
    def patch(self, request: Request, code: str, pk: int) -> Response:
        """Switch an adversary's nightly runs on or off."""
        adversary = self.get_adversary()
        values = read(AdversaryScheduleSerializer, request)
        services.set_schedule(adversary=adversary, actor=get_person(request), **values)
        return Response(AdversarySerializer(self.get_adversary()).data)

    @write("adversaries_retire", gives={204: None})
    def delete(self, request: Request, code: str, pk: int) -> Response:
        """Retire an adversary. Its examples and its log stay."""
        services.retire_adversary(adversary=self.get_adversary(), actor=get_person(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


@extend_schema_view(get=extend_schema(operation_id="adversary_runs_list"))
class AdversaryRuns(AdversaryAPIView, generics.ListAPIView[AdversaryRun]):
    """The runs of an adversary, newest first.

    For editors who may read labels, and for the account that runs its program.
    """

    serializer_class = AdversaryRunSerializer
    pagination_class = NewestFirst
    queryset = AdversaryRun.objects.none()

    def get_adversary(self) -> Adversary:
        """Return the adversary in the address. Raises Http404 and PermissionDenied."""
        # They show no texts, and whoever brings a program sees how its runs end.
        return find_runnable_adversary(self.request, **self.kwargs)

    def get_queryset(self) -> QuerySet[AdversaryRun]:
        """Return the adversary's runs."""
        return self.get_adversary().runs.select_related("round")

    @write("adversary_runs_start", None, {201: AdversaryRunSerializer})
    def post(self, request: Request, code: str, pk: int) -> Response:
        """Start a run against the open round, with the adversary's budget."""
        run = services.start_run(adversary=self.get_adversary(), actor=get_person(request))
        return Response(AdversaryRunSerializer(run).data, status.HTTP_201_CREATED)

    @write("adversary_runs_stop", gives={200: AdversaryRunSerializer})
    def delete(self, request: Request, code: str, pk: int) -> Response:
        """Stop the adversary's current run."""
        adversary = self.get_adversary()
        run = find_current_run(adversary)
        if run is None:
            raise Refused("This adversary isn't running.", code="idle")
        services.stop_run(run=run, actor=get_person(request))
        run.refresh_from_db()
        return Response(AdversaryRunSerializer(run).data)


@extend_schema_view(get=extend_schema(operation_id="adversary_tries_list"))
class AdversaryTries(AdversaryAPIView, generics.ListAPIView[AdversaryTry]):
    """The log of an adversary, newest try first. Editors who may read labels only."""

    serializer_class = AdversaryTrySerializer
    pagination_class = NewestFirst
    queryset = AdversaryTry.objects.none()

    def get_queryset(self) -> QuerySet[AdversaryTry]:
        """Return the adversary's tries."""
        return self.get_adversary().logged_tries.select_related("run", "example")


ADVERSARIES_PATH = "tasks/<slug:code>/adversaries/"
urlpatterns = [
    path(ADVERSARIES_PATH, AdversaryList.as_view(), name="adversaries"),
    path(f"{ADVERSARIES_PATH}ready/", ReadyAdversaries.as_view(), name="adversaries-ready"),
    path(f"{ADVERSARIES_PATH}<int:pk>/", AdversaryView.as_view(), name="adversary"),
    path(f"{ADVERSARIES_PATH}<int:pk>/runs/", AdversaryRuns.as_view(), name="adversary-runs"),
    path(f"{ADVERSARIES_PATH}<int:pk>/tries/", AdversaryTries.as_view(), name="adversary-tries"),
]
