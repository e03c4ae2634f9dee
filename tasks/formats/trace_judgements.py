"""Judgements of traces as their tools read them, under the ids of the trace and its spans. Pure."""

import uuid
from collections.abc import Iterator
from typing import Any, NamedTuple

from tasks.formats.base import Item, Record

DECISION_SUFFIX, STEP_SUFFIX = "_consensus", "_step"
_NAMESPACE = uuid.UUID("6f1c2f0e-6a0d-5f0b-9d3e-2f6f3b6f9d11")


class Judgement(NamedTuple):
    """An answer about a trace or one of its steps.

    name: the question. label: the answer. judge: a pseudonym; "" for the decision of all votes and
    for unknown people. span: the id of the step's span, and turn the number of its turn from 1;
    "" and 0 for the whole trace.
    """

    name: str
    label: str
    judge: str = ""
    is_decision: bool = False
    span: str = ""
    turn: int = 0


def iter_judgements(item: Item) -> Iterator[Judgement]:
    """Yield the votes on a trace and its steps, each after the decision of all, if there is one."""
    name = item.answer_field
    if item.label is not None:
        yield Judgement(name + DECISION_SUFFIX, item.label, is_decision=True)
    for vote in item.votes:
        yield Judgement(name, vote.label, vote.worker or "")
    # Each step with its own answers, so that a reader sees them together.
    for turn in range(1, len(item.spans) + 1):
        span, key = item.spans[turn - 1], str(turn)
        if key in item.step_labels:
            own_name = name + STEP_SUFFIX + DECISION_SUFFIX
            yield Judgement(own_name, item.step_labels[key], "", True, span, turn)
        for vote in item.votes:
            if key in vote.steps:
                own_name = name + STEP_SUFFIX
                yield Judgement(own_name, vote.steps[key], vote.worker or "", False, span, turn)


def make_id(item: Item, number: int, judgement: Judgement) -> str:
    """Return an id that is the same at each export, so that a judgement counts once.

    number: the place of the judgement, by which votes of unknown people differ.
    """
    # Only votes of unknown people need their place.
    place = number if not judgement.judge and not judgement.is_decision else 0
    text = f"{item.uid} {judgement.name} {judgement.turn} {judgement.judge} {place}"
    return str(uuid.uuid5(_NAMESPACE, text))


def describe_judgements(item: Item, id_key: str, step_key: str) -> Record | None:
    """Return a trace's decision, its votes and those on its steps; None if it is no trace.

    id_key, step_key: the tool's names of the ids of a trace and of a step.
    """
    if not item.spans:
        return None
    # Only steps with answers, so that whole traces have none.
    steps: dict[int, Record] = {}
    whole: Record = {"label": None, "votes": []}
    for judgement in iter_judgements(item):
        place = whole
        if judgement.turn:
            new: Record = {step_key: judgement.span, "turn": judgement.turn}
            place = steps.setdefault(judgement.turn, {**new, "label": None, "votes": []})
        if judgement.is_decision:
            place["label"] = judgement.label
        else:
            place["votes"].append({"judge": judgement.judge or None, "label": judgement.label})
    record: dict[str, Any] = {id_key: item.uid, **whole, "steps": list(steps.values())}
    return record
