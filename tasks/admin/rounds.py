"""Rounds in the admin: their targets, their state, and the import of contexts."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db import models
from django.forms.models import BaseInlineFormSet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from core.web.refusals import show_as_message
from tasks.admin.roles import (
    EDITORS,
    OWNERS,
    READERS,
    CountColumn,
    RoleAdmin,
    RolePermissions,
    get_person,
)
from tasks.models import Round, RoundTarget, TargetModel
from tasks.questions import find_writers
from tasks.rounds.forms import RoundEndForm
from tasks.rounds.opening_services import request_round_state
from tasks.rounds.services import change_round, delete_round, plan_round
from tasks.rounds.steps import STEPS, list_next_steps

State = Round.State

# One field, which has its label; the admin's own has two without.
DATETIME_WIDGET = forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")


class RoundAdminForm(RoundEndForm):
    """A form for a round, which offers only earlier rounds of the task as parents."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        parents: Any = self.fields.get("parents")
        if parents:
            # Only earlier ones, so that no round is its own ancestor.
            earlier_rounds = Round.objects.filter(number__lt=self.instance.number)
            parents.queryset = earlier_rounds.filter(task=self.instance.task_id).select_related(
                "task"
            )


class LoopFormSet(BaseInlineFormSet):  # type: ignore[type-arg]
    """A formset of a round's targets. The service stores them."""

    @property
    def ordered_targets(self) -> list[TargetModel]:
        """Return the targets in order, without deleted ones.

        New targets come last, so that the targets keep their letters (Model A, Model B).
        """
        targets = []
        for form in self.forms:
            if form not in self.deleted_forms and form.cleaned_data.get("target"):
                targets.append(form.cleaned_data["target"])
        return targets


class RoundTargetInline(RolePermissions, admin.StackedInline):  # type: ignore[type-arg]
    """The targets of a round. They are read-only once the round has been opened."""

    model = RoundTarget
    formset = LoopFormSet
    fields = ["target"]
    extra = 0
    verbose_name, verbose_name_plural = "target", "targets in the loop"

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).select_related("target", "round__task")

    def is_allowed(self, request: HttpRequest, action: str, row: Any = None) -> bool:
        is_fixed = action != "view" and row is not None and row.has_fixed_targets
        return not is_fixed and super().is_allowed(request, action, row)

    def get_formset(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        """Return a formset that offers only the task's targets, with one query for all."""
        formset = super().get_formset(request, obj, **kwargs)
        targets = TargetModel.objects.filter(task=obj.task_id if obj else None)
        field: Any = formset.form.base_fields.get("target")
        if field is None:
            return formset
        # One query for the choices of all forms of the page.
        field.queryset = targets
        field.choices = [("", "---------"), *targets.values_list("pk", "name")]
        return formset


@admin.register(Round)
class RoundAdmin(RoleAdmin):
    form = RoundAdminForm
    inlines = [RoundTargetInline]
    list_display = [
        "__str__",
        "state",
        CountColumn("round_targets", "targets"),
        CountColumn("contexts"),
        CountColumn("examples"),
        "opened_at",
    ]
    list_filter = ["state", ("task", admin.RelatedOnlyFieldListFilter)]
    roles_by_action = {"view": READERS, "add": EDITORS, "change": EDITORS, "delete": OWNERS}
    formfield_overrides = {
        models.DateTimeField: {"form_class": forms.DateTimeField, "widget": DATETIME_WIDGET}
    }

    def get_fields(self, request: HttpRequest, obj: Round | None = None) -> Any:
        fields = ["rule", "show_target_name", "description", "ends_at"]
        times = ["state", "opened_at", "closed_at"]
        if obj:
            return ["task", "number", *fields, "parents", *times]
        return ["task", *fields]

    def get_readonly_fields(self, request: HttpRequest, obj: Round | None = None) -> list[str]:
        fixed_fields = []
        if obj:
            fixed_fields = ["task", "number", "state", "opened_at", "closed_at"]
        if obj and obj.opened_at:
            # What is stored as fooling was decided by it.
            fixed_fields.append("rule")
        return fixed_fields

    def get_inlines(self, request: HttpRequest, obj: Round | None) -> Any:
        if obj:
            return self.inlines
        return []

    def save_model(self, request: HttpRequest, obj: Round, form: Any, change: bool) -> None:
        """Plan a new round. Changes to an existing round are stored by `save_related`."""
        if not change:
            fields = {}
            for name, value in form.cleaned_data.items():
                if name != "task":
                    fields[name] = value
            planned_round = plan_round(task=obj.task, actor=get_person(request), fields=fields)
            # The admin goes on with the row that it made, as if it had been saved.
            obj.pk, obj.number = planned_round.pk, planned_round.number

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        if not change:
            return
        plan: dict[str, Any] = {name: form.cleaned_data[name] for name in form.changed_data}
        relations = {}
        if "parents" in plan:
            relations["parents"] = plan.pop("parents")
        for formset in formsets:
            formset.save(commit=False)  # for the admin's own history
            if formset.has_changed():
                relations["targets"] = formset.ordered_targets
        # Targets and parents are stored by the service, together with what it logs.
        change_round(round=form.instance, actor=get_person(request), fields=plan, **relations)

    def delete_model(self, request: HttpRequest, obj: Round) -> None:
        delete_round(round=obj, actor=get_person(request))

    def get_page_url(self, row: Round) -> str:
        return reverse("own:rounds", args=[row.task.code]) + f"#round-{row.number}"

    def describe_for_log(self, row: Round) -> dict[str, str]:
        return {"target": str(row)}

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any
    ) -> Any:
        round = kwargs.get("obj")
        if round and self.has_change_permission(request, round):
            context["steps"] = _list_steps(round)
            if round.state not in Round.FINISHED_STATES:
                context["contexts_page"] = reverse(
                    "own:contexts", args=[round.task.code, round.number]
                )
        return super().render_change_form(request, context, *args, **kwargs)

    def get_urls(self) -> Any:
        return [
            self.build_row_page("state", require_POST(self.state_view)),
            *super().get_urls(),
        ]

    def state_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Move the round to the requested state, or show in a message why that is refused.

        Unknown states are ignored. A round may have to wait for its targets before it opens.
        """
        round = self.get_permitted_row(request, pk, "change")
        state = request.POST.get("state", "")
        if state in STEPS:
            with show_as_message(request):
                changed_round = request_round_state(
                    round=round, state=state, actor=get_person(request)
                )
                message = f"{changed_round} is {changed_round.state} now."
                if changed_round.opening_since:
                    message = f"{changed_round} opens when its targets are ready."
                messages.success(request, message)
        return redirect("admin:tasks_round_change", pk)


def _list_steps(round: Round) -> list[dict[str, str]]:
    """Return the buttons of a round's page, each with its state, its text and its effect."""
    writers_note = ""
    if round.state == State.OPEN:
        count = find_writers(round, timezone.now()).count()
        if count:
            writers_note = f" People who are writing: {count}."
    rows = []
    for state, step in list_next_steps(round).items():
        rows.append({"state": state, "words": step.button, "effect": step.effect + writers_note})
    return rows
