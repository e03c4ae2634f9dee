"""The admin by role: what a person sees and does there follows from their tasks."""

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Count, Model, OuterRef, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.text import Truncator

from dynabench.accounts.people import person as person
from dynabench.accounts.services import log
from dynabench.lib.refusals import as_message
from tasks.models import Task, TaskMember
from tasks.permissions import EDITORS as EDITORS
from tasks.permissions import OWNERS as OWNERS
from tasks.permissions import READERS as READERS
from tasks.permissions import REVIEWERS as REVIEWERS

NOBODY: frozenset[str] = frozenset()


def roles_of(request: HttpRequest) -> Mapping[int, str]:
    """The person's role by task; one query a request."""
    if not hasattr(request, "task_roles"):
        members = TaskMember.objects.standing().filter(user=request.user.pk)
        request.task_roles = dict(members.values_list("task_id", "role"))  # type: ignore[attr-defined]
    return request.task_roles  # type: ignore[attr-defined,no-any-return]


def tasks_with(request: HttpRequest, roles: Collection[str]) -> QuerySet[Task]:
    """The tasks in which the person has one of the roles; all of them for a superuser."""
    if request.user.is_superuser:
        return Task.objects.all()
    return Task.objects.filter(pk__in=[t for t, role in roles_of(request).items() if role in roles])


class CountColumn:
    """A column of a list: how many rows of a relation each row has."""

    def __init__(self, relation: str, heading: str = "") -> None:
        self.relation, self.short_description = relation, heading or relation
        self.__name__ = self.admin_order_field = f"{relation}_in_all"

    def __call__(self, row: Model) -> Any:
        return getattr(row, self.__name__)

    def counted(self, model: type[Model]) -> Subquery:
        """What a list is annotated with; several of these do not multiply each other."""
        rows = model._default_manager.filter(pk=OuterRef("pk")).order_by()
        return Subquery(rows.annotate(count=Count(self.relation)).values("count"))


def shielded(task: Task, text: str, length: int = 200) -> str:
    """A text in a list; for a sensitive task people open it themselves."""
    short = Truncator(text).chars(length)
    if not task.is_sensitive:
        return short
    return format_html("<details><summary>Show the text</summary>{}</details>", short)


class ByRole:
    """Permissions of a ModelAdmin, or of an inline, from the role in the task of the row.

    Django's own model permissions are not asked. `to_task` is the path of attributes from the row
    (for an inline: from its parent) to the task, empty for the task itself.
    """

    to_task = "task"
    may: Mapping[str, Collection[str]] = {
        "view": READERS, "add": EDITORS, "change": EDITORS, "delete": EDITORS
    }  # fmt: skip

    def allows(self, request: HttpRequest, action: str, row: Model | None = None) -> bool:
        """Whether the person may do this to the row, or (None) to any row."""
        roles = self.may[action]
        if request.user.is_superuser:
            return bool(roles)
        held = roles_of(request)
        if row is None:
            return any(role in roles for role in held.values())
        return held.get(self.task_of(row).pk) in roles

    def task_of(self, row: Any) -> Task:
        """The task that the row belongs to."""
        for name in filter(None, self.to_task.split("__")):
            row = getattr(row, name)
        return row  # type: ignore[no-any-return]

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.allows(request, "view", obj)

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.allows(request, "add", obj)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.allows(request, "change", obj)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.allows(request, "delete", obj)


class RoleAdmin(ByRole, admin.ModelAdmin):  # type: ignore[type-arg]
    """A ModelAdmin that shows people the rows of their own tasks only."""

    class Media:
        css: ClassVar = {"all": ["css/admin.css"]}

    actions_on_bottom = True
    list_select_related: ClassVar[list[str]] = []  # besides the path to the task; used by pages too

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.allows(request, "view")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        related = [*filter(None, [self.to_task]), *self.list_select_related]
        columns = [column for column in self.list_display if isinstance(column, CountColumn)]
        counts = {column.__name__: column.counted(self.model) for column in columns}
        rows = self.permitted(request, super().get_queryset(request), "view")
        found: QuerySet[Any] = rows.select_related(*related).annotate(**counts)
        return found

    def row_for(self, request: HttpRequest, pk: int, action: str) -> Any:
        """The row of a custom page: 404 if the person may not see it, 403 if not change it."""
        row = get_object_or_404(self.get_queryset(request), pk=pk)
        if not self.allows(request, action, row):
            raise PermissionDenied
        return row

    def permitted(self, request: HttpRequest, rows: QuerySet[Any], action: str) -> QuerySet[Any]:
        """Of these rows those to which the person may do this."""
        tasks = tasks_with(request, self.may[action])
        return rows.filter(**{f"{self.to_task or 'pk'}__in": tasks})

    def row_page(self, route: str, view: Any) -> URLPattern:
        """The address of a custom page of a row; it is named after the model and the route."""
        guarded = self.admin_site.admin_view(view)
        name = f"{self.opts.app_label}_{self.opts.model_name}_{route.replace('/', '_')}"
        page: URLPattern = path(f"<int:pk>/{route}/", guarded, name=name)
        return page

    def shown(self, request: HttpRequest, template: str, **values: Any) -> HttpResponse:
        """A custom page; `template` is in the model's folder."""
        place = f"admin/{self.opts.app_label}/{self.opts.model_name}/{template}"
        values |= {**self.admin_site.each_context(request), "opts": self.opts, **values}
        return TemplateResponse(request, place, values)

    def changeform_view(
        self, request: HttpRequest, object_id: Any = None, *more: Any, **named: Any
    ) -> Any:
        """Nothing is saved where a service refuses, as when a round was opened meanwhile."""
        with as_message(request):
            return super().changeform_view(request, object_id, *more, **named)
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_change"
        return redirect(name, object_id)

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.related_model is Task:
            kwargs["queryset"] = tasks_with(request, self.may["change"])
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def delete_model(self, request: HttpRequest, obj: Model) -> None:
        log(request.user, f"{self.opts.model_name}.deleted", obj)
        super().delete_model(request, obj)

    @transaction.atomic
    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for row in queryset:
            log(request.user, f"{self.opts.model_name}.deleted", row)
        super().delete_queryset(request, queryset)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Deleting a row includes the rows that depend on it; PROTECT still holds."""
        listed, counts, _, protected = super().get_deleted_objects(objs, request)
        refused = not all(self.allows(request, "delete", row) for row in objs)
        return listed, counts, {str(self.opts.verbose_name)} if refused else set(), protected
