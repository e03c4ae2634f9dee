"""The API's views of reports about contexts."""

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_view
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation.access import find_assigned_context
from annotation.api.serializers import GivenContextSerializer, describe_context
from annotation.models import Report
from annotation.moderation import report_context, resolve_reports
from core.accounts.api import write
from core.accounts.models import ApiToken
from core.accounts.people import get_person, get_shown_name
from core.web.api import NewestFirst, read, read_query
from tasks.access import find_task, require_permission
from tasks.permissions import can_review


class NewReportSerializer(serializers.ModelSerializer[Report]):
    """A new report about a context."""

    class Meta:
        model = Report
        fields = ("reason", "comment")


class ReportSerializer(serializers.ModelSerializer[Report]):
    """A report about a context."""

    task = serializers.CharField(source="context.round.task.code")
    round = serializers.IntegerField(source="context.round.number")
    context: Any = serializers.SerializerMethodField()
    reporter = serializers.SerializerMethodField(help_text="Who says it: a pseudonym.")

    class Meta:
        model = Report
        fields = read_only_fields = (
            "id",
            "task",
            "round",
            "context",
            "reason",
            "comment",
            "reporter",
            "created_at",
            "resolved_at",
        )

    @extend_schema_field(GivenContextSerializer)
    def get_context(self, report: Report) -> dict[str, Any]:
        return describe_context(report.context, report.context.round.task.config)

    def get_reporter(self, report: Report) -> str:
        return get_shown_name(report.annotator)


def select_reports() -> QuerySet[Report]:
    """Return all reports, with the related rows loaded that the API shows."""
    return Report.objects.select_related("annotator", "context__round__task")


class NewReportView(APIView):
    write_scope = ApiToken.Scope.ANNOTATE

    @write("reports_create", NewReportSerializer, {201: ReportSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Report a problem with a context assigned to you. A later report replaces it."""
        context, annotator = find_assigned_context(request, pk)
        values = {"comment": "", **read(NewReportSerializer, request)}
        report = report_context(annotator=annotator, context=context, **values)
        body = ReportSerializer(select_reports().get(pk=report.pk))
        return Response(body.data, status.HTTP_201_CREATED)


class ReportsQuery(serializers.Serializer[Any]):
    """Filters for the list of reports."""

    open = serializers.BooleanField(
        required=False, allow_null=True, default=None, help_text="False: resolved ones."
    )


@extend_schema_view(get=extend_schema(operation_id="reports_list", parameters=[ReportsQuery]))
class ReportsView(generics.ListAPIView[Report]):
    """The reports about contexts, newest first. Reviewers only."""

    serializer_class = ReportSerializer
    pagination_class = NewestFirst
    queryset = Report.objects.none()

    def get_queryset(self) -> QuerySet[Report]:
        task = find_task(self.request, self.kwargs["code"], can_review)
        query = read_query(ReportsQuery, self.request)
        reports = select_reports().filter(context__round__task=task)
        return reports.filter(resolved_at__isnull=query["open"]) if query else reports


class ResolveView(APIView):
    write_scope = ApiToken.Scope.OWN

    @write("reports_resolve", None, ReportSerializer)
    def post(self, request: Request, pk: int) -> Response:
        """Mark a report as resolved; repeating this has no effect. Reviewers only."""
        report = get_object_or_404(select_reports(), pk=pk)
        require_permission(request.user, report.context.round.task, can_review)
        resolve_reports(reports=[report], actor=get_person(request))
        return Response(ReportSerializer(select_reports().get(pk=pk)).data)
