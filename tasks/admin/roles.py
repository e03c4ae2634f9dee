"""The admin by role: what people see and do there follows from their roles in tasks."""

from collections.abc import Collection, Mapping
from typing import Any, ClassVar
from urllib.parse import urlencode

from django import forms
from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import Case, Count, Model, OuterRef, Q, QuerySet, Subquery, Value, When
from django.http import HttpRequest
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.text import Truncator

from core.accounts.models import User
from core.accounts.people import get_member_label
from core.accounts.people import get_person as get_person
from core.errors import Refused
from core.web.refusals import show_as_form_error, show_as_message
from tasks.admin_site import get_roles_by_task
from tasks.config.parsing import ConfigError
from tasks.models import Task
from tasks.permissions import EDITORS as EDITORS
from tasks.permissions import OWNERS as OWNERS
from tasks.permissions import READERS as READERS
from tasks.permissions import REVIEWERS as REVIEWERS

NO_ROLES: frozenset[str] = frozenset()
READ_ONLY_PERMISSIONS = {"view": READERS, "add": NO_ROLES, "change": NO_ROLES, "delete": NO_ROLES}


def find_tasks_with_role(request: HttpRequest, roles: Collection[str]) -> QuerySet[Task]:
    """Return the tasks in which the person has one of the roles; all tasks for a superuser."""
    if request.user.is_superuser:
        return Task.objects.all()
    return Task.objects.filter(
        pk__in=[task_id for task_id, role in get_roles_by_task(request).items() if role in roles]
    )


def build_boolean_column(condition: Q) -> Case:
    """Return a boolean query column that is true for the rows that match the condition."""
    return Case(When(condition, then=Value(True)), default=Value(False))


class CountColumn:
    """A list column that shows how many rows of a relation each row has."""

    def __init__(self, relation: str, heading: str = "") -> None:
        self.relation, self.short_description = relation, heading or relation
        self.__name__ = self.admin_order_field = f"{relation}_in_all"

    def __call__(self, row: Model) -> Any:
        return getattr(row, self.__name__)

    def build_count_subquery(self, model: type[Model]) -> Subquery:
        """Return the subquery that counts the related rows."""
        # A subquery for each count: two joins in one query would multiply the rows.
        rows = model._default_manager.filter(pk=OuterRef("pk")).order_by()
        return Subquery(rows.annotate(count=Count(self.relation)).values("count"))


def shield_text(task: Task, text: str, length: int = 200) -> str:
    """Return a text shortened to `length` characters, for a list.

    In a sensitive task, it is HTML that hides the text until the reader opens it.
    """
    excerpt = Truncator(text).chars(length)
    if not task.is_sensitive:
        return excerpt
    return format_html("<details><summary>Show the text</summary>{}</details>", excerpt)


def get_account_name(user: User | None, row: Any) -> str:
    """Return the name of an account as the reader sees it.

    Owners see its email address, reviewers its pseudonym, and everybody else "a member". user: the
    account, loaded together with its annotator, or None. row: a row of `RoleAdmin`, with its
    attributes `is_owned` and `is_reviewed`.
    """
    if user is None or row.is_reviewed:
        return get_member_label(user, is_owner=row.is_owned)
    return "a member"


class RolePermissions:
    """Permissions of a ModelAdmin or inline that follow from the person's role in the row's task.

    Django's own model permissions are ignored. `task_path` is the path of attributes from the row
    to the task (in an inline, from its parent); "" if the row is a task. `roles_by_action` has the
    roles that may do each action.
    """

    task_path = "task"
    roles_by_action: Mapping[str, Collection[str]] = {
        "view": READERS, "add": EDITORS, "change": EDITORS, "delete": EDITORS
    }  # fmt: skip

    def is_allowed(self, request: HttpRequest, action: str, row: Model | None = None) -> bool:
        """Return whether the person may do `action` to the row.

        Without a row, return whether they may do it in at least one task.
        """
        roles = self.roles_by_action[action]
        if request.user.is_superuser:
            return bool(roles)
        roles_by_task = get_roles_by_task(request)
        if row is None:
            return any(role in roles for role in roles_by_task.values())
        return roles_by_task.get(self.get_task_of(row).pk) in roles

    def get_task_of(self, row: Any) -> Task:
        """Return the task that the row belongs to."""
        for name in filter(None, self.task_path.split("__")):
            row = getattr(row, name)
        return row  # type: ignore[no-any-return]

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.is_allowed(request, "view", obj)

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.is_allowed(request, "add", obj)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.is_allowed(request, "change", obj)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.is_allowed(request, "delete", obj)


class RefusedForm(forms.ModelForm):  # type: ignore[type-arg]
    """A form that shows why a service refused its values."""

    refusal: Refused | ConfigError

    def full_clean(self) -> None:
        super().full_clean()
        if isinstance(self.refusal, ConfigError):
            self.add_error("config_text", [str(problem) for problem in self.refusal.problems])
            return
        with show_as_form_error(self):
            raise self.refusal


class RoleAdmin(RolePermissions, admin.ModelAdmin):  # type: ignore[type-arg]
    """A ModelAdmin that shows people only the rows of their own tasks.

    Each row has `is_reviewed` and `is_owned`: whether the person reviews or owns its task.
    `page_roles`: the roles that may open the row's owner page.
    """

    actions_on_bottom = True
    list_select_related: ClassVar[list[str]] = []  # besides the path to the task; used by pages too
    page, page_roles = "dashboard", READERS
    lookups: ClassVar[list[str]] = []  # of addresses that pages link to

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.is_allowed(request, "view")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        relations = list(self.list_select_related)
        if self.task_path:
            relations.append(self.task_path)
        columns = []
        for column in self.list_display:
            if isinstance(column, CountColumn):
                columns.append(column)
        count_columns = {
            column.__name__: column.build_count_subquery(self.model) for column in columns
        }
        reviewed_condition = self.build_task_condition(find_tasks_with_role(request, REVIEWERS))
        owned_condition = self.build_task_condition(find_tasks_with_role(request, OWNERS))
        # Rows of other tasks are left out here, so that no page of the admin can reach them.
        rows = self.filter_permitted(request, super().get_queryset(request), "view")
        annotated_rows: QuerySet[Any] = rows.select_related(*relations).annotate(
            is_reviewed=build_boolean_column(reviewed_condition),
            is_owned=build_boolean_column(owned_condition),
            **count_columns,
        )
        return annotated_rows

    def build_task_condition(self, tasks: QuerySet[Task]) -> Q:
        """Return the condition that selects the rows of these tasks."""
        return Q(**{f"{self.task_path or 'pk'}__in": tasks})

    def get_permitted_row(self, request: HttpRequest, pk: int, action: str) -> Any:
        """Return the row that a custom page is about.

        Raises Http404 if the person may not see the row, PermissionDenied if they may not do
        `action`.
        """
        # To somebody without a role in the task the row does not exist.
        row = get_object_or_404(self.get_queryset(request), pk=pk)
        if not self.is_allowed(request, action, row):
            raise PermissionDenied
        return row

    def filter_permitted(
        self, request: HttpRequest, rows: QuerySet[Any], action: str
    ) -> QuerySet[Any]:
        """Return the rows to which the person may do `action`."""
        return rows.filter(
            self.build_task_condition(find_tasks_with_role(request, self.roles_by_action[action]))
        )

    def lookup_allowed(self, lookup: str, value: str, request: Any = None) -> bool:
        """Return whether a lookup is one of the list's filters.

        Any other lookup would let people guess hidden values character by character.
        """
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
        """Return the URL of the row's owner page; None for people who may not open it."""
        may_enter = row.is_reviewed or self.page_roles == READERS
        if may_enter:
            return self.get_page_url(row)
        return None

    def get_page_url(self, row: Any) -> str:
        """Return the URL of the row's owner page `page`. Subclasses may override this."""
        return reverse(f"own:{self.page}", args=[self.get_task_of(row).code])

    @admin.display(description="owner page")
    def page_link(self, row: Any) -> str:
        """Return a link to the row's owner page, or "" for people who may not open it."""
        if not (url := self.view_on_site(row)):
            return ""
        # The hidden words tell who hears the page which of the links this one is.
        link_html = '<a href="{}">Open<span class="visually-hidden"> the page of {}</span></a>'
        return format_html(link_html, url, row)

    def build_row_page(self, route: str, view: Any) -> URLPattern:
        """Return the URL pattern of a custom page of a row, named after the model and the route."""
        guarded_view = self.admin_site.admin_view(view)
        name = f"{self.opts.app_label}_{self.opts.model_name}_{route.replace('/', '_')}"
        page: URLPattern = path(f"<int:pk>/{route}/", guarded_view, name=name)
        return page

    def changeform_view(
        self, request: HttpRequest, object_id: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        """Save through the service. If it refuses, show the form again with the reason.

        Only the service knows the rules, so the admin's forms check none of them.
        """
        try:
            return super().changeform_view(request, object_id, *args, **kwargs)
        except (Refused, ConfigError) as error:
            # Everything was rolled back. The form is read once more, and says why.
            request.refusal = error  # type: ignore[attr-defined]
            return super().changeform_view(request, object_id, *args, **kwargs)

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any
    ) -> Any:
        """Return the form; after a refusal by the service, a form that shows the reason."""
        form: Any = super().get_form(request, obj, change=change, **options)
        if refusal := getattr(request, "refusal", None):
            return type(form.__name__, (RefusedForm, form), {"refusal": refusal})
        return form

    def delete_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> Any:
        """Delete through the service. If it refuses, return to the row with a message."""
        with show_as_message(request):
            return super().delete_view(request, object_id, *args, **kwargs)
        return redirect(f"admin:{self.opts.app_label}_{self.opts.model_name}_change", object_id)

    def history_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> Any:
        """Redirect to the row's entries in the task's log, which also covers pages and the API."""
        row = self.get_object(request, unquote(object_id))
        if row is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)  # type: ignore[attr-defined]
        log = reverse("admin:accounts_logentry_changelist")
        return redirect(f"{log}?{urlencode(self.describe_for_log(row))}")

    def describe_for_log(self, row: Any) -> dict[str, str]:
        """Return the query parameters that filter the task's log to this row."""
        return {"task": self.get_task_of(row).code, "target": str(row)}

    def get_actions(self, request: HttpRequest) -> Any:
        """Return the actions of the class without Django's bulk deletion."""
        actions = super().get_actions(request)
        # A service deletes each row, and may refuse; Django's action would go around it.
        actions.pop("delete_selected", None)
        return actions

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Return only the rows, because a service deletes or protects what belongs to them."""
        return [str(row) for row in objs], {self.opts.verbose_name_plural: len(objs)}, set(), []

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.related_model is Task:
            # Otherwise the list of choices would name tasks that the person may not see.
            kwargs["queryset"] = find_tasks_with_role(request, self.roles_by_action["change"])
        return super().formfield_for_foreignkey(db_field, request, **kwargs)
