"""The result panel as plain values for its template."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.models import Example, TargetOutput
from annotation.rules.prompt import list_fields_to_read
from tasks.config.components import Component
from tasks.config.schema import TaskConfig
from tasks.contexts.media.markup import render_value
from tasks.models import Context

Status = Example.Outcome


@dataclass(frozen=True)
class Probability:
    """A bar of the chart.

    width: percentage; value: displayed text; tags: whose label it is.
    """

    label: str
    value: str
    width: float
    is_mine: bool
    tags: Sequence[str]


@dataclass(frozen=True)
class Piece:
    """A piece of the passage; `kind` is mine, model, both or empty."""

    text: str
    kind: str


@dataclass(frozen=True)
class TargetAnswer:
    """One target's answer, as the result panel shows it."""

    name: str
    words: str
    sure: str
    fooled: bool | None
    overlap: float | None
    rows: Sequence[Probability]
    pieces: Sequence[Piece]


def describe_unjudged(config: TaskConfig) -> tuple[str, str]:
    """Describe what happens to an example that fooled no model, briefly and in a sentence.

    Both are empty if all such examples are judged.
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


def format_probability(probability: float, precision: str) -> str:
    """Format a probability: exact, rounded to ten percent, or hidden.

    Exact values invite small edits. No model is certain, so none is shown as 100% sure.

    >>> confidence(0.914, "full"), confidence(0.914, "rounded"), confidence(0.914, "hidden")
    ('91%', 'about 90%', '')
    >>> confidence(0.9999, "full"), confidence(0.0001, "full")
    ('>99%', '<1%')
    """
    if precision == "hidden":
        return ""
    if precision == "rounded":
        return _("about %(percent)d%%") % {"percent": round(probability * 10) * 10}
    if probability > 0.99:
        return ">99%"
    if probability < 0.01:
        return "<1%"
    return f"{probability:.0%}"


def split_by_spans(
    passage: str, author_span: Mapping[str, Any], model_span: Mapping[str, Any]
) -> list[Piece]:
    """Split the passage where either span begins or ends."""
    ends = {author_span["start"], author_span["end"], model_span["start"], model_span["end"]}
    cuts = sorted({0, len(passage)} | ends)
    pieces = []
    for start, end in pairwise(cuts):
        is_author = author_span["start"] <= start < author_span["end"]
        is_model = model_span["start"] <= start < model_span["end"]
        if is_author and is_model:
            kind = "both"
        elif is_author:
            kind = "mine"
        else:
            kind = "model" if is_model else ""
        pieces.append(Piece(passage[start:end], kind))
    return pieces


def round_chances(
    chances: Mapping[str, float] | None, precision: str
) -> Mapping[str, float] | None:
    """Return the probabilities, rounded by `precision`; None if hidden or unknown."""
    if not chances or precision == "hidden":
        return None
    if precision == "rounded":
        return {label: round(chance, 1) for label, chance in chances.items()}
    return chances


def build_answers(
    example: Example, config: TaskConfig, outputs: Sequence[TargetOutput]
) -> list[TargetAnswer]:
    """Return the targets' answers to the example, for the panel."""
    return [_answer(example, config, output) for output in outputs]


def list_shown_fields(config: TaskConfig, context: Context) -> list[tuple[str, str]]:
    """Return (label, text or markup) of the context fields, except the prompt to write from."""
    return _shown_fields(config, list_fields_to_read(config, context.fields))


def list_given_fields(config: TaskConfig, context: Context) -> list[tuple[str, str]]:
    """Return (label, text or markup) of all context fields, including the prompt."""
    return _shown_fields(config, {name: value for name, value in context.fields.items() if value})


def _shown_fields(config: TaskConfig, values: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        (component.title, render_value(config, component.name, values[component.name]))
        for component in config.context
        if component.name in values
    ]


def format_answer(config: TaskConfig, values: Mapping[str, Any]) -> str:
    """Format an answer: the value of its only field, or each field's title and value."""
    fields = config.target_fields or (config.answer_field,)
    if len(fields) == 1:
        return config.display(fields[0], values.get(fields[0]))
    titled_values = [
        f"{config.component(field).others_title}: {config.display(field, values.get(field))}"
        for field in fields
    ]
    return "; ".join(titled_values)


def _answer(example: Example, config: TaskConfig, output: TargetOutput) -> TargetAnswer:
    # A target gives chances of its first answer only, so they describe no other field.
    component = config.component(config.answer_field)
    author_answer = example.inputs.get(component.name)
    model_answer = output.output.get(component.name)
    chances = output.prob or {}
    rows: list[Probability] = []
    probability_text = ""
    if component.type != "span" or not isinstance(author_answer, Mapping):
        rows = _rows(component, chances, author_answer, model_answer, config)
        chance = chances.get(str(model_answer))
        # After the words of several answers one chance would seem to be that of all of them.
        if chance is not None and len(config.target_fields) <= 1:
            probability_text = format_probability(chance, config.limits.show_confidence)
    pieces = _cut_passage(example, config, output)
    return TargetAnswer(
        name=example.round.shown_name(output.target, output.position),
        words=format_answer(config, output.output),
        sure=probability_text,
        fooled=output.fooled,
        overlap=output.score if pieces else None,
        rows=rows,
        pieces=pieces,
    )


def _cut_passage(example: Example, config: TaskConfig, output: TargetOutput) -> list[Piece]:
    """Return the passage split by both spans, for the first field that has two.

    The author's and the model's span. Empty if no target field is a span.
    """
    for field in config.target_fields:
        component = config.component(field)
        author_span = example.inputs.get(field)
        is_span = component.type == "span" and isinstance(author_span, Mapping)
        if is_span and "start" in output.output:
            model_span = {"start": output.output["start"], "end": output.output["end"]}
            passage = str(example.context.fields[str(component.reference)])
            return split_by_spans(passage, author_span, model_span)
    return []


def _rows(
    component: Component,
    chances: Mapping[str, float],
    author_label: Any,
    model_label: Any,
    config: TaskConfig,
) -> list[Probability]:
    precision = config.limits.show_confidence
    if precision == "hidden":
        return []
    steps = 10 if precision == "rounded" else 100
    rows = []
    for label, chance in sorted(chances.items(), key=lambda item: -item[1]):
        tags = []
        if label == author_label:
            tags.append(_("you"))
        if label == model_label:
            tags.append(_("model"))
        words = config.display(component.name, label)
        width = round(chance * steps) * 100 / steps
        is_mine = label == author_label
        rows.append(Probability(words, format_probability(chance, precision), width, is_mine, tags))
    return rows


class AuthorQuestion(NamedTuple):
    """The question to an author about the model's answer, with the labels of both answers."""

    question: str
    correct: str
    incorrect: str


def get_author_question(config: TaskConfig) -> AuthorQuestion:
    """Return the question for an undecided verdict, in the task's words or the default ones."""
    question = getattr(config.verdict, "question", None) or _("Is the model's answer acceptable?")
    if answers := getattr(config.verdict, "answers", None):
        return AuthorQuestion(question, answers.correct, answers.incorrect)
    return AuthorQuestion(question, _("Yes, the model is right"), _("No, the model is wrong"))


def build_heading(outcome: str, fooled_count: int, targets: int, config: TaskConfig) -> str:
    """Return the verdict as a heading."""
    rule = config.verdict.type
    several, is_asked = targets > 1, rule in ("ask_user", "pattern", "secret")
    if rule == "ask_user" and outcome in (Status.FOOLED, Status.NOT_FOOLED):
        return _build_author_heading(config, outcome)
    if rule in ("pattern", "secret") and outcome == Status.FOOLED:
        return _("You fooled the model")
    if rule in ("pattern", "secret") and outcome == Status.NOT_FOOLED:
        return _("You did not fool the model")
    if outcome == Status.FOOLED and several:
        message = ngettext(
            "%(fooled)d of %(asked)d models disagrees with you",
            "%(fooled)d of %(asked)d models disagree with you",
            fooled_count,
        )
        return message % {"fooled": fooled_count, "asked": targets}
    if outcome == Status.FOOLED:
        return _("The model disagrees with you")
    if outcome == Status.NOT_FOOLED:
        return _("The models agree with you") if several else _("The model agrees with you")
    if outcome == Status.UNDECIDED:
        return _("You decide") if is_asked else _("Too close to call")
    return _("Saved, no model in this round")


def _build_author_heading(config: TaskConfig, outcome: str) -> str:
    """Return a heading with the author's judgement, for rules that let the author decide."""
    if config.is_decided_by_author:
        return _("You marked an answer as wrong")
    question = get_author_question(config)
    words = question.incorrect if outcome == Status.FOOLED else question.correct
    return _("You said: %(answer)s") % {"answer": words}


def find_own_chance(answers: Sequence[TargetAnswer]) -> str:
    """Return the first target's probability of the author's label; empty if hidden."""
    rows = answers[0].rows if answers else []
    return next((row.value for row in rows if row.is_mine), "")


def list_why_components(
    config: TaskConfig, outcome: str, inputs: Mapping[str, Any]
) -> list[Component]:
    """Return the follow-up questions whose conditions the outcome and the inputs meet."""
    return [
        component
        for component in config.metadata.create
        if component.works_in("metadata")
        and (component.when is None or component.when.holds(inputs, outcome=outcome))
    ]
