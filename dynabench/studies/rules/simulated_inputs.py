"""What simulated people write and answer: random values that fit a task's fields. Pure.

Their texts are plain English sentences about words of the text that they are given. They show that
a study works, and say nothing about how people write.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any

from tasks.config.components import Component
from tasks.config.schema import TaskConfig

Values = Mapping[str, Any]
MIN_WORD_CHARS = 4
"""Shorter words of a given text are no subject of a sentence."""
WORD_PATTERN = re.compile(rf"[^\W\d_]{{{MIN_WORD_CHARS},}}")
OPENINGS = [
    "I read that",
    "They say that",
    "It seems that",
    "My friend thinks that",
    "Nobody told me that",
    "As far as I know,",
    "I doubt that",
    "Yesterday I saw that",
]
SUBJECTS = [
    "the story about",
    "everything about",
    "the part with",
    "our long talk about",
    "a short note on",
    "the second half of",
    "what we heard about",
    "the rest of",
]
VERBS = [
    "was better than",
    "had little to do with",
    "reminded everyone of",
    "came before",
    "was worth as much as",
    "could hardly replace",
    "explained",
    "left no room for",
]
ENDINGS = [
    "in the end",
    "at first sight",
    "for most of us",
    "on a rainy evening",
    "without any doubt",
    "by the time we left",
    "for no clear reason",
    "as usual",
]
OTHER_WORDS = ["morning", "garden", "kitchen", "journey", "window", "letter", "harbour", "market"]
"""Words for sentences about a text that has too few of its own, such as a picture."""


def find_unwritable_field(config: TaskConfig) -> Component | None:
    """Return a required input that simulated people can't fill in, such as a picture, or None."""
    for component in config.input:
        if component == config.talk or not component.required:
            continue
        if not component.kind.is_text and component.type not in DRAWERS:
            return component
    return None


def draw_inputs(config: TaskConfig, context: Values, goal: str, random: Random) -> dict[str, Any]:
    """Return what a person writes about a context, without a conversation.

    goal: the label that the person was given, or "". Optional fields are left out.
    """
    inputs: dict[str, Any] = {}
    for component in config.input:
        is_main_text = component.name == config.text_field
        if component == config.talk or not (component.required or is_main_text):
            continue
        # A condition on the verdict is met by nothing yet, so such a field comes later.
        if component.when is not None and not component.when.is_met(inputs):
            continue
        if component.name == config.goal.field and goal:
            inputs[component.name] = goal
        else:
            inputs[component.name] = draw_value(config, component, context, random)
    return inputs


def draw_answers(
    config: TaskConfig, context: Values, inputs: Values, outcome: str, random: Random
) -> dict[str, Any]:
    """Return the answers to the questions that the task asks with each example.

    outcome: of the example, on which a question may depend.
    """
    answers: dict[str, Any] = {}
    known = {**context, **inputs}
    for question in config.metadata.create:
        is_asked = question.when is None or question.when.is_met(
            {**known, **answers}, outcome=outcome
        )
        if is_asked and (question.kind.is_text or question.type in DRAWERS):
            answers[question.name] = draw_value(config, question, known, random)
    return answers


def draw_value(config: TaskConfig, component: Component, given: Values, random: Random) -> Any:
    """Return a value of a field. given: values that the field may refer to, such as a passage.

    Raises KeyError for a type of field that simulated people can't fill in.
    """
    if component.kind.is_text:
        return draw_text(component, given, random)
    return DRAWERS[component.type](config, component, given, random)


def draw_text(component: Component, given: Values, random: Random) -> str:
    """Return sentences about words of the given texts, within the field's limits of length."""
    words = sorted({word.lower() for word in WORD_PATTERN.findall(_join_texts(given.values()))})
    # Two different words in each sentence, whatever the text has.
    words = words if len(words) > 1 else [*words, *OTHER_WORDS]
    text = _draw_sentence(words, random)
    while len(text) < (component.min_length or 0):
        text += " " + _draw_sentence(words, random)
    if component.max_length is None or len(text) <= component.max_length:
        return text
    # At a space, so that no word is cut. A field for one word gets a word.
    cut = text[: component.max_length + 1].rpartition(" ")[0]
    return cut or random.choice(words)[: component.max_length]


def _draw_sentence(words: Sequence[str], random: Random) -> str:
    first, second = random.sample(words, 2)
    parts = [random.choice(OPENINGS), random.choice(SUBJECTS), first]
    parts += [random.choice(VERBS), random.choice(SUBJECTS), second, random.choice(ENDINGS)]
    return " ".join(parts) + "."


def _join_texts(values: Iterable[Any]) -> str:
    return " ".join(value for value in values if isinstance(value, str))


def _draw_label(_config: TaskConfig, component: Component, _given: Values, random: Random) -> str:
    return random.choice(component.values)


def _draw_labels(
    _config: TaskConfig, component: Component, _given: Values, random: Random
) -> list[str]:
    return [random.choice(component.values)]


def _draw_number(
    _config: TaskConfig, component: Component, _given: Values, random: Random
) -> float:
    """Return a number on the field's grid."""
    low, step = component.minimum or 0.0, component.step or 1.0
    high = low + 4 * step if component.maximum is None else component.maximum
    return low + step * random.randint(0, int((high - low) / step))


def _draw_mark(component: Component, given: Values, random: Random) -> dict[str, Any]:
    """Return a word of the passage as a span."""
    passage = str(given.get(str(component.reference), ""))
    word = random.choice(list(re.finditer(r"\S+", passage)) or list(re.finditer(r".", passage)))
    return {"text": word.group(), "start": word.start(), "end": word.end()}


def _draw_span(
    _config: TaskConfig, component: Component, given: Values, random: Random
) -> dict[str, Any]:
    return _draw_mark(component, given, random)


def _draw_spans(
    _config: TaskConfig, component: Component, given: Values, random: Random
) -> list[dict[str, Any]]:
    tag = {"tag": random.choice(component.tags)} if component.tags else {}
    return [_draw_mark(component, given, random) | tag]


def _draw_candidate(
    _config: TaskConfig, component: Component, given: Values, random: Random
) -> Any:
    candidates = list(given.get(str(component.reference)) or ())
    if component.rank:
        return random.sample(candidates, len(candidates))
    return random.choice(candidates)


def _draw_criteria(
    _config: TaskConfig, component: Component, given: Values, random: Random
) -> list[dict[str, Any]]:
    return [{"text": draw_text(component, given, random), "points": 1}]


def _draw_chances(config: TaskConfig, component: Component, _given: Values, random: Random) -> Any:
    if component.single:
        return random.random()
    labels = [label.value for label in config.get_labels(str(component.reference))]
    return {label: 1 / len(labels) for label in labels}


DRAWERS: Mapping[str, Callable[[TaskConfig, Component, Values, Random], Any]] = {
    "multiclass": _draw_label,
    "multilabel": _draw_labels,
    "number": _draw_number,
    "slider": _draw_number,
    "span": _draw_span,
    "spans": _draw_spans,
    "candidates": _draw_candidate,
    "criteria": _draw_criteria,
    "prob": _draw_chances,
}
"""What draws a value, by the type of the field. Texts have `draw_text`."""
