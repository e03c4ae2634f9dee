"""Previews of the write page and the judge page for a configuration that is being edited."""

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
from validation.judging.assignments import build_whole_round_finder
from validation.judging.page import build_page_values
from validation.judging.services import JudgeSession
from validation.models import JudgeLease


def render_in_frame(request: HttpRequest, values: Mapping[str, Any]) -> HttpResponse:
    """Show the write page or the judge page inside a frame of the site's own page.

    values: the template's values; if its `page` is empty, neither is shown.
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
    values = page.build_context()
    # A frame must not take the focus.
    values["form"].fields[page.text_field].widget.attrs.pop("data-focus", None)
    targets = _("the models to fool")
    return {**values, "practice": False, "try_number": 1, "targets": targets}


def build_judge_values(task: Task, validator: Annotator) -> dict[str, Any]:
    """Return the values of templates/validation/judge.html, for an example made from the config."""
    context = _find_context(task)
    # Rows that are never saved, with what the templates read of them.
    inputs, example = _build_inputs(task.config), Example(round=context.round, context=context)
    # Fooled, so that judges are asked everything that they can be asked.
    example.inputs, example.outcome = inputs, Example.Outcome.FOOLED
    lease = JudgeLease(example=example)
    session = JudgeSession(task, validator, lease, [], build_whole_round_finder(validator))
    is_answer_shown = is_about_model(task.config, example.outcome)
    model_said = []
    if is_answer_shown:
        model_said.append(("", _("(The model's answer)")))
    return {**build_page_values(session), "model_said": model_said, "undo": None, "judged": 1}


def _find_context(task: Task) -> Context:
    """Return the task's first unretired context if it has all fields, or else an unsaved one.

    The unsaved context takes its values from the configuration's first good example, or else from
    placeholders.
    """
    config = task.config
    names = {component.name for component in config.context}
    stored_contexts = Context.objects.filter(round__task=task.pk, is_retired=False).order_by("pk")
    context = stored_contexts.select_related("round").first()
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
    values = next((example.input for example in config.examples.good), {})
    return {
        component.name: _build_value(values, component)
        for component in config.input
        if not component.when
    }


def _build_value(values: Mapping[str, Any], component: Component) -> Any:
    return values.get(component.name, component.kind.build_placeholder(component))
