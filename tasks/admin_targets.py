"""Targets in the admin, and the button that sends one a test."""

import json
import os
from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import path

from dynabench.accounts.services import log
from tasks.admin_roles import RoleAdmin, count_of
from tasks.endpoints.base import EndpointError, Prediction
from tasks.endpoints.registry import ADAPTERS
from tasks.models import Context, TargetModel
from tasks.targets import endpoint_of, spec_of

TEST_SECONDS = 20.0
AS_TEXT = ("text", "long_text", "image", "audio")
REASONS: Mapping[str, str] = {
    "down": "The target cannot be reached.",
    "slow": f"The target did not answer within {TEST_SECONDS:g} seconds.",
    "busy": "The target is busy and asked to be left alone for a moment.",
    "rubbish": "The target answered, but not with a valid prediction.",
    "refused": "The target declined this very input.",
    "misconfigured": "Something in the settings above must be changed.",
}


class TargetForm(forms.ModelForm):  # type: ignore[type-arg]
    """A target whose adapter accepts its settings."""

    adapter = forms.ChoiceField(choices=[(name, name) for name in sorted(ADAPTERS)], initial="http")
    url = forms.URLField(
        max_length=500,
        required=False,
        assume_scheme="https",
        help_text="Empty: our own model server, which loads `source`.",
    )

    def clean_options(self) -> dict[str, Any]:
        return self._mapping("options")

    def clean_serving(self) -> dict[str, Any]:
        return self._mapping("serving")

    def _mapping(self, name: str) -> dict[str, Any]:
        value = self.cleaned_data[name] or {}
        if not isinstance(value, dict):
            raise ValidationError('Write keys and values, such as {"model": "x"}.')
        return value

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]
        if self.errors:
            return
        try:
            endpoint_of(self.instance)
        except EndpointError as error:
            self.add_error(None, str(error))
        try:
            spec_of(self.instance)
        except TypeError as error:  # the words of a missing or unknown keyword
            words = str(error).removeprefix("ModelSpec.__init__() ")
            self.add_error("serving", f"The model server cannot read this: {words}.")


class InputForm(forms.Form):
    """What a target may see of one example, filled from a context and an example of the task."""

    def __init__(self, target: TargetModel, *args: Any, **kwargs: Any) -> None:
        config = target.task.config
        kwargs["initial"] = _sample(target)
        super().__init__(*args, **kwargs)
        for name in config.model_fields:
            component = config.component(name)
            kind = forms.CharField if component.type in AS_TEXT else forms.JSONField
            self.fields[name] = kind(
                label=component.title,
                required=component.required,
                widget=forms.Textarea(attrs={"rows": 4, "cols": 90}),
            )


def _sample(target: TargetModel) -> dict[str, Any]:
    """A good example of the configuration over a context of the task's latest round."""
    contexts = Context.objects.filter(round__task=target.task, is_retired=False)
    context = contexts.order_by("-round__number", "pk").first()
    shown = next(iter(target.task.config.examples.good), None)
    if shown and shown.context:
        return {**shown.context, **shown.input}
    return {**(shown.input if shown else {}), **(context.fields if context else {})}


@admin.register(TargetModel)
class TargetAdmin(RoleAdmin):
    form = TargetForm
    list_display = ["name", "task", "adapter", "address", "round_count", "created_at"]
    list_filter = ["adapter", ("task", admin.RelatedOnlyFieldListFilter)]
    search_fields = ["name"]
    fields = [
        *("task", "name", "adapter", "url", "source", "revision", "options", "serving"),
        "secret_env",
    ]

    def get_queryset(self, request: HttpRequest) -> Any:
        counted = count_of(TargetModel, "rounds")
        return super().get_queryset(request).annotate(rounds_in_all=counted)

    @admin.display(description="rounds", ordering="rounds_in_all")
    def round_count(self, target: Any) -> int:
        return target.rounds_in_all  # type: ignore[no-any-return]

    @admin.display(description="answers at")
    def address(self, target: TargetModel) -> str:
        return target.base_url

    def get_readonly_fields(
        self, request: HttpRequest, obj: TargetModel | None = None
    ) -> list[str]:
        """Task and name stay. Only an administrator ties a secret to an address.

        Otherwise an editor could send another task's secret to an address of their own.
        """
        fixed = ["task", "name"] if obj else []
        if not request.user.is_superuser:
            fixed.append("secret_env")
            fixed += ["adapter", "url", "options"] if obj and obj.secret_env else []
        return fixed

    def save_model(self, request: HttpRequest, obj: TargetModel, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        deed = "target.changed" if change else "target.registered"
        log(request.user, deed, obj, fields=form.changed_data)

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any
    ) -> Any:
        target = kwargs.get("obj")
        context["may_test"] = bool(target) and self.has_change_permission(request, target)
        return super().render_change_form(request, context, *args, **kwargs)

    def get_urls(self) -> Any:
        view = self.admin_site.admin_view(self.test_view)
        return [path("<int:pk>/test/", view, name="tasks_targetmodel_test"), *super().get_urls()]

    def test_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Send one input to the target, outside any transaction, and show what comes back."""
        target = self.row_for(request, pk, "change")
        form = InputForm(target, request.POST or None)
        values: dict[str, Any] = {}
        if form.is_valid():
            try:
                endpoint = endpoint_of(target)
                answer = endpoint.predict([form.cleaned_data], deadline_seconds=TEST_SECONDS)[0]
                values = _answer_values(target, answer)
            except EndpointError as error:
                detail = _without_secret(target, str(error))
                values = {"failure": REASONS[error.reason], "detail": detail}
        values |= {"title": "Send a test", "subtitle": str(target), "target": target, "form": form}
        return TemplateResponse(
            request,
            "admin/tasks/targetmodel/test.html",
            self.admin_site.each_context(request) | values | {"opts": self.opts},
        )


def _answer_values(target: TargetModel, answer: Prediction) -> dict[str, Any]:
    def shown(value: Any) -> str:
        text = json.dumps(value, ensure_ascii=False, indent=2, default=dict)
        return _without_secret(target, text)

    return {
        "output": shown(answer.output),
        "prob": shown(answer.prob) if answer.prob else "",
        "seconds": answer.seconds,
        "fingerprint": shown(answer.fingerprint),
    }


def _without_secret(target: TargetModel, text: str) -> str:
    """The text, should a target repeat the secret that it was sent."""
    secret = os.environ.get(target.secret_env) if target.secret_env else None
    return text.replace(secret, "[secret]") if secret else text
