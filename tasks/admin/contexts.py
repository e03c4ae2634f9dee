"""Contexts and their imports in the admin."""

from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest
from django.urls import reverse

from core.web.refusals import show_as_message
from tasks.admin.roles import (
    EDITORS,
    NO_ROLES,
    READERS,
    CountColumn,
    RoleAdmin,
    get_account_name,
    get_person,
    shield_text,
)
from tasks.contexts.media.markup import format_media
from tasks.contexts.services import set_retired, undo_import
from tasks.models import Context, ContextBatch, Round


class RoundFilter(admin.SimpleListFilter):
    """A filter by round that offers only rounds of the rows that the person may see."""

    title = parameter_name = "round"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        rows = model_admin.get_queryset(request)
        rounds = Round.objects.filter(pk__in=rows.order_by().values("round"))
        return [(str(round.pk), str(round)) for round in rounds.select_related("task")]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        value = self.value() or ""
        if value.isdecimal():
            return queryset.filter(round=value)
        return queryset


@admin.register(Context)
class ContextAdmin(RoleAdmin):
    list_display = [
        "pk",
        "text",
        "round",
        "tag",
        CountColumn("assignments", "handed out"),
        CountColumn("examples"),
        "is_retired",
    ]
    list_filter = [RoundFilter, "is_retired"]
    list_select_related = ["batch__round__task"]
    list_per_page = 50
    search_fields = ["tag", "digest"]
    ordering = ["-pk"]
    fields = ["round", "batch", "full_text", "digest", "tag", "metadata", "is_retired"]
    readonly_fields = ["round", "batch", "full_text", "digest", "tag", "metadata"]
    actions = ["retire", "restore"]
    task_path = "round__task"
    roles_by_action = {"view": READERS, "add": NO_ROLES, "change": EDITORS, "delete": NO_ROLES}

    @admin.display(description="text")
    def text(self, context: Context) -> str:
        return shield_text(
            context.round.task, " | ".join(map(format_media, context.fields.values())), 120
        )

    @admin.display(description="fields")
    def full_text(self, context: Context) -> str:
        lines = [f"{name}: {format_media(value)}" for name, value in context.fields.items()]
        return shield_text(context.round.task, "\n".join(lines), 100_000)

    def save_model(self, request: HttpRequest, obj: Context, form: Any, change: bool) -> None:
        if form.changed_data:
            contexts = Context.objects.filter(pk=obj.pk)
            set_retired(contexts=contexts, is_retired=obj.is_retired, actor=get_person(request))

    def get_page_url(self, row: Context) -> str:
        page = reverse("own:contexts-all", args=[row.round.task.code, row.round.number])
        return f"{page}?context={row.pk}"

    def describe_for_log(self, row: Context) -> dict[str, str]:
        return {"task": row.round.task.code, "action__startswith": "contexts."}

    @admin.action(description="Retire: stop giving out", permissions=["change"])
    def retire(self, request: HttpRequest, queryset: Any) -> None:
        self._set_retired(request, queryset, True)

    @admin.action(description="Restore: give out again", permissions=["change"])
    def restore(self, request: HttpRequest, queryset: Any) -> None:
        self._set_retired(request, queryset, False)

    def _set_retired(self, request: HttpRequest, rows: Any, is_retired: bool) -> None:
        contexts = self.filter_permitted(request, rows, "change")
        count = set_retired(contexts=contexts, is_retired=is_retired, actor=get_person(request))
        messages.success(request, f"Contexts {'retired' if is_retired else 'returned'}: {count}.")


@admin.register(ContextBatch)
class ContextBatchAdmin(RoleAdmin):
    context_count: Any = CountColumn("context", "contexts")
    list_display = ["file_name", "round", "importer", "imported_at", context_count]
    list_filter = [RoundFilter]
    list_select_related = ["imported_by__annotator"]
    fields = readonly_fields = ("round", "file_name", "importer", "imported_at", context_count)
    ordering = ["-pk"]
    actions = ["undo"]
    task_path = "round__task"
    roles_by_action = {
        "view": EDITORS,
        "add": NO_ROLES,
        "change": NO_ROLES,
        "delete": NO_ROLES,
        "undo": EDITORS,
    }

    @admin.display(description="imported by")
    def importer(self, batch: ContextBatch) -> str:
        return get_account_name(batch.imported_by, batch)

    def get_page_url(self, row: ContextBatch) -> str:
        return reverse("own:contexts-all", args=[row.round.task.code, row.round.number])

    def describe_for_log(self, row: ContextBatch) -> dict[str, str]:
        return {"task": row.round.task.code, "action__startswith": "contexts."}

    def has_undo_permission(self, request: HttpRequest) -> bool:
        return self.is_allowed(request, "undo")

    @admin.action(description="Undo the import (if no context is used)", permissions=["undo"])
    def undo(self, request: HttpRequest, queryset: Any) -> None:
        for batch in self.filter_permitted(request, queryset, "undo"):
            with show_as_message(request):
                count = undo_import(batch=batch, actor=get_person(request))
                messages.success(request, f"{batch}: contexts taken out: {count}.")
