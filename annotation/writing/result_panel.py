"""The result panel as plain values for its template."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.models import Example, TargetOutput
from annotation.rules.prompt import fields_to_read
from tasks.config.components import Component
from tasks.config.schema import TaskConfig
from tasks.contexts.media.markup import shown_value
from tasks.models import Context

Status = Example.Outcome


@dataclass(frozen=True)
class Probability:
    """One bar: `width` is its percentage, `value` the words shown, `tags` whose label it is."""

    label: str
    value: str
    width: float
    is_mine: bool
    tags: Sequence[str]


@dataclass(frozen=True)
class Piece:
    """A stretch of the passage; `kind` is mine, model, both or empty."""

    text: str
    kind: str


@dataclass(frozen=True)
class TargetAnswer:
    """One target's answer as the panel shows it."""

    name: str
    said: str
    sure: str
    fooled: bool | None
    overlap: float | None
    rows: Sequence[Probability]
    pieces: Sequence[Piece]


def kept_words(config: TaskConfig) -> tuple[str, str]:
    """Say what becomes of an example that fooled no model, in a word or two and in a sentence.

    Both are empty where all such examples are judged.
    """
    share = config.validation.judge_not_fooled
    if share == 1:
        return "", ""
    if share == 0:
        return _("kept"), _("Kept. Only examples that fool the model are judged.")
    number = round(1 / share)
    if abs(number * share - 1) < 0.01:
        values: Mapping[str, Any] = {"number": number}
        long = _("Kept. Of the examples that do not fool the model, 1 in %(number)d is judged.")
        return _("kept, 1 in %(number)d judged") % values, long % values
    values = {"percent": f"{share * 100:.3g}%"}
    long = _("Kept. Of the examples that do not fool the model, %(percent)s are judged.")
    return _("kept, %(percent)s judged") % values, long % values


def confidence(probability: float, shown: str) -> str:
    """Return the chance in words: full, rounded to ten percent, or hidden.

    Exact chances invite small edits. No model is certain, so none is shown as 100% sure.

    >>> confidence(0.914, "full"), confidence(0.914, "rounded"), confidence(0.914, "hidden")
    ('91%', 'about 90%', '')
    >>> confidence(0.9999, "full"), confidence(0.0001, "full")
    ('>99%', '<1%')
    """
    if shown == "hidden":
        return ""
    if shown == "rounded":
        return _("about %(percent)d%%") % {"percent": round(probability * 10) * 10}
    if probability > 0.99:
        return ">99%"
    if probability < 0.01:
        return "<1%"
    return f"{probability:.0%}"


def spans(passage: str, mine: Mapping[str, Any], model: Mapping[str, Any]) -> list[Piece]:
    """Cut the passage where either span begins or ends."""
    cuts = sorted({0, len(passage), mine["start"], mine["end"], model["start"], model["end"]})
    pieces = []
    for start, end in pairwise(cuts):
        in_mine = mine["start"] <= start < mine["end"]
        in_model = model["start"] <= start < model["end"]
        kind = (
            "both" if in_mine and in_model else "mine" if in_mine else "model" if in_model else ""
        )
        pieces.append(Piece(passage[start:end], kind))
    return pieces


def shown_chances(prob: Mapping[str, float] | None, shown: str) -> Mapping[str, float] | None:
    """Return the chances as numbers, by the same rule; None where they are hidden or not known."""
    if not prob or shown == "hidden":
        return None
    return {label: round(p, 1) for label, p in prob.items()} if shown == "rounded" else prob


def answers(
    example: Example, config: TaskConfig, outputs: Sequence[TargetOutput]
) -> list[TargetAnswer]:
    """Describe each target's answer to the example."""
    return [_answer(example, config, output) for output in outputs]


def shown_context(config: TaskConfig, context: Context) -> list[tuple[str, str]]:
    """Return (label, words or markup) of the context fields, without the prompt to write from."""
    return _shown_fields(config, fields_to_read(config, context.fields))


def all_given(config: TaskConfig, context: Context) -> list[tuple[str, str]]:
    """Return (label, words or markup) of all that a writer was given, with the prompt."""
    return _shown_fields(config, {name: value for name, value in context.fields.items() if value})


def _shown_fields(config: TaskConfig, found: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        (part.title, shown_value(config, part.name, found[part.name]))
        for part in config.context
        if part.name in found
    ]


def _answer(example: Example, config: TaskConfig, output: TargetOutput) -> TargetAnswer:
    name = example.round.shown_name(output.target, output.position)
    rows: list[Probability] = []
    pieces: list[Piece] = []
    said, sure = "", ""
    for field in config.target_fields or (config.answer_field,):
        component = config.component(field)
        mine, theirs = example.inputs.get(field), output.output.get(field)
        if component.type == "span" and isinstance(mine, Mapping):
            said = str(theirs)
            model = {"start": output.output["start"], "end": output.output["end"]}
            pieces = spans(str(example.context.fields[str(component.reference)]), mine, model)
        else:
            said = config.display(field, theirs)
            rows = _rows(component, output.prob or {}, mine, theirs, config)
            chance = (output.prob or {}).get(str(theirs))
            if chance is not None:
                sure = confidence(chance, config.limits.show_confidence)
    return TargetAnswer(
        name, said, sure, output.fooled, output.score if pieces else None, rows, pieces
    )


def _rows(
    component: Component, prob: Mapping[str, float], mine: Any, theirs: Any, config: TaskConfig
) -> list[Probability]:
    shown = config.limits.show_confidence
    if shown == "hidden":
        return []
    steps = 10 if shown == "rounded" else 100
    return [
        Probability(
            config.display(component.name, label),
            confidence(chance, shown),
            round(chance * steps) * 100 / steps,
            label == mine,
            [words for words, said in ((_("you"), mine), (_("model"), theirs)) if label == said],
        )
        for label, chance in sorted(prob.items(), key=lambda item: -item[1])
    ]


class AuthorQuestion(NamedTuple):
    """What an author is asked about the model's answer, with the words of both answers."""

    question: str
    correct: str
    incorrect: str


def author_question(config: TaskConfig) -> AuthorQuestion:
    """Return what authors are asked where the rule leaves it open: the task's words, or ours."""
    question = getattr(config.verdict, "question", None) or _("Is the model's answer acceptable?")
    if answers := getattr(config.verdict, "answers", None):
        return AuthorQuestion(question, answers.correct, answers.incorrect)
    return AuthorQuestion(question, _("Yes, the model is right"), _("No, the model is wrong"))


def heading(outcome: str, fooled: int, asked: int, config: TaskConfig) -> str:
    """Return the verdict in words."""
    rule = config.verdict.type
    several, is_asked = asked > 1, rule in ("ask_user", "pattern", "secret")
    if rule == "ask_user" and outcome in (Status.FOOLED, Status.NOT_FOOLED):
        return _author_said(config, outcome)
    if rule in ("pattern", "secret") and outcome == Status.FOOLED:
        return _("You fooled the model")
    if rule in ("pattern", "secret") and outcome == Status.NOT_FOOLED:
        return _("You did not fool the model")
    if outcome == Status.FOOLED and several:
        said = ngettext(
            "%(fooled)d of %(asked)d models disagrees with you",
            "%(fooled)d of %(asked)d models disagree with you",
            fooled,
        )
        return said % {"fooled": fooled, "asked": asked}
    if outcome == Status.FOOLED:
        return _("The model disagrees with you")
    if outcome == Status.NOT_FOOLED:
        return _("The models agree with you") if several else _("The model agrees with you")
    if outcome == Status.UNDECIDED:
        return _("You decide") if is_asked else _("Too close to call")
    return _("Saved, no model in this round")


def _author_said(config: TaskConfig, outcome: str) -> str:
    """Return what the author says of the model's answer, which no rule compares."""
    if config.is_decided_by_author:
        return _("You marked an answer as wrong")
    asked = author_question(config)
    words = asked.incorrect if outcome == Status.FOOLED else asked.correct
    return _("You said: %(answer)s") % {"answer": words}


def own_chance(answers: Sequence[TargetAnswer]) -> str:
    """Return the chance that the first target gave the author's label; empty when not shown."""
    rows = answers[0].rows if answers else []
    return next((row.value for row in rows if row.is_mine), "")


def why_components(config: TaskConfig, outcome: str, inputs: Mapping[str, Any]) -> list[Component]:
    """Return the questions after the verdict whose condition holds."""
    return [
        component
        for component in config.metadata.create
        if component.works_in("metadata")
        and (component.when is None or component.when.holds(inputs, outcome=outcome))
    ]
