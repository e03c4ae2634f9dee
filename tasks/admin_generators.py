"""Generators in the admin: the models that suggest texts."""

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.http import HttpRequest

from dynabench.accounts.services import log
from tasks.admin_roles import RoleAdmin
from tasks.endpoints.base import EndpointError
from tasks.line_files import unstorable
from tasks.models import Generator
from tasks.permissions import fixed_settings
from tasks.targets import generator_endpoint

ADAPTERS = ("openai_chat", "http", "scripted")
"""Those that can answer with a text of their own."""


class GeneratorForm(forms.ModelForm):  # type: ignore[type-arg]
    """A generator whose adapter accepts its settings."""

    adapter = forms.ChoiceField(choices=[(name, name) for name in ADAPTERS])
    url = forms.URLField(max_length=500, assume_scheme="https")

    def clean_options(self) -> dict[str, Any]:
        value = self.cleaned_data["options"] or {}
        if not isinstance(value, dict):
            raise ValidationError('Write keys and values, such as {"model": "x"}.')
        if reason := unstorable(value):
            raise ValidationError(f"It holds {reason}.")
        return value

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]
        if self.errors:
            return
        try:
            generator_endpoint(self.instance)
        except EndpointError as error:
            self.add_error(None, str(error))


@admin.register(Generator)
class GeneratorAdmin(RoleAdmin):
    form = GeneratorForm
    list_display = ["name", "task", "adapter", "url"]
    fields = ["task", "name", "adapter", "url", "options", "secret_env"]

    def get_readonly_fields(self, request: HttpRequest, obj: Generator | None = None) -> list[str]:
        return fixed_settings(request.user, obj)

    def save_model(self, request: HttpRequest, obj: Generator, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        deed = "generator.changed" if change else "generator.registered"
        log(request.user, deed, obj, fields=form.changed_data)
