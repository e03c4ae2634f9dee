"""Judging the steps of a conversation: the form's fields, the page, and the check of a vote."""

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.template.loader import render_to_string
from django.utils.translation import gettext as _

from annotation.models import Example
from annotation.rules.prompt import list_fields_to_read
from core.errors import Invalid
from tasks.config.field_types.chat import ROLE_LABELS
from tasks.config.field_types.tool_calls import describe_calls, find_tool_names
from tasks.config.judging import STEPS_KEY
from tasks.config.judging_checks import list_step_labels
from tasks.config.schema import TaskConfig
from tasks.contexts.media.markup import Markup, render_value
from validation.consensus.consensus import Vote
from validation.consensus.steps import UNJUDGED_VERDICTS, Step, find_step_error, list_steps

FIELD_PREFIX = "step-"
"""The beginning of the names of the form's fields, before the number of the turn."""
FORM_ID = "judge-form"
"""The id of the form to which the fields beside the conversation belong."""


def list_example_steps(config: TaskConfig, example: Example) -> list[Step]:
    """Return the steps of an example that its judges judge; no query for tasks without steps."""
    steps = config.validation.steps
    return list_steps(steps, example.context.fields) if steps else []


def check_steps(example: Example, vote: Vote, metadata: Mapping[str, Any]) -> None:
    """Check that a vote answers about each step, where the task asks for it. Raises Invalid."""
    config = example.round.task.config
    steps = list_example_steps(config, example)
    if error := find_step_error(config, steps, vote, metadata.get(STEPS_KEY)):
        raise Invalid(error)


def build_question(config: TaskConfig) -> str:
    """Return the question about each step."""
    steps = config.validation.steps
    return (steps.question if steps else None) or _("Is this step right?")


def build_step_fields(config: TaskConfig, example: Example) -> dict[str, forms.ChoiceField]:
    """Return a field for each step, by name."""
    choices = [(label.value, label.words) for label in list_step_labels(config)]
    fields = {}
    for step in list_example_steps(config, example):
        fields[f"{FIELD_PREFIX}{step.key}"] = forms.ChoiceField(
            choices=choices,
            # The form names all missing steps in one error.
            required=False,
            # Translators: a step of an agent, such as a call of a tool
            label=_("Step %(number)s") % {"number": step.key},
        )
    return fields


def read_steps(cleaned_data: Mapping[str, Any], vote: Vote) -> dict[str, str]:
    """Return the answers about steps of a form; none with a vote that has none."""
    if vote.verdict in UNJUDGED_VERDICTS:
        return {}
    return {
        name.removeprefix(FIELD_PREFIX): value
        for name, value in cleaned_data.items()
        if name.startswith(FIELD_PREFIX) and value
    }


def list_shown_context(
    config: TaskConfig, example: Example, form: forms.Form | None
) -> list[tuple[str, str]]:
    """Return (label, text or markup) of what judges read, with a choice for each step.

    form: the vote form that was sent, with what was chosen and what is missing.
    """
    values = list_fields_to_read(config, example.context.fields)
    steps = config.validation.steps
    shown: list[tuple[str, str]] = []
    for component in config.context:
        if component.name not in values:
            continue
        # The choices stand at the turns, so that people read and judge step by step.
        if steps and component.name == steps.field:
            shown.append((component.title, _render_steps(config, example, form)))
        else:
            value = render_value(config, component.name, values[component.name])
            shown.append((component.title, value))
    return shown


def _render_steps(config: TaskConfig, example: Example, form: forms.Form | None) -> Markup:
    steps = config.validation.steps
    assert steps
    turns = example.context.fields[steps.field]
    values = {
        "turns": _describe_turns(turns, list_example_steps(config, example), form),
        "question": build_question(config),
        "labels": list_step_labels(config),
        "language": config.language,
        "form_id": FORM_ID,
    }
    return Markup(render_to_string("validation/_steps.html", values).strip())


def _describe_turns(
    turns: Sequence[Mapping[str, Any]], steps: Sequence[Step], form: forms.Form | None
) -> list[dict[str, Any]]:
    """Return the template's values of each turn."""
    # A tool's turn names only the id of the call.
    keys, tool_names = {step.key for step in steps}, find_tool_names(turns)
    errors: Mapping[str, Any] = form.errors if form else {}
    described = []
    for number, turn in enumerate(turns, 1):
        name = f"{FIELD_PREFIX}{number}"
        described.append(
            {
                "number": number,
                "role": ROLE_LABELS[turn["role"]],
                "tool": tool_names.get(turn.get("call", ""), ""),
                "text": turn["text"],
                "calls": describe_calls(turn),
                "name": name if str(number) in keys else "",
                "chosen": form.data.get(name, "") if form else "",
                "error": " ".join(errors.get(name, ())),
            }
        )
    return described
