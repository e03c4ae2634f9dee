"""Generators in the admin: the models that suggest texts."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from dynabench.accounts.services import log
from tasks.admin.roles import RoleAdmin
from tasks.models import Generator
from tasks.permissions import fixed_settings
from tasks.targets.forms import GeneratorForm


@admin.register(Generator)
class GeneratorAdmin(RoleAdmin):
    form = GeneratorForm
    list_display = ["name", "task", "adapter", "url"]
    fields = ["task", "name", "adapter", "url", "options", "secret_env"]

    def get_readonly_fields(self, request: HttpRequest, obj: Generator | None = None) -> list[str]:
        return fixed_settings(request.user, obj)

    def save_model(self, request: HttpRequest, obj: Generator, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        action = "generator.changed" if change else "generator.registered"
        log(request.user, action, obj, fields=form.changed_data)
