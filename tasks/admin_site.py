"""The admin site, open to people with a role in a task. Superusers also see operators' tables."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.contrib import admin
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.db.models.base import ModelBase
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.decorators import method_decorator
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy

from tasks.models import TaskMember
from tasks.permissions import READERS

TASK_TABLES = (
    "Task",
    "Round",
    "Context",
    "ContextBatch",
    "TargetModel",
    "Generator",
    "Example",
    "Validation",
    "Consensus",
    "OwnerDecision",
    "Report",
    "Annotator",
    "Campaign",
    "Adversary",
    "LogEntry",
)
"""The tables of tasks, in the order of the tabs on the owners' pages."""
TABLE_NAMES = {
    "Adversary": gettext_lazy("Adversaries"),
    "ApiToken": gettext_lazy("API tokens"),
    "Consensus": gettext_lazy("Decisions by votes"),
    "Context": gettext_lazy("Texts"),
    "ContextBatch": gettext_lazy("Text imports"),
    "LogEntry": gettext_lazy("Activity"),
    "OwnerDecision": gettext_lazy("Decisions by owners"),
    "TargetModel": gettext_lazy("Models to fool"),
    "User": gettext_lazy("Accounts"),
}
"""The names of tables as on the owners' pages, where they differ from the names in the code."""
HIDDEN_APPS = ("auth", "django_q")
"""Apps whose tables nobody edits: permissions, which are unused, and the queue's messages."""


def get_roles_by_task(request: HttpRequest) -> Mapping[int, str]:
    """Return the person's roles by task id. One query per request.

    Omits roles that do not count yet, and members who judge blind.
    """
    # Kept on the request: each permission check of each table and row asks for it.
    if not hasattr(request, "task_roles"):
        members = TaskMember.objects.select_effective().filter(user=request.user.pk)
        # Only roles that count: an unconfirmed address opens no admin.
        members = members.filter(is_blind=False)  # the admin shows labels and votes
        request.task_roles = dict(members.values_list("task_id", "role"))  # type: ignore[attr-defined]
    return request.task_roles  # type: ignore[attr-defined,no-any-return]


def find_table_name(model: type[Model]) -> Any:
    """Return the name of a model's table in the lists of the admin, translated when it is shown."""
    return TABLE_NAMES.get(model.__name__) or capfirst(model._meta.verbose_name_plural)


class TaskAdminSite(admin.AdminSite):
    """An admin site for superusers and for people whose role can read a task."""

    site_header = site_title = "Dynabench"
    index_title = gettext_lazy("Database")
    # Django's script opens it after the page is drawn, which moves everything.
    enable_nav_sidebar = False

    def register(self, model_or_iterable: Any, *args: Any, **options: Any) -> None:
        models: Iterable[Any] = (
            [model_or_iterable] if isinstance(model_or_iterable, ModelBase) else model_or_iterable
        )
        allowed_models = []
        for model in models:
            if model._meta.app_label not in HIDDEN_APPS:
                allowed_models.append(model)
        super().register(allowed_models, *args, **options)
        for model in allowed_models:
            # For the headings of the lists, which otherwise use the names in the code.
            self._registry[model].table_name = find_table_name(model)  # type: ignore[attr-defined]

    def get_urls(self) -> list[Any]:
        """Return the URL patterns without Django's redirect by content type.

        That redirect would reveal rows of any table.
        """
        patterns = []
        for pattern in super().get_urls():
            if getattr(pattern, "name", "") != "view_on_site":
                patterns.append(pattern)
        return patterns

    def has_permission(self, request: HttpRequest) -> bool:
        user = request.user
        if not user.is_active or user.is_superuser:
            return user.is_active
        return any(role in READERS for role in get_roles_by_task(request).values())

    @method_decorator(login_not_required)
    def login(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Redirect to the site's own sign-in page, which asks for the second factor.

        Raises PermissionDenied for signed-in people who may not use the admin.
        """
        if not request.user.is_authenticated:
            return redirect_to_login(request.GET.get("next") or request.get_full_path())
        if not self.has_permission(request):
            raise PermissionDenied
        return redirect("admin:index")

    def password_change(self, request: HttpRequest, extra_context: Any = None) -> Any:
        return redirect("account_change_password")

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """Return the tables in sections: first those of tasks, then the operators'."""
        apps = super().get_app_list(request, app_label)
        if app_label or not apps:
            return apps
        models_by_name = {}
        # Django groups tables by app; people look for them by what they do with them.
        for app in apps:
            for model in app.pop("models"):
                model["name"] = find_table_name(model["model"])
                models_by_name[model["object_name"]] = model
        tables = []
        for name in TASK_TABLES:
            if name in models_by_name:
                tables.append(models_by_name.pop(name))
        operators = sorted(models_by_name.values(), key=lambda model: str(model["name"]))
        app_entry = {"app_label": "tasks", "has_module_perms": True, "app_url": ""}
        sections = {"Data of tasks": tables, "For operators": operators}
        return [
            {**app_entry, "name": name, "models": rows} for name, rows in sections.items() if rows
        ]
