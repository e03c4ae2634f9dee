"""People and the audit log in the admin, limited to what the owners' pages show the reader."""

from typing import Any

from django.contrib import admin
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join

from annotation.models import Example
from core.accounts.models import Annotator, LogEntry
from core.accounts.people import get_shown_name
from dynabench.manage.log import ACCOUNT_KEYS, find_readable_entries, match_tasks
from tasks.admin.roles import (
    OWNERS,
    READ_ONLY_PERMISSIONS,
    READERS,
    REVIEWERS,
    RoleAdmin,
    build_boolean_column,
    find_tasks_with_role,
    get_account_name,
)
from validation.models import Validation


class ManyTasksAdmin(RoleAdmin):
    """A base class for the admin of rows that belong to no single task.

    The queryset limits what each person sees.
    """

    roles_by_action = READ_ONLY_PERMISSIONS

    def is_allowed(self, request: HttpRequest, action: str, row: Any = None) -> bool:
        return super().is_allowed(request, action)


@admin.register(LogEntry)
class LogAdmin(ManyTasksAdmin):
    list_display = ["created_at", "who", "action", "target", "task"]
    list_filter = ["task", "action"]
    lookups = ["target"]
    list_per_page = 50
    ordering = ["-pk"]
    fields = readonly_fields = ("created_at", "who", "action", "target", "task", "what")

    def get_queryset(self, request: HttpRequest) -> Any:
        rows = admin.ModelAdmin.get_queryset(self, request).select_related("actor__annotator")
        if request.user.is_superuser:
            return rows.annotate(is_reviewed=Value(True), is_owned=Value(True))
        readable_codes = _find_codes(request, READERS)
        reviewed_codes = _find_codes(request, REVIEWERS)
        owned_codes = _find_codes(request, OWNERS)
        readable_rows = rows.filter(
            pk__in=find_readable_entries(readable_codes, reviewed_codes).values("pk")
        )
        return readable_rows.annotate(
            is_reviewed=build_boolean_column(match_tasks(reviewed_codes)),
            is_owned=build_boolean_column(match_tasks(owned_codes)),
        )

    @admin.display
    def who(self, entry: LogEntry) -> str:
        if entry.actor is None:
            return "the platform, a command or a deleted account"
        return get_account_name(entry.actor, entry)

    @admin.display
    def what(self, entry: Any) -> str:
        hidden_keys: tuple[str, ...] = ACCOUNT_KEYS
        if entry.is_owned:
            hidden_keys = ()
        shown_pairs = [
            (name, value) for name, value in entry.data.items() if name not in hidden_keys
        ]
        return format_html_join("\n", "{}: {}", shown_pairs)

    def view_on_site(self, row: LogEntry) -> str | None:
        if not row.task:
            return None
        return reverse("own:log", args=[row.task])

    def describe_for_log(self, row: LogEntry) -> dict[str, str]:
        return {"target": row.target}


def _find_codes(request: HttpRequest, roles: Any) -> list[str]:
    """Return the codes of the tasks in which the signed-in person has one of the roles."""
    return list(find_tasks_with_role(request, roles).values_list("code", flat=True))


@admin.register(Annotator)
class AnnotatorAdmin(ManyTasksAdmin):
    """The admin of people by pseudonym, with their work in the tasks that the reader reviews."""

    list_display = ["person", "written", "judged"]
    list_per_page = 50
    ordering = ["pk"]
    fields = readonly_fields = ("person", "written", "judged", "pages")
    roles_by_action = {**READ_ONLY_PERMISSIONS, "view": REVIEWERS}

    def get_queryset(self, request: HttpRequest) -> Any:
        tasks = find_tasks_with_role(request, REVIEWERS)
        examples = Example.objects.filter(round__task__in=tasks)
        votes = Validation.objects.filter(example__round__task__in=tasks)
        rows = admin.ModelAdmin.get_queryset(self, request)
        has_taken_part = Q(pk__in=examples.values("annotator")) | Q(
            pk__in=votes.values("validator")
        )
        return rows.filter(has_taken_part).annotate(
            is_reviewed=Value(True),
            written_in_all=_build_count_column(examples, "annotator"),
            judged_in_all=_build_count_column(votes, "validator"),
        )

    @admin.display
    def person(self, row: Annotator) -> str:
        return get_shown_name(row)

    @admin.display(ordering="written_in_all")
    def written(self, row: Any) -> str:
        return _link_count("annotation_example_changelist", "annotator", row, row.written_in_all)

    @admin.display(ordering="judged_in_all")
    def judged(self, row: Any) -> str:
        return _link_count("validation_validation_changelist", "validator", row, row.judged_in_all)

    @admin.display(description="on the task owners' pages")
    def pages(self, row: Any) -> str:
        tasks = [(reverse("own:annotators", args=[task.code]), task.name) for task in row.tasks]
        return format_html_join(", ", '<a href="{}">{}</a>', tasks)

    def get_object(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        row = super().get_object(request, *args, **kwargs)
        if row:
            has_examples = Q(rounds__examples__annotator=row)
            has_votes = Q(rounds__examples__validations__validator=row)
            row.tasks = (
                find_tasks_with_role(request, REVIEWERS).filter(has_examples | has_votes).distinct()
            )
        return row

    def get_list_display(self, request: HttpRequest) -> Any:
        return self.list_display

    def view_on_site(self, row: Annotator) -> str | None:
        return None

    def describe_for_log(self, row: Annotator) -> dict[str, str]:
        return {"target": str(row)}


def _build_count_column(rows: QuerySet[Any], person_field: str) -> Coalesce:
    """Return an expression that counts each person's rows, 0 for people without any.

    person_field: the field of `rows` that refers to the person.
    """
    person_rows = rows.filter(**{person_field: OuterRef("pk")}).order_by().values(person_field)
    return Coalesce(Subquery(person_rows.annotate(n=Count("pk")).values("n")), 0)


def _link_count(page_path: str, person_field: str, row: Annotator, count: int) -> str:
    """Return the count as a link to the admin's list of the person's rows.

    page_path: the URL name of that list, without `admin:`.
    """
    return format_html(
        '<a href="{}?{}={}">{}</a>', reverse(f"admin:{page_path}"), person_field, row.pk, count
    )
