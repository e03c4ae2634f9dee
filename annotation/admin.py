"""Examples and reports in the admin: read by a task's members, reports resolved by reviewers."""

from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html

from annotation.models import Example, Report, TargetOutput
from annotation.moderation import resolve_reports
from core.accounts.people import get_shown_name
from tasks.admin.contexts import RoundFilter
from tasks.admin.roles import (
    READ_ONLY_PERMISSIONS,
    REVIEWERS,
    RoleAdmin,
    RolePermissions,
    get_person,
    shield_text,
)
from tasks.contexts.media.markup import format_media

MAX_CHARS = 100_000


def _format_lines(values: dict[str, Any]) -> str:
    return "\n".join(f"{name}: {format_media(value)}" for name, value in values.items())


class OutputInline(RolePermissions, admin.StackedInline):
    model = TargetOutput
    fields = readonly_fields = ("target", "version", "answer", "prob", "seconds", "fooled", "score")
    extra = 0
    task_path = "round__task"
    roles_by_action = READ_ONLY_PERMISSIONS

    def get_queryset(self, request: HttpRequest) -> Any:
        rows = super().get_queryset(request)
        return rows.select_related("target", "version__target", "example__round__task")

    @admin.display(description="output")
    def answer(self, output: TargetOutput) -> str:
        return shield_text(output.example.round.task, _format_lines(output.output), MAX_CHARS)


@admin.register(Example)
class ExampleAdmin(RoleAdmin):
    list_display = [
        "uuid",
        "text",
        "round",
        "outcome",
        "decided_by",
        "author",
        "by_program",
        "created_at",
    ]
    list_filter = [
        RoundFilter,
        "outcome",
        "decided_by",
        "by_program",
        ("retracted_at", admin.EmptyFieldListFilter),
    ]
    list_select_related = ["context", "annotator", "parent"]
    list_per_page = 50
    # Exact, as a search within texts would read the whole table.
    search_fields = ["=uuid"]
    lookups = ["annotator"]
    ordering = ["-pk"]
    fields = readonly_fields = (
        "uuid",
        "round",
        "author",
        "by_program",
        "whole_context",
        "goal",
        "challenge",
        "support",
        "whole_inputs",
        "answers",
        "outcome",
        "decided_by",
        "parent",
        "shown_at",
        "created_at",
        "retracted_at",
    )
    inlines = [OutputInline]
    task_path = "round__task"
    roles_by_action = READ_ONLY_PERMISSIONS
    page_roles = REVIEWERS

    def get_page_url(self, row: Example) -> str:
        return reverse("own:review-example", args=[row.round.task.code, row.uuid])

    @admin.display
    def author(self, example: Example) -> str:
        return get_shown_name(example.annotator)

    @admin.display(description="text")
    def text(self, example: Example) -> str:
        return shield_text(
            example.round.task, " | ".join(map(format_media, example.inputs.values())), 120
        )

    @admin.display(description="context")
    def whole_context(self, example: Example) -> str:
        return shield_text(example.round.task, _format_lines(example.context.fields), MAX_CHARS)

    @admin.display(description="inputs")
    def whole_inputs(self, example: Example) -> str:
        return shield_text(example.round.task, _format_lines(example.inputs), MAX_CHARS)

    @admin.display(description="answers afterwards")
    def answers(self, example: Example) -> str:
        return shield_text(example.round.task, _format_lines(example.metadata), MAX_CHARS)


class ResolvedFilter(admin.SimpleListFilter):
    """A filter of reports by state: open or resolved. Shows all reports by default."""

    title = "state"
    parameter_name = "resolved"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("0", "open"), ("1", "resolved")]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        if self.value() not in ("0", "1"):
            return queryset
        return queryset.filter(resolved_at__isnull=self.value() == "0")


@admin.register(Report)
class ReportAdmin(RoleAdmin):
    list_display = ["created_at", "reason", "note", "text", "reporter", "resolved_at"]
    list_filter = [
        ResolvedFilter,
        "reason",
        ("context__round__task", admin.RelatedOnlyFieldListFilter),
    ]
    list_select_related = ["annotator"]
    list_per_page = 50
    ordering = ["resolved_at", "-pk"]
    fields = readonly_fields = (
        "reason",
        "note",
        "whole_context",
        "context_link",
        "reporter",
        "created_at",
        "resolved_at",
    )
    actions = ["resolve"]
    task_path = "context__round__task"
    roles_by_action = {**READ_ONLY_PERMISSIONS, "view": REVIEWERS, "resolve": REVIEWERS}
    page_roles = REVIEWERS

    def get_page_url(self, row: Report) -> str:
        page = reverse("own:reports", args=[row.context.round.task.code])
        return f"{page}?resolved" if row.resolved_at else page

    def describe_for_log(self, row: Report) -> dict[str, str]:
        return {"task": row.context.round.task.code, "action__startswith": "reports."}

    @admin.display
    def reporter(self, report: Report) -> str:
        return get_shown_name(report.annotator)

    def has_resolve_permission(self, request: HttpRequest) -> bool:
        return self.is_allowed(request, "resolve")

    @admin.display(description="comment")
    def note(self, report: Report) -> str:
        return shield_text(report.context.round.task, report.comment, 500) if report.comment else ""

    @admin.display(description="context")
    def text(self, report: Report) -> str:
        return shield_text(report.context.round.task, _format_lines(report.context.fields), 120)

    @admin.display(description="context")
    def whole_context(self, report: Report) -> str:
        return shield_text(
            report.context.round.task, _format_lines(report.context.fields), MAX_CHARS
        )

    @admin.display(description="where to retire it")
    def context_link(self, report: Report) -> str:
        url = reverse("admin:tasks_context_change", args=[report.context_id])
        return format_html('<a href="{}">{}</a>', url, report.context)

    @admin.action(description="Resolve", permissions=["resolve"])
    def resolve(self, request: HttpRequest, queryset: Any) -> None:
        reports = self.filter_permitted(request, queryset, "resolve")
        count = resolve_reports(reports=reports, actor=get_person(request))
        messages.success(request, f"Reports resolved: {count}.")
