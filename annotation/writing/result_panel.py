"""The result panel as plain values for its template."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.models import Example, TargetOutput
from annotation.rules.prompt import list_fields_to_read
from annotation.writing.criteria_forms import JUDGEMENT_WORDS
from core.numbers import format_percent, format_percent_axis
from tasks.config.components import Component
from tasks.config.criteria import Criterion
from tasks.config.schema import TaskConfig
from tasks.contexts.media.markup import render_value
from tasks.models import Context

Status = Example.Outcome


@dataclass(frozen=True)
class Probability:
    """A bar of the chart: one label with its probability.

    width: in percent. value: the displayed text. tags: who chose the label.
    """

    label: str
    value: str
    width: float
    is_mine: bool
    tags: Sequence[str]
    is_model: bool = False


@dataclass(frozen=True)
class Piece:
    """A piece of the passage.

    kind: whose span contains it: "mine", "model", "both", or "" for neither.
    """

    text: str
    kind: str


@dataclass(frozen=True)
class TargetAnswer:
    """One target's answer, as the result panel shows it.

    words: the answer as text. probability_text: its probability; "" if hidden. overlap: the F1 with
    the author's span (0-1). rows: the bars of probabilities. pieces: the passage with both spans.
    """

    name: str
    words: str
    probability_text: str
    fooled: bool | None
    overlap: float | None
    rows: Sequence[Probability]
    pieces: Sequence[Piece]


def describe_unjudged_example(config: TaskConfig) -> tuple[str, str]:
    """Describe the judging of examples that fooled no model, as a phrase and as a sentence.

    Both are empty if all such examples are judged.
    """
    share = config.validation.judge_not_fooled
    if share == 1:
        return "", ""
    if share == 0:
        return _("saved"), _("Saved. People judge only the examples that fool the model.")
    number = round(1 / share)
    # "1 in 3" is easier to picture than 33%, wherever it is as good as exact.
    if abs(number * share - 1) < 0.01:
        values: Mapping[str, Any] = {"number": number}
        sentence = _(
            "Saved. People judge 1 in %(number)d of the examples that don't fool the model."
        )
        return _("saved (1 in %(number)d judged)") % values, sentence % values
    values = {"percent": format_percent_axis(share)}
    sentence = _("Saved. People judge %(percent)s of the examples that don't fool the model.")
    return _("saved (%(percent)s judged)") % values, sentence % values


def format_probability(probability: float, precision: str) -> str:
    """Format a probability: exact, rounded to ten percent, or hidden, as `precision` says.

    Owners can hide exact values, because these invite small edits. No model is certain, so none is
    shown as 100% sure.

    >>> format_probability(0.914, "full"), format_probability(0.914, "rounded")
    ('91%', 'about 90%')
    >>> format_probability(0.9999, "full"), format_probability(0.0001, "full")
    ('>99%', '<1%')
    """
    if precision == "hidden":
        return ""
    if precision == "rounded":
        return _("about %(percent)s") % {"percent": format_percent(round(probability, 1), 0)}
    if probability > 0.99:
        return f">{format_percent(0.99, 0)}"
    if probability < 0.01:
        return f"<{format_percent(0.01, 0)}"
    return format_percent(probability, 0)


def split_by_spans(
    passage: str, author_span: Mapping[str, Any], model_span: Mapping[str, Any]
) -> list[Piece]:
    """Split the passage where either span begins or ends."""
    ends = {author_span["start"], author_span["end"], model_span["start"], model_span["end"]}
    # With both ends of the passage, so that the pieces add up to all of it.
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
    return [_build_answer(example, config, output) for output in outputs]


def list_shown_fields(config: TaskConfig, context: Context) -> list[tuple[str, str]]:
    """Return (label, text or markup) of the context fields, except the prompt to write from."""
    return _list_shown_fields(config, list_fields_to_read(config, context.fields))


def list_context_fields(config: TaskConfig, context: Context) -> list[tuple[str, str]]:
    """Return (label, text or markup) of all context fields, including the prompt."""
    return _list_shown_fields(
        config, {name: value for name, value in context.fields.items() if value}
    )


def _list_shown_fields(config: TaskConfig, values: Mapping[str, Any]) -> list[tuple[str, str]]:
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
    titled_values = []
    for field in fields:
        title = config.get_component(field).third_person_title
        titled_values.append(f"{title}: {config.display(field, values.get(field))}")
    return "; ".join(titled_values)


def _build_answer(example: Example, config: TaskConfig, output: TargetOutput) -> TargetAnswer:
    # A target gives chances of its first answer only, so they describe no other field.
    component = config.get_component(config.answer_field)
    author_answer = example.inputs.get(component.name)
    model_answer = output.output.get(component.name)
    chances = output.prob or {}
    rows: list[Probability] = []
    probability_text = ""
    if component.type != "span" or not isinstance(author_answer, Mapping):
        rows = _build_rows(component, chances, author_answer, model_answer, config)
        chance = chances.get(str(model_answer))
        # After the words of several answers one chance would seem to be that of all of them.
        if chance is not None and len(config.target_fields) <= 1:
            probability_text = format_probability(chance, config.limits.show_confidence)
    pieces = _cut_passage(example, config, output)
    return TargetAnswer(
        name=example.round.get_target_name(output.target, output.position),
        words=format_answer(config, output.output),
        probability_text=probability_text,
        fooled=output.fooled,
        overlap=output.score if pieces else None,
        rows=rows,
        pieces=pieces,
    )


def _cut_passage(example: Example, config: TaskConfig, output: TargetOutput) -> list[Piece]:
    """Return the passage split by the author's and the model's span.

    Uses the first target field that is a span; empty if there is none.
    """
    for field in config.target_fields:
        component = config.get_component(field)
        author_span = example.inputs.get(field)
        is_span = component.type == "span" and isinstance(author_span, Mapping)
        if is_span and "start" in output.output:
            model_span = {"start": output.output["start"], "end": output.output["end"]}
            passage = str(example.context.fields[str(component.reference)])
            return split_by_spans(passage, author_span, model_span)
    return []


def _build_rows(
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
        # In the same steps as the text: an exact bar would show what the rounded text hides.
        width = round(chance * steps) * 100 / steps
        is_mine = label == author_label
        value = format_probability(chance, precision)
        rows.append(Probability(words, value, width, is_mine, tags, label == model_label))
    return rows


class AuthorQuestion(NamedTuple):
    """The question to an author about the model's answer, with the labels of both answers."""

    question: str
    correct: str
    incorrect: str


def get_author_question(config: TaskConfig) -> AuthorQuestion:
    """Return the question for an undecided verdict, in the task's words or the default ones."""
    if config.verdict.type == "criteria":
        return AuthorQuestion(_("Which of your criteria does the model's answer meet?"), "", "")
    question = getattr(config.verdict, "question", None) or _("Is the model's answer acceptable?")
    if answers := getattr(config.verdict, "answers", None):
        return AuthorQuestion(question, answers.correct, answers.incorrect)
    return AuthorQuestion(question, _("Yes, the model is right"), _("No, the model is wrong"))


def build_heading(outcome: str, fooled_count: int, target_count: int, config: TaskConfig) -> str:
    """Return the verdict as a heading."""
    rule = config.verdict.type
    has_several_targets = target_count > 1
    is_asked = rule in ("ask_user", "criteria", "pattern", "secret")
    if rule == "criteria" and outcome == Status.FOOLED:
        return _("The model falls short of your criteria")
    if rule == "criteria" and outcome == Status.NOT_FOOLED:
        return _("The model meets your criteria")
    if rule == "ask_user" and outcome in (Status.FOOLED, Status.NOT_FOOLED):
        return _build_author_heading(config, outcome)
    if rule in ("pattern", "secret") and outcome == Status.FOOLED:
        return _("You fooled the model")
    if rule in ("pattern", "secret") and outcome == Status.NOT_FOOLED:
        return _("You didn't fool the model")
    if outcome == Status.FOOLED and has_several_targets:
        message = ngettext(
            "%(fooled)d of %(asked)d models disagrees with you",
            "%(fooled)d of %(asked)d models disagree with you",
            fooled_count,
        )
        return message % {"fooled": fooled_count, "asked": target_count}
    if outcome == Status.FOOLED:
        return _("The model disagrees with you")
    if outcome == Status.NOT_FOOLED:
        return (
            _("The models agree with you")
            if has_several_targets
            else _("The model agrees with you")
        )
    if outcome == Status.UNDECIDED:
        return _("You decide") if is_asked else _("Too close to call")
    return _("Your answer is saved") if rule == "decide" else _("Saved. This round has no model")


def _build_author_heading(config: TaskConfig, outcome: str) -> str:
    """Return a heading with the author's judgement, for rules that let the author decide."""
    if config.is_decided_by_author:
        return _("You marked an answer as wrong")
    question = get_author_question(config)
    words = question.incorrect if outcome == Status.FOOLED else question.correct
    return _("Your verdict: %(answer)s") % {"answer": words}


class JudgedCriterion(NamedTuple):
    """A criterion with what the author said of it, in words."""

    text: str
    words: str


def list_author_judgements(
    criteria: Sequence[Criterion], outputs: Sequence[TargetOutput]
) -> list[JudgedCriterion]:
    """Return what the author said of each criterion; empty if there are none, or not yet."""
    # There is one model, but the page is given all answers.
    judgements = next((output.judgements for output in outputs if output.judgements), None)
    if not judgements or len(judgements) != len(criteria):
        return []
    return [
        JudgedCriterion(criterion.text, str(JUDGEMENT_WORDS[judgement]))
        for criterion, judgement in zip(criteria, judgements, strict=True)
    ]


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
        if component.is_allowed_in("metadata")
        and (component.when is None or component.when.is_met(inputs, outcome=outcome))
    ]
