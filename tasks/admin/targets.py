"""Targets in the admin, and the button that sends one a test."""

import json
from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import path

from dynabench.accounts.services import log
from dynabench.lib.refusals import as_message
from tasks.admin.roles import RoleAdmin, count_of, person
from tasks.models import TargetModel
from tasks.permissions import fixed_settings
from tasks.targets.endpoints.base import Prediction
from tasks.targets.forms import InputForm, TargetForm
from tasks.targets.send_test import NoAnswer, send_test
from tasks.targets.services import change_target


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
        return fixed_settings(request.user, obj)

    def save_model(self, request: HttpRequest, obj: TargetModel, form: Any, change: bool) -> None:
        fields = {name: form.cleaned_data[name] for name in form.changed_data}
        if change:
            change_target(target=obj, actor=person(request), fields=fields)
            return
        super().save_model(request, obj, form, change)
        log(request.user, "target.registered", obj, fields=form.changed_data)

    def changeform_view(
        self, request: HttpRequest, object_id: Any = None, *more: Any, **named: Any
    ) -> Any:
        """Nothing is saved where the service refuses: a round was opened with it meanwhile."""
        with as_message(request):
            return super().changeform_view(request, object_id, *more, **named)
        return redirect("admin:tasks_targetmodel_change", object_id)

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
                values = _shown(send_test(target, form.cleaned_data))
            except NoAnswer as error:
                values = {"failure": str(error), "detail": error.detail}
        values |= {"title": "Send a test", "subtitle": str(target), "target": target, "form": form}
        return TemplateResponse(
            request,
            "admin/tasks/targetmodel/test.html",
            self.admin_site.each_context(request) | values | {"opts": self.opts},
        )


def _shown(answer: Prediction) -> dict[str, Any]:
    def text(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, indent=2)

    return {
        "output": text(answer.output),
        "prob": text(answer.prob) if answer.prob else "",
        "seconds": answer.seconds,
        "fingerprint": text(answer.fingerprint),
    }
