"""Targets and generators in the admin, with the button that tests a target."""

from functools import partial
from typing import Any

from django.contrib import admin
from django.db import transaction
from django.http import HttpRequest
from django.urls import reverse

from tasks.admin.roles import EDITORS, REVIEWERS, CountColumn, RoleAdmin, get_person
from tasks.models import Generator, TargetModel
from tasks.permissions import list_fixed_settings
from tasks.targets.contact_pages import show_contact
from tasks.targets.forms import GeneratorForm, TargetForm
from tasks.targets.services import (
    add_target,
    change_target,
    delete_target,
    remove_generator,
    set_generator,
)


class ContactAdmin(RoleAdmin):
    """A ModelAdmin for models that answer at a URL, with the result of the last request to each."""

    @admin.display(description="last contact")
    def contact(self, row: TargetModel | Generator) -> str:
        if row.contact_at is None:
            return "-"
        reason = row.contact_reason or "answered"
        return f"{row.contact_at:%Y-%m-%d %H:%M} UTC: {reason}. {row.contact_detail}"

    def get_readonly_fields(
        self, request: HttpRequest, obj: TargetModel | Generator | None = None
    ) -> list[str]:
        fixed_settings = list_fixed_settings(request.user, obj)
        fixed_settings.append("contact")
        return fixed_settings


@admin.register(TargetModel)
class TargetAdmin(ContactAdmin):
    form = TargetForm
    list_display = ["name", "task", "adapter", "address", CountColumn("rounds"), "created_at"]
    list_filter = ["adapter", ("task", admin.RelatedOnlyFieldListFilter)]
    search_fields = ["name"]
    fields = [
        "task",
        "name",
        "adapter",
        "url",
        "source",
        "revision",
        "options",
        "serving",
        "gpus",
        "secret_env",
        "contact",
    ]
    roles_by_action = {"view": REVIEWERS, "add": EDITORS, "change": EDITORS, "delete": EDITORS}
    page_roles = REVIEWERS

    def get_page_url(self, row: TargetModel) -> str:
        return reverse("own:targets", args=[row.task.code]) + f"#target-{row.pk}"

    @admin.display(description="answers at")
    def address(self, target: TargetModel) -> str:
        return target.base_url

    def save_model(self, request: HttpRequest, obj: TargetModel, form: Any, change: bool) -> None:
        fields = {name: form.cleaned_data[name] for name in form.changed_data}
        if change:
            changed_target = change_target(target=obj, actor=get_person(request), fields=fields)
            # After the commit: asking takes seconds, in which the row would stay locked.
            transaction.on_commit(partial(show_contact, request, changed_target))
            return
        fields = {name: form.cleaned_data[name] for name in form.fields if name != "task"}
        target = add_target(task=obj.task, actor=get_person(request), fields=fields)
        # The admin goes on with the row that the service made.
        obj.pk = target.pk
        transaction.on_commit(partial(show_contact, request, target))

    def delete_model(self, request: HttpRequest, obj: TargetModel) -> None:
        delete_target(target=obj, actor=get_person(request))

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any
    ) -> Any:
        target = kwargs.get("obj")
        if target and self.has_change_permission(request, target):
            url_args = [target.task.code, target.pk]
            context["test_page"] = reverse("own:target-test", args=url_args)
        return super().render_change_form(request, context, *args, **kwargs)


@admin.register(Generator)
class GeneratorAdmin(ContactAdmin):
    form = GeneratorForm
    list_display = ["name", "task", "adapter", "url"]
    fields = ["task", "name", "adapter", "url", "options", "secret_env", "contact"]
    roles_by_action = {"view": EDITORS, "add": EDITORS, "change": EDITORS, "delete": EDITORS}
    page, page_roles = "generator", REVIEWERS

    def describe_for_log(self, row: Generator) -> dict[str, str]:
        return {"task": row.task.code, "action__startswith": "generator."}

    def save_model(self, request: HttpRequest, obj: Generator, form: Any, change: bool) -> None:
        names = form.changed_data
        if not change:
            names = [name for name in form.fields if name != "task"]
        fields = {name: form.cleaned_data[name] for name in names}
        generator = set_generator(task=obj.task, actor=get_person(request), fields=fields)
        obj.pk = generator.pk
        transaction.on_commit(partial(show_contact, request, generator))

    def delete_model(self, request: HttpRequest, obj: Generator) -> None:
        remove_generator(task=obj.task, actor=get_person(request))
