"""The steps of a plan, and how a plan reads."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """What a step does to the site. The value stands before the step in a plan."""

    CREATE = "+"
    CHANGE = "~"
    REMOVE = "-"
    UNCHANGED = "="
    IMPOSSIBLE = "!"


COUNTED_WORDS = {
    Kind.CREATE: "to create",
    Kind.CHANGE: "to change",
    Kind.REMOVE: "to remove",
    Kind.UNCHANGED: "unchanged",
    Kind.IMPOSSIBLE: "not possible now",
}
KIND_NAMES = {
    Kind.CREATE: "create",
    Kind.CHANGE: "change",
    Kind.REMOVE: "remove",
    Kind.UNCHANGED: "unchanged",
    Kind.IMPOSSIBLE: "impossible",
}
"""The kinds in the JSON of a plan."""


@dataclass(frozen=True)
class PlannedStep:
    """One line of a plan.

    place: the file, and the line if the step is about one. details: the lines shown below the
    sentence. do: makes the step and returns a sentence about the result, or "". check: raises
    ChangedMeanwhile if the site is no longer as it was for the plan. stops_all: an impossible step
    without which nothing is done at all.
    """

    kind: Kind
    place: str
    sentence: str
    details: tuple[str, ...] = ()
    do: Callable[[], str] | None = None
    check: Callable[[], None] | None = None
    stops_all: bool = False

    @property
    def is_pending(self) -> bool:
        """Return whether the step changes something on the site."""
        return self.kind in (Kind.CREATE, Kind.CHANGE, Kind.REMOVE)

    def encode(self) -> dict[str, Any]:
        """Return the step as JSON."""
        return {
            "kind": KIND_NAMES[self.kind],
            "place": self.place,
            "sentence": self.sentence,
            "details": list(self.details),
        }


def count_texts(count: int) -> str:
    """Return a number of texts in words.

    >>> count_texts(1), count_texts(6)
    ('1 text', '6 texts')
    """
    return f"{count} text" if count == 1 else f"{count} texts"


def describe_plan(steps: Sequence[PlannedStep]) -> str:
    """Return a plan as text: a line for each step with its details, and the counts."""
    # Sentences begin in one column, below each other.
    width = max((len(step.place) for step in steps), default=0)
    lines = []
    for step in steps:
        lines.append(f"  {step.kind.value} {step.place.ljust(width)}  {step.sentence}")
        lines += [f"      {line}" for line in step.details]
    counts = Counter(step.kind for step in steps)
    parts = [f"{counts[kind]} {words}" for kind, words in COUNTED_WORDS.items() if counts[kind]]
    return "\n".join([*lines, "", f"Plan: {', '.join(parts)}."])
