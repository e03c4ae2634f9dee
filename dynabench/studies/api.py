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
from core.errors import Refused
from core.web.api import NewestFirst, read
from core.web.form_fields import build_request_field
from dynabench.studies import services
from dynabench.studies.forms import StudyForm
from dynabench.studies.models import Study
from dynabench.studies.rules.plan import compute_plan_hash, read_plan
from dynabench.studies.selectors import build_study_report, can_read_study, count_draws
from tasks.access import ALL_KINDS, find_task, require_permission
from tasks.config.parsing import ConfigError
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


urlpatterns = [
    path("tasks/<slug:code>/studies/", StudyList.as_view(), name="studies"),
    path("tasks/<slug:code>/study-plans/", StudyPlanCheck.as_view(), name="study-plans"),
    path("tasks/<slug:code>/studies/<slug:slug>/", StudyAPIView.as_view(), name="study"),
    path(
        "tasks/<slug:code>/studies/<slug:slug>/report/",
        StudyReportView.as_view(),
        name="study-report",
    ),
]
