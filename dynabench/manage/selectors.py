"""Reads of the owners' pages: authors' texts, and everything about one example."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import Any

from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.models import Example
from annotation.writing import result_panel
from core.accounts.people import get_shown_name
from dynabench.manage.criteria import build_criteria_values, describe_judgements
from tasks.config.components import Component
from tasks.config.schema import TaskConfig
from tasks.contexts.media.markup import Markup, render_value
from tasks.models import Task
from validation.consensus.steps import read_step_labels
from validation.decisions.consensus_rows import get_policy
from validation.decisions.replay import ExampleStatus
from validation.judging.wording import describe_verdict
from validation.models import Choice, Consensus, Gold, Validation
from validation.statistics.steps import describe_steps

MAX_TITLE_CHARS = 80
"""The maximum length of the text that heads an example's page."""
VERDICT_WORDS = {
    "correct": gettext_noop("correct"),
    "incorrect": gettext_noop("incorrect"),
    "flagged": gettext_noop("flagged"),
    "cannot_tell": gettext_noop("unclear"),
}


@dataclass(frozen=True, slots=True)
class InputSummary:
    """An author's input as lists show it: the text, and separately the author's answer.

    text: all fields but the answer, on one line; the answer if there are no other fields. answer:
    the author's answer, such as a label; "" if there is none or it is in `text`.
    """

    text: str
    answer: str


def read_inputs_by_example(task: Task, examples: Iterable[int]) -> Mapping[int, InputSummary]:
    """Return each example's input for a list, by example id. One query."""
    rows = Example.objects.filter(pk__in=list(examples)).values_list("pk", "inputs")
    return {pk: summarise_inputs(task.config, inputs) for pk, inputs in rows}


def summarise_inputs(config: TaskConfig, inputs: Mapping[str, Any]) -> InputSummary:
    """Return an author's input for a list."""
    text_fields: list[Component] = []
    answer_fields: list[Component] = []
    for component in config.input:
        is_answer = component.name == config.answer_field
        (answer_fields if is_answer else text_fields).append(component)
    text = " · ".join(words for _title, words in _list_answers(config, text_fields, inputs))
    answer = "".join(words for _title, words in _list_answers(config, answer_fields, inputs))
    # Without a text, the answer is all that one can click.
    if not text:
        return InputSummary(text=answer, answer="")
    return InputSummary(text, answer)


@dataclass(frozen=True, slots=True)
class VoteDetails:
    """A vote as owners see it. notes: the validator's further answers, as (title, text)."""

    by: str
    answer: str
    seconds: float | None
    notes: Sequence[tuple[str, str]]
    by_program: bool


def build_case_file(task: Task, example: Example) -> dict[str, Any]:
    """Return the template's values with everything about one example.

    Makes five queries, six if it has criteria, seven if people judge its steps, too.
    """
    config = task.config
    # In the order in which they were cast.
    votes = list(example.validations.select_related("validator").order_by("pk"))
    decisions = list(example.owner_decisions.select_related("owner__annotator").order_by("-pk"))
    current_decision = next((d for d in decisions if d.withdrawn_at is None), None)
    consensus = Consensus.objects.filter(pk=example.pk).first()
    consensus_words = ""
    if consensus:
        consensus_words = describe_decision(config, consensus, example)
    decision_rows = []
    for decision in decisions:
        decision_rows.append((decision, describe_decision(config, decision, example)))
    return {
        "title": _build_title(task, example),
        "shown_context": result_panel.list_shown_fields(config, example.context),
        "written": _list_answers(config, config.input, example.inputs),
        "explained": _list_answers(config, config.metadata.create, example.metadata),
        "author": get_shown_name(example.annotator),
        "answers": _list_target_answers(config, example),
        "votes": [_describe_vote(config, vote, example) for vote in votes],
        **build_criteria_values(example, votes, consensus),
        "steps": _list_judged_steps(config, example, votes),
        "decisions": decision_rows,
        "standing": current_decision,
        "consensus": consensus,
        "gold": Gold.objects.filter(pk=example.pk).first(),
        "decided": consensus_words,
    }


def _list_judged_steps(
    config: TaskConfig, example: Example, votes: Sequence[Validation]
) -> list[dict[str, Any]]:
    """Return what the votes decide about each step, as `describe_steps` does; empty if none."""
    if config.validation.steps is None:
        return []
    # Who flags an example or can't tell says nothing of its steps.
    given = [labels for vote in votes if (labels := read_step_labels(vote.metadata))]
    described = describe_steps(config, example, given, get_policy(example.round))
    return list(described["steps"])


def _build_title(task: Task, example: Example) -> str:
    """Return the beginning of the example's first text; "" if it may upset or has no text."""
    config = task.config
    text_fields = [field for field in config.input if field.name != config.answer_field]
    for _title, words in _list_answers(config, text_fields, example.inputs):
        # A picture or a sound has markup instead of words.
        if not task.is_sensitive and not isinstance(words, Markup):
            text = " ".join(words.split())
            title = shorten(text, MAX_TITLE_CHARS, placeholder="…")
            # Languages without spaces have no word to end at.
            return title if title != "…" else Truncator(text).chars(MAX_TITLE_CHARS)
    return ""


def describe_decision(config: TaskConfig, choice: Choice | ExampleStatus, example: Example) -> str:
    """Return a label or verdict as text; "" if there is none."""
    if choice.verdict:
        # A task may have its own words for a verdict.
        words = describe_verdict(config, choice.verdict, example)
        return words or _(VERDICT_WORDS[choice.verdict])
    for name in config.target_fields:
        if config.get_labels(name):
            return config.display(name, choice.label)
    return choice.label


def _list_answers(
    config: TaskConfig, components: Iterable[Component], values: Mapping[str, Any]
) -> list[tuple[str, str]]:
    """Return (title, text) for each component that has a value."""
    answers = []
    for component in components:
        words = render_value(config, component.name, values.get(component.name))
        if words:
            answers.append((component.third_person_title, words))
    return answers


def _list_target_answers(config: TaskConfig, example: Example) -> list[tuple[str, str, str]]:
    """Return (target's name, its answer, whether it was fooled, as text) for each target."""
    words = {True: _("wrong"), False: _("right"), None: _("not known yet")}
    rows = []
    for output in example.target_outputs.select_related("target"):
        answer = result_panel.format_answer(config, output.output)
        rows.append((output.target.name, answer, words[output.fooled]))
    return rows


def _describe_vote(config: TaskConfig, vote: Validation, example: Example) -> VoteDetails:
    flag_reason = reveal = changed_answer = ""
    if vote.flag_reason:
        flag_reason = vote.get_flag_reason_display()
    if vote.reveal:
        reveal = vote.get_reveal_display()
    # Stored as `label:VALUE` or `verdict:VALUE`; a vote of that kind has the same words.
    kind, _colon, value = vote.reveal_choice.partition(":")
    if value:
        changed_answer = describe_decision(config, Validation(**{kind: value}), example)
    notes = [(_("Flagged because"), flag_reason), (_("Comment"), vote.comment)]
    notes += _list_answers(config, config.judge_questions, vote.metadata)
    notes += [
        # Translators: a step of an agent, such as a call of a tool
        (_("Step %(number)s") % {"number": key}, label)
        for key, label in read_step_labels(vote.metadata).items()
    ]
    notes += [
        # Translators: before a judge's answers about each criterion
        (_("Criteria"), describe_judgements(vote.judgements)),
        (_("After seeing the author's label"), f"{reveal} {changed_answer}".strip()),
        (_("Reason"), vote.reveal_comment),
    ]
    return VoteDetails(
        by=get_shown_name(vote.validator),
        answer=describe_decision(config, vote, example),
        seconds=vote.seconds,
        notes=[(title, words) for title, words in notes if words],
        by_program=vote.by_program,
    )
