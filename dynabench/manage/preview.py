"""Previews of the write and the judge page by a configuration that is being edited."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from annotation.models import Example
from annotation.writing.page import WritePage
from core.accounts.models import Annotator
from dynabench.middleware import build_policy_header
from tasks.config.components import Component
from tasks.config.schema import TaskConfig
from tasks.models import Context, Round, Task
from validation.consensus.claims import is_about_model
from validation.judging.assignments import whole_rounds
from validation.judging.page import page_values
from validation.judging.services import JudgeSession
from validation.models import JudgeLease


def show_framed(request: HttpRequest, values: Mapping[str, Any]) -> HttpResponse:
    """Show the write page or the judge page inside a frame of our own page.

    Shows neither if `page` is empty.
    """
    response = render(request, "own/preview.html", values)
    # Everything of the site is protected from frames but this one, in a frame of the site itself.
    response["Content-Security-Policy"] = build_policy_header(frame_ancestors=["'self'"])
    return response


def build_write_values(task: Task) -> dict[str, Any]:
    """Return the values of templates/annotation/write.html for the first context and goal."""
    context = _find_context(task)
    goal = next(iter(task.config.goal_choices), "")
    page = WritePage(task, context.round, context, goal)
    values = page.values()
    # A frame must not take the focus.
    values["form"].fields[page.text_field].widget.attrs.pop("data-focus", None)
    targets = _("the models in the loop")
    return {**values, "practice": False, "try_number": 1, "targets": targets}


def build_judge_values(task: Task, validator: Annotator) -> dict[str, Any]:
    """Return the values of templates/validation/judge.html for an example of the configuration."""
    context = _find_context(task)
    # Rows that are never saved, with what the templates read of them.
    inputs, example = _build_inputs(task.config), Example(round=context.round, context=context)
    # Fooled, so that judges are asked everything that they can be asked.
    example.inputs, example.outcome = inputs, Example.Outcome.FOOLED
    lease = JudgeLease(example=example)
    session = JudgeSession(task, validator, lease, [], whole_rounds(validator))
    is_shown = is_about_model(task.config, example.outcome)
    model_said = []
    if is_shown:
        model_said.append(("", _("(The model's answer)")))
    return {**page_values(session), "model_said": model_said, "undo": None, "judged": 1}


def _find_context(task: Task) -> Context:
    """Return the task's first context that has all fields, or else an unsaved one.

    The unsaved context takes its values from the configuration's examples, or from field names.
    """
    config = task.config
    names = {component.name for component in config.context}
    stored = Context.objects.filter(round__task=task.pk, is_retired=False).order_by("pk")
    context = stored.select_related("round").first()
    if context is None or not names <= context.fields.keys():
        values: Mapping[str, Any] = {}
        if config.examples.good:
            values = config.examples.good[0].context
        fields = {component.name: _build_value(values, component) for component in config.context}
        number = 1
        if context is not None:
            number = context.round.number
        # Rows that are never saved; 0 is the id of none.
        context = Context(pk=0, round=Round(pk=0, task=task, number=number), fields=fields)
    context.round.task = task
    return context


def _build_inputs(config: TaskConfig) -> dict[str, Any]:
    values = next((case.input for case in config.examples.good), {})
    return {
        component.name: _build_value(values, component)
        for component in config.input
        if not component.when
    }


def _build_value(values: Mapping[str, Any], component: Component) -> Any:
    return values.get(component.name, component.kind.stand_in(component))
