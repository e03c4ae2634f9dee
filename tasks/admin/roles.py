"""The admin by role: what a person sees and does there follows from their tasks."""

from collections.abc import Collection, Mapping
from typing import Any, ClassVar
from urllib.parse import urlencode

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import Case, Count, Model, OuterRef, Q, QuerySet, Subquery, Value, When
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.text import Truncator

from core.accounts.models import User
from core.accounts.people import account_name
from core.accounts.people import person as person
from core.web.refusals import as_message
from tasks.desk import roles_of
from tasks.models import Task
from tasks.permissions import EDITORS as EDITORS
from tasks.permissions import OWNERS as OWNERS
from tasks.permissions import READERS as READERS
from tasks.permissions import REVIEWERS as REVIEWERS

NOBODY: frozenset[str] = frozenset()
READ_ONLY = {"view": READERS, "add": NOBODY, "change": NOBODY, "delete": NOBODY}


def tasks_with(request: HttpRequest, roles: Collection[str]) -> QuerySet[Task]:
    """Return the tasks in which the person has one of the roles; all of them for a superuser."""
    if request.user.is_superuser:
        return Task.objects.all()
    return Task.objects.filter(pk__in=[t for t, role in roles_of(request).items() if role in roles])


def whether(condition: Q) -> Case:
    """Return a query column that tells whether a row matches; the condition may match nothing."""
    return Case(When(condition, then=Value(True)), default=Value(False))


class CountColumn:
    """A column of a list: how many rows of a relation each row has."""

    def __init__(self, relation: str, heading: str = "") -> None:
        self.relation, self.short_description = relation, heading or relation
        self.__name__ = self.admin_order_field = f"{relation}_in_all"

    def __call__(self, row: Model) -> Any:
        return getattr(row, self.__name__)

    def counted(self, model: type[Model]) -> Subquery:
        """Return the subquery that annotates a list; several of them do not multiply each other."""
        # A subquery for each count: two joins in one query would multiply the rows.
        rows = model._default_manager.filter(pk=OuterRef("pk")).order_by()
        return Subquery(rows.annotate(count=Count(self.relation)).values("count"))


def shielded(task: Task, text: str, length: int = 200) -> str:
    """Return a text in a list; in a sensitive task people open it themselves."""
    short = Truncator(text).chars(length)
    if not task.is_sensitive:
        return short
    return format_html("<details><summary>Show the text</summary>{}</details>", short)


def named(user: User | None, row: Any) -> str:
    """Name an account: by address for owners, by pseudonym for reviewers, not at all for others.

    `user` comes with its annotator.
    """
    if user is None or row.is_reviewed:
        return account_name(user, owns=row.is_owned)
    return "a member"


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
        """Return whether the person may do this to the row, or (None) to any row."""
        roles = self.may[action]
        if request.user.is_superuser:
            return bool(roles)
        roles_by_task = roles_of(request)
        if row is None:
            return any(role in roles for role in roles_by_task.values())
        return roles_by_task.get(self.task_of(row).pk) in roles

    def task_of(self, row: Any) -> Task:
        """Return the task that the row belongs to."""
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
    """A ModelAdmin that shows people the rows of their own tasks only.

    Each row has `is_reviewed` and `is_owned`: whether the person does so in its task. `page_for`:
    who may enter the page of a row.
    """

    class Media:
        css: ClassVar = {"all": ["css/admin.css"]}

    actions_on_bottom = True
    list_select_related: ClassVar[list[str]] = []  # besides the path to the task; used by pages too
    page, page_for = "dashboard", READERS
    lookups: ClassVar[list[str]] = []  # of addresses that pages link to

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.allows(request, "view")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        related = list(self.list_select_related)
        if self.to_task:
            related.append(self.to_task)
        columns = []
        for column in self.list_display:
            if isinstance(column, CountColumn):
                columns.append(column)
        counts = {column.__name__: column.counted(self.model) for column in columns}
        reviewed = self.in_tasks(tasks_with(request, REVIEWERS))
        owned = self.in_tasks(tasks_with(request, OWNERS))
        # Rows of other tasks are left out here, so that no page of the admin can reach them.
        rows = self.permitted(request, super().get_queryset(request), "view")
        annotated: QuerySet[Any] = rows.select_related(*related).annotate(
            is_reviewed=whether(reviewed), is_owned=whether(owned), **counts
        )
        return annotated

    def in_tasks(self, tasks: QuerySet[Task]) -> Q:
        """Return the condition for rows of these tasks."""
        return Q(**{f"{self.to_task or 'pk'}__in": tasks})

    def row_for(self, request: HttpRequest, pk: int, action: str) -> Any:
        """Return the row of a custom page.

        404 if the person may not see it, 403 if they may not change it.
        """
        # To somebody without a role in the task the row does not exist.
        row = get_object_or_404(self.get_queryset(request), pk=pk)
        if not self.allows(request, action, row):
            raise PermissionDenied
        return row

    def permitted(self, request: HttpRequest, rows: QuerySet[Any], action: str) -> QuerySet[Any]:
        """Return those of the rows to which the person may do this."""
        return rows.filter(self.in_tasks(tasks_with(request, self.may[action])))

    def lookup_allowed(self, lookup: str, value: str, request: Any = None) -> bool:
        """Allow only the list's filters: others would reveal letter by letter what it hides."""
        names: list[Any] = list(self.lookups)
        for list_filter in self.list_filter:
            if isinstance(list_filter, tuple):
                names.append(list_filter[0])
            else:
                names.append(list_filter)
        for name in names:
            if isinstance(name, str) and (lookup == name or lookup.startswith(f"{name}__")):
                return super().lookup_allowed(lookup, value, request)
        return False

    def get_list_display(self, request: HttpRequest) -> Any:
        columns: list[Any] = list(self.list_display)
        columns.append("page_link")
        return columns

    def view_on_site(self, row: Any) -> str | None:
        """Return the owners' page of the row; None for those who may not enter it."""
        may_enter = row.is_reviewed or self.page_for == READERS
        if may_enter:
            return self.page_of(row)
        return None

    def page_of(self, row: Any) -> str:
        """Return the address of that page, `page` unless a class overrides it."""
        return reverse(f"own:{self.page}", args=[self.task_of(row).code])

    @admin.display(description="owner page")
    def page_link(self, row: Any) -> str:
        """Link to the owners' page, from a list."""
        if not (url := self.view_on_site(row)):
            return ""
        # The hidden words tell who hears the page which of the links this one is.
        words = '<a href="{}">Open<span class="visually-hidden"> the page of {}</span></a>'
        return format_html(words, url, row)

    def row_page(self, route: str, view: Any) -> URLPattern:
        """Return the route of a custom page of a row, named after the model and the route."""
        guarded = self.admin_site.admin_view(view)
        name = f"{self.opts.app_label}_{self.opts.model_name}_{route.replace('/', '_')}"
        page: URLPattern = path(f"<int:pk>/{route}/", guarded, name=name)
        return page

    def shown(self, request: HttpRequest, template: str, **values: Any) -> HttpResponse:
        """Render a custom page; `template` is in the model's folder."""
        place = f"admin/{self.opts.app_label}/{self.opts.model_name}/{template}"
        values |= {**self.admin_site.each_context(request), "opts": self.opts, **values}
        return TemplateResponse(request, place, values)

    def changeform_view(
        self, request: HttpRequest, object_id: Any = None, *more: Any, **named: Any
    ) -> Any:
        """Save nothing when a service refuses, as when a round was opened in between."""
        with as_message(request):
            return super().changeform_view(request, object_id, *more, **named)
        return self._refused(object_id)

    def delete_view(self, request: HttpRequest, object_id: str, *more: Any, **named: Any) -> Any:
        """Delete nothing when a service refuses, as on the owners' pages."""
        with as_message(request):
            return super().delete_view(request, object_id, *more, **named)
        return self._refused(object_id)

    def _refused(self, object_id: Any) -> HttpResponse:
        """Redirect to the page, which shows why."""
        place = f"admin:{self.opts.app_label}_{self.opts.model_name}"
        if object_id:
            return redirect(f"{place}_change", object_id)
        return redirect(f"{place}_add")

    def history_view(self, request: HttpRequest, object_id: str, *more: Any, **named: Any) -> Any:
        """Redirect to the task's log of the row, which includes changes by pages and programs."""
        row = self.get_object(request, unquote(object_id))
        if row is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)  # type: ignore[attr-defined]
        log = reverse("admin:accounts_logentry_changelist")
        return redirect(f"{log}?{urlencode(self.logged(row))}")

    def logged(self, row: Any) -> dict[str, str]:
        """Return the filter of the task's log for this row."""
        return {"task": self.task_of(row).code, "target": str(row)}

    def get_actions(self, request: HttpRequest) -> Any:
        """Return the actions of the class without deletion of many rows at once."""
        actions = super().get_actions(request)
        # A service deletes each row, and may refuse; Django's action would go around it.
        actions.pop("delete_selected", None)
        return actions

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Name only the row: a service deletes what belongs to it, or refuses."""
        return [str(row) for row in objs], {self.opts.verbose_name_plural: len(objs)}, set(), []

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.related_model is Task:
            # Otherwise the list of choices would name tasks that the person may not see.
            kwargs["queryset"] = tasks_with(request, self.may["change"])
        return super().formfield_for_foreignkey(db_field, request, **kwargs)
