"""Reads of the owners' pages: what an author wrote, and everything about one example."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.models import Example
from annotation.writing import result_panel
from core.accounts.people import shown_name
from tasks.config.components import Component
from tasks.config.schema import TaskConfig
from tasks.contexts.media.markup import render_value
from tasks.models import Task
from validation.decisions.replay import ExampleStatus
from validation.judging.wording import verdict_words
from validation.models import Choice, Consensus, Gold, Validation

VERDICT_WORDS = {
    "correct": gettext_noop("correct"),
    "incorrect": gettext_noop("incorrect"),
    "flagged": gettext_noop("flagged"),
    "cannot_tell": gettext_noop("unclear"),
}


def read_texts_by_example(task: Task, examples: Iterable[int]) -> Mapping[int, str]:
    """Return each example's input as one line of text, by the example's id. One query."""
    rows = Example.objects.filter(pk__in=list(examples)).values_list("pk", "inputs")
    return {pk: join_inputs(task.config, inputs) for pk, inputs in rows}


def join_inputs(config: TaskConfig, inputs: Mapping[str, Any]) -> str:
    """Return an author's input as one line of text."""
    return " | ".join(words for _title, words in _list_answers(config, config.input, inputs))


@dataclass(frozen=True, slots=True)
class VoteDetails:
    """A vote as owners see it. notes: (title, text) of the validator's further answers."""

    by: str
    answer: str
    seconds: float | None
    notes: Sequence[tuple[str, str]]
    by_program: bool


def build_case_file(task: Task, example: Example) -> dict[str, Any]:
    """Return everything about one example for the template. Five queries."""
    config = task.config
    # In the order in which they were cast.
    votes = example.validations.select_related("validator").order_by("pk")
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
        "shown_context": result_panel.list_shown_fields(config, example.context),
        "written": _list_answers(config, config.input, example.inputs),
        "explained": _list_answers(config, config.metadata.create, example.metadata),
        "author": shown_name(example.annotator),
        "answers": _list_target_answers(config, example),
        "votes": [_describe_vote(config, vote, example) for vote in votes],
        "decisions": decision_rows,
        "standing": current_decision,
        "consensus": consensus,
        "gold": Gold.objects.filter(pk=example.pk).first(),
        "decided": consensus_words,
    }


def describe_decision(config: TaskConfig, choice: Choice | ExampleStatus, example: Example) -> str:
    """Return a label or verdict as text; empty if there is none."""
    if choice.verdict:
        # A task may have its own words for a verdict.
        words = verdict_words(config, choice.verdict, example)
        return words or _(VERDICT_WORDS[choice.verdict])
    for name in config.target_fields:
        if config.labels(name):
            return config.display(name, choice.label)
    return choice.label


def _list_answers(
    config: TaskConfig, components: Iterable[Component], values: Mapping[str, Any]
) -> list[tuple[str, str]]:
    """Return (title, text) of the components that have a value."""
    answers = []
    for component in components:
        words = render_value(config, component.name, values.get(component.name))
        if words:
            answers.append((component.others_title, words))
    return answers


def _list_target_answers(config: TaskConfig, example: Example) -> list[tuple[str, str, str]]:
    """Return (target's name, its answer, whether the example fooled it) for each target."""
    words = {True: _("fooled"), False: _("not fooled"), None: _("not known whether fooled")}
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
        (_("After seeing the author's label"), f"{reveal} {changed_answer}".strip()),
        (_("Why"), vote.reveal_comment),
    ]
    return VoteDetails(
        by=shown_name(vote.validator),
        answer=describe_decision(config, vote, example),
        seconds=vote.seconds,
        notes=[(title, words) for title, words in notes if words],
        by_program=vote.by_program,
    )
