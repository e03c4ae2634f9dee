"""The API's addresses of a task's studies: plans, draws and reports, for the owners of all arms."""

from typing import Any

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.urls import path
from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_view
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
from dynabench.studies import services
from dynabench.studies.case_files import MAX_CASE_BYTES
from dynabench.studies.draft_forms import OpenStudyForm
from dynabench.studies.forms import StudyForm
from dynabench.studies.models import Pilot, PlanSimulation, Study
from dynabench.studies.pilot_selectors import ArmSummary, summarise_pilot
from dynabench.studies.pilot_services import (
    MAX_PILOT_PEOPLE,
    PILOT_PEOPLE,
    delete_pilot,
    start_pilot,
)
from dynabench.studies.power_services import find_simulation, request_simulation
from dynabench.studies.rules.plan import compute_plan_hash, read_plan
from dynabench.studies.selectors import build_study_report, can_read_study, count_draws
from dynabench.studies.setup_services import open_study, set_up_study
from tasks.access import ALL_KINDS, find_task, require_permission
from tasks.config.parsing import ConfigError
from tasks.line_files import FileError
from tasks.models import Task
from tasks.permissions import can_own, can_read


class StudySerializer(serializers.ModelSerializer[Study]):
    """A study with its plan. The plan can't change once it is frozen."""

    class Meta:
        model = Study
        fields = ("code", "state", "plan_text", "plan_hash", "frozen_at", "made_at")


class ArmDrawsSerializer(serializers.Serializer[Any]):
    """How many people were drawn into an arm, and how many of them took a place."""

    arm = serializers.CharField()
    drawn = serializers.IntegerField()
    joined = serializers.IntegerField()


class WholeStudySerializer(StudySerializer):
    """A study with its plan and its draws."""

    draws = serializers.SerializerMethodField()

    class Meta(StudySerializer.Meta):
        fields = (*StudySerializer.Meta.fields, "draws")  # type: ignore[assignment]

    @extend_schema_field(ArmDrawsSerializer(many=True))
    def get_draws(self, study: Study) -> Any:
        """Return the draws of each arm. Empty before the plan is frozen."""
        return ArmDrawsSerializer(count_draws(study), many=True).data


class StudyPlanSerializer(serializers.Serializer[Any]):
    """A plan in YAML."""

    plan_text = build_request_field(StudyForm, "plan_text")


class PlanProblemSerializer(serializers.Serializer[Any]):
    """A problem of a plan, with its place in the text. Lines and columns count from 1."""

    path = serializers.CharField()
    line = serializers.IntegerField()
    column = serializers.IntegerField()
    message = serializers.CharField()
    fix = serializers.CharField()


class PlanCheckSerializer(serializers.Serializer[Any]):
    """What is wrong with a plan. Without problems, `plan_hash` is the one that freezing gives."""

    plan_hash = serializers.CharField()
    problems = PlanProblemSerializer(many=True)


class StudyChangeSerializer(serializers.Serializer[Any]):
    """A new plan of a draft, or a new state of a study: frozen or closed."""

    plan_text = build_request_field(StudyForm, "plan_text", required=False)
    state = serializers.ChoiceField(list(services.STATE_SERVICES), required=False)

    def validate(self, values: dict[str, Any]) -> dict[str, Any]:
        """Check that the request contains a plan or a state, and not both."""
        if len({"plan_text", "state"} & values.keys()) != 1:
            raise serializers.ValidationError({"state": ["Send plan_text or state."]})
        return values


class StudyReportSerializer(serializers.Serializer[Any]):
    """The report of a study, as `manage.py study_report --json` prints it."""

    study = serializers.CharField()
    title = serializers.CharField()
    is_simulated = serializers.BooleanField(help_text="Whether it is a pilot's report.")
    plan_hash = serializers.CharField()
    frozen_at = serializers.DateTimeField()
    joined_without_draw = serializers.IntegerField(
        help_text="People who came by a campaign's link. They don't count."
    )
    costs = serializers.DictField(
        child=serializers.DictField(),
        help_text="By arm: `cost` and `cost_per_catch`, in the smallest unit of `currency`.",
    )
    coverage = serializers.DictField(
        child=serializers.FloatField(allow_null=True),
        help_text="By arm: the share of topics and challenges with a confirmed error.",
    )
    arms = serializers.DictField(child=serializers.DictField(), help_text="By name.")
    planned = serializers.ListField(child=serializers.DictField())
    exploratory = serializers.ListField(child=serializers.DictField())


class _StudyAPIView(APIView):
    """Base view of a task's studies, for the task's owners."""

    write_scope = ApiToken.Scope.OWN

    def get_studied_task(self) -> Task:
        """Return the task in the address, for its owners. Raises Http404, PermissionDenied."""
        task = find_task(self.request, self.kwargs["code"], can_own, kinds=ALL_KINDS)
        # As the pages of studies: reports are about what people wrote.
        require_permission(self.request.user, task, can_read)
        return task

    def find_own_study(self) -> Study:
        """Return the study in the address, for owners of all arms.

        Raises Http404, PermissionDenied.
        """
        studies = Study.objects.select_related("task").filter(task=self.get_studied_task())
        study = get_object_or_404(studies, code=self.kwargs["slug"])
        if not can_read_study(get_person(self.request), study):
            raise PermissionDenied
        return study


@extend_schema_view(get=extend_schema(operation_id="studies_list"))
class StudyList(_StudyAPIView, generics.ListAPIView[Study]):
    """A task's studies, newest first, without those with an arm that you don't own. Owners only."""

    serializer_class = StudySerializer
    pagination_class = NewestFirst
    queryset = Study.objects.none()

    def get_queryset(self) -> QuerySet[Study]:
        """Return the task's studies that the person may read."""
        studies = Study.objects.filter(task=self.get_studied_task()).select_related("task")
        studies = studies.prefetch_related("arms__campaign__task")
        person = get_person(self.request)
        readable_ids = [study.pk for study in studies if can_read_study(person, study)]
        return studies.filter(pk__in=readable_ids)

    @write("studies_make", StudyPlanSerializer, {201: WholeStudySerializer})
    def post(self, request: Request, code: str) -> Response:
        """Create a draft of a study from its plan. Owners of all arms only."""
        study = services.make_study(
            task=self.get_studied_task(),
            actor=get_person(request),
            **read(StudyPlanSerializer, request),
        )
        return Response(WholeStudySerializer(study).data, status.HTTP_201_CREATED)


class StudyPlanCheck(_StudyAPIView):
    """The check of a plan."""

    @write("studies_check", StudyPlanSerializer, PlanCheckSerializer)
    def post(self, request: Request, code: str) -> Response:
        """Check a plan, with the line of each problem. Stores nothing. Owners only."""
        self.get_studied_task()
        text = read(StudyPlanSerializer, request)["plan_text"]
        try:
            read_plan(text)
        except ConfigError as error:
            result = {"plan_hash": "", "problems": error.problems}
        else:
            result = {"plan_hash": compute_plan_hash(text), "problems": []}
        return Response(PlanCheckSerializer(result).data)


class StudyAPIView(_StudyAPIView):
    """One study: its plan, its state and its draws."""

    @extend_schema(operation_id="studies_get", responses=WholeStudySerializer)
    def get(self, request: Request, code: str, slug: str) -> Response:
        """Return a study with its plan and how many people were drawn. Owners of all arms only."""
        return Response(WholeStudySerializer(self.find_own_study()).data)

    @write("studies_change", StudyChangeSerializer, WholeStudySerializer)
    def patch(self, request: Request, code: str, slug: str) -> Response:
        """Change the plan of a draft, freeze it, or close the study. Owners of all arms only."""
        study, actor = self.find_own_study(), get_person(request)
        values = read(StudyChangeSerializer, request)
        if "plan_text" in values:
            services.change_study(study=study, actor=actor, **values)
        else:
            services.STATE_SERVICES[values["state"]](study=study, actor=actor)
        return Response(WholeStudySerializer(self.find_own_study()).data)


class StudyReportView(_StudyAPIView):
    """The report of a study."""

    @extend_schema(operation_id="studies_report", responses=StudyReportSerializer)
    def get(self, request: Request, code: str, slug: str) -> Response:
        """Return the report of a frozen study. Owners of all arms only."""
        study = self.find_own_study()
        if study.state == Study.State.DRAFT:
            raise Refused("Freeze the plan first.", code="draft", status=409)
        return Response(build_study_report(study))


class StudySetupSerializer(StudyPlanSerializer):
    """A plan with a setup, and its cases."""

    cases = serializers.CharField(
        max_length=MAX_CASE_BYTES,
        trim_whitespace=False,
        help_text="JSON lines: the fields of a context, and its key in metadata.",
    )


class MadeStudySerializer(WholeStudySerializer):
    """A study that was set up, with the task at whose address it is."""

    task = serializers.CharField(source="task.code", read_only=True)

    class Meta(WholeStudySerializer.Meta):
        fields = (*WholeStudySerializer.Meta.fields, "task")  # type: ignore[assignment]


class StudySetup(APIView):
    """The set-up of studies."""

    write_scope = ApiToken.Scope.OWN

    @write("studies_set_up", StudySetupSerializer, {201: MadeStudySerializer})
    def post(self, request: Request) -> Response:
        """Make a study from a plan with `setup` and its cases: a task and a campaign for each arm.

        Only for people who may create tasks.
        """
        values = read(StudySetupSerializer, request)
        try:
            study = set_up_study(
                plan_text=values["plan_text"],
                cases=values["cases"].encode(),
                file_name="cases.jsonl",
                actor=get_person(request),
            )
        except FileError as error:
            raise Invalid(str(error), field="cases") from None
        return Response(MadeStudySerializer(study).data, status.HTTP_201_CREATED)


class PowerSerializer(serializers.ModelSerializer[PlanSimulation]):
    """What simulated studies of a plan find. Numbers are shares, and null until it is done."""

    class Meta:
        model = PlanSimulation
        fields = ("state", "error", "studies", "false_alarms", "power", "coverage95", "plan_hash")


class StudyPower(_StudyAPIView):
    """The power of a study's plan."""

    @extend_schema(operation_id="studies_power", responses=PowerSerializer)
    def get(self, request: Request, code: str, slug: str) -> Response:
        """Return the power of a study's plan by simulation. Owners of all arms only."""
        simulation = find_simulation(self.find_own_study().plan_text)
        if simulation is None:
            raise Refused("Simulate the study first.", code="not_simulated", status=409)
        return Response(PowerSerializer(simulation).data)

    @write("studies_simulate", None, {202: PowerSerializer})
    def post(self, request: Request, code: str, slug: str) -> Response:
        """Queue the simulation of a study's plan. Owners of all arms only."""
        text = self.find_own_study().plan_text
        simulation = request_simulation(plan_text=text, actor=get_person(request))
        return Response(PowerSerializer(simulation).data, status.HTTP_202_ACCEPTED)


class PilotRequestSerializer(serializers.Serializer[Any]):
    """How many simulated people a pilot has."""

    people = serializers.IntegerField(min_value=1, max_value=MAX_PILOT_PEOPLE, default=PILOT_PEOPLE)


class PilotArmSerializer(serializers.Serializer[ArmSummary]):
    """What a pilot tells of one arm. Money is in the currency's smallest unit; null: unknown."""

    name = serializers.CharField()
    submitted = serializers.IntegerField(help_text="How many simulated people finished.")
    examples = serializers.IntegerField()
    judged = serializers.IntegerField(help_text="How many examples simulated judges decided.")
    minutes = serializers.FloatField(allow_null=True, help_text="Per person, on average.")
    time_limit = serializers.IntegerField(help_text="Minutes that people have.")
    means = serializers.DictField(
        child=serializers.FloatField(allow_null=True), help_text="By outcome; times in seconds."
    )
    currency = serializers.CharField()
    cost = serializers.IntegerField(help_text="Of the simulated people, had they been paid.")
    expected_cost = serializers.IntegerField(
        allow_null=True, help_text="Of all people of the plan."
    )
    planned_people = serializers.IntegerField()


class PilotSerializer(serializers.ModelSerializer[Pilot]):
    """A pilot of a study with simulated people. Its rows never count in the study."""

    task = serializers.CharField(
        source="rehearsal.task.code", default="", help_text="Of the copy that they take part in."
    )
    study = serializers.CharField(source="rehearsal.code", default="", help_text="The copy.")
    arms = serializers.SerializerMethodField(help_text="Empty until it is done.")

    class Meta:
        model = Pilot
        fields = ("state", "error", "progress", "message", "people", "task", "study", "arms")

    @extend_schema_field(PilotArmSerializer(many=True))
    def get_arms(self, pilot: Pilot) -> Any:
        """Return what the pilot tells of each arm, once it is done."""
        summaries = summarise_pilot(pilot) if pilot.state == Pilot.State.DONE else []
        return [PilotArmSerializer(summary).data for summary in summaries]


class StudyPilot(_StudyAPIView):
    """The pilot of a study."""

    @extend_schema(operation_id="studies_pilot_get", responses=PilotSerializer)
    def get(self, request: Request, code: str, slug: str) -> Response:
        """Return the state of a study's pilot, and where its report is. Owners of all arms only."""
        pilots = Pilot.objects.select_related("rehearsal__task")
        return Response(
            PilotSerializer(get_object_or_404(pilots, study=self.find_own_study())).data
        )

    @write("studies_pilot_start", PilotRequestSerializer, {202: PilotSerializer})
    def post(self, request: Request, code: str, slug: str) -> Response:
        """Let simulated people take part in a copy of the study. Owners of all arms only."""
        study, actor = self.find_own_study(), get_person(request)
        values = read(PilotRequestSerializer, request)
        pilot = start_pilot(study=study, actor=actor, **values)
        return Response(PilotSerializer(pilot).data, status.HTTP_202_ACCEPTED)

    @write("studies_pilot_delete", None, {204: None})
    def delete(self, request: Request, code: str, slug: str) -> Response:
        """Delete a pilot with all that simulated people did. Owners of all arms only."""
        delete_pilot(study=self.find_own_study(), actor=get_person(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class StudyOpeningSerializer(serializers.Serializer[Any]):
    """Who stands for the ethics statement of a study."""

    ethics_name = build_request_field(OpenStudyForm, "ethics_name")


class StudyOpening(_StudyAPIView):
    """The opening of a study with a setup."""

    @write("studies_open", StudyOpeningSerializer, WholeStudySerializer)
    def post(self, request: Request, code: str, slug: str) -> Response:
        """Open the rounds, freeze the plan and open the campaigns. Owners of all arms only."""
        study = self.find_own_study()
        values = read(StudyOpeningSerializer, request)
        if study.plan.setup is None:
            raise Invalid("The plan has no setup. Freeze it, and open its campaigns.")
        open_study(study=study, actor=get_person(request), **values)
        return Response(WholeStudySerializer(self.find_own_study()).data)


urlpatterns = [
    path("studies/", StudySetup.as_view(), name="study-setup"),
    path("tasks/<slug:code>/studies/", StudyList.as_view(), name="studies"),
    path("tasks/<slug:code>/study-plans/", StudyPlanCheck.as_view(), name="study-plans"),
    path("tasks/<slug:code>/studies/<slug:slug>/", StudyAPIView.as_view(), name="study"),
    path(
        "tasks/<slug:code>/studies/<slug:slug>/report/",
        StudyReportView.as_view(),
        name="study-report",
    ),
    path("tasks/<slug:code>/studies/<slug:slug>/power/", StudyPower.as_view(), name="study-power"),
    path("tasks/<slug:code>/studies/<slug:slug>/pilot/", StudyPilot.as_view(), name="study-pilot"),
    path("tasks/<slug:code>/studies/<slug:slug>/open/", StudyOpening.as_view(), name="study-open"),
]
