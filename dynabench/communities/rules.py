"""The board across tasks: each task's main score between what knows nothing and perfect, averaged.

docs/communities.md says why. Pure: no database, no framework.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import hypot
from typing import NamedTuple

PERFECT = 100.0
MOST = 8.0
"""The largest weight of a task; only ratios matter."""
ALIKE = 9
"""Digits after the point to which scores that share a rank are equal."""


class Measured(NamedTuple):
    """The main metric of a model on a task, in percent; None: no value, or no interval."""

    value: float | None
    low: float | None = None
    high: float | None = None


NOTHING = Measured(None)


@dataclass(frozen=True)
class Entrant:
    """A model with what was measured of it, by task. track: empty where it names none."""

    key: str
    name: str
    owner: str
    track: str
    scores: Mapping[str, Measured]
    models: Mapping[str, str]  # by task, the id of its submission


@dataclass(frozen=True)
class Line:
    """A model's line. Without a rank it was not measured on each task that counts.

    first, last: the ranks that the intervals leave open; None where a score has no interval.
    """

    entrant: Entrant
    points: Mapping[str, Measured]
    score: Measured
    rank: str
    first: int | None
    last: int | None
    missing: tuple[str, ...]


def points_of(measured: Measured, floor: float) -> Measured:
    """0 at `floor`, what somebody who knows nothing has, and 100 at the perfect 100 percent."""

    def place(value: float | None) -> float | None:
        if value is None:
            return None
        return max(0.0, min(100.0, 100 * (value - floor) / (PERFECT - floor)))

    return Measured(*map(place, measured))


def mean_of(points: Mapping[str, Measured], weights: Mapping[str, float]) -> Measured:
    """The weighted mean of the tasks that count; no value where one is missing.

    Tasks have different examples, so their errors are independent, and the ends of the intervals
    add up as squares.
    """
    used = {task: weight for task, weight in weights.items() if weight > 0}
    total, known = sum(used.values()), [points.get(task, NOTHING) for task in used]
    values = [one.value for one in known if one.value is not None]
    if not used or len(values) < len(used):
        return NOTHING
    shares = [weight / total for weight in used.values()]
    mean = sum(share * value for share, value in zip(shares, values, strict=True))
    ends = [(one.low, one.high) for one in known if one.low is not None and one.high is not None]
    if len(ends) < len(used):
        return Measured(mean)
    parts = [*zip(shares, values, ends, strict=True)]
    below = hypot(*(share * (value - low) for share, value, (low, _) in parts))
    above = hypot(*(share * (high - value) for share, value, (_, high) in parts))
    return Measured(mean, mean - below, mean + above)


def across(
    entrants: Sequence[Entrant], weights: Mapping[str, float], floors: Mapping[str, float]
) -> list[Line]:
    """The models by score, best first; after them those that lack a task, the fewest first.

    floors: by task, as `points_of` has it. A model without each task that counts has no score: a
    mean over other tasks could not be compared.
    """
    lines = [_line(one, weights, floors) for one in entrants]
    scores = [line.score for line in lines if line.score.value is not None]
    ranked = [_ranked(line, scores) for line in lines]
    return sorted(
        ranked,
        key=lambda line: (
            -round(line.score.value, ALIKE) if line.score.value is not None else 1,
            len(line.missing),
            line.entrant.name.casefold(),
            line.entrant.key,
        ),
    )


def _line(one: Entrant, weights: Mapping[str, float], floors: Mapping[str, float]) -> Line:
    """A line without its ranks."""
    points = {task: points_of(score, floors[task]) for task, score in one.scores.items()}
    missing = tuple(
        task
        for task, weight in weights.items()
        if weight > 0 and points.get(task, NOTHING).value is None
    )
    return Line(one, points, mean_of(points, weights), "", None, None, missing)


def _ranked(line: Line, scores: Sequence[Measured]) -> Line:
    """With the rank as it is shown, and the first and the last that the intervals leave open.

    Two models differ where their difference is more than both ends towards each other, added as
    squares; on the same examples that is cautious, as their errors go together.
    """
    score = line.score
    if score.value is None:
        return line
    own = round(score.value, ALIKE)
    values = [round(one.value or 0.0, ALIKE) for one in scores]
    rank = f"{1 + sum(value > own for value in values)}{'=' * (values.count(own) > 1)}"
    if any(one.low is None for one in scores):
        return replace(line, rank=rank)
    better = sum(_is_better(one, score) for one in scores)
    worse = sum(_is_better(score, one) for one in scores)
    return replace(line, rank=rank, first=1 + better, last=len(scores) - worse)


def _is_better(one: Measured, other: Measured) -> bool:
    assert None not in (*one, *other)
    down, up = one.value - one.low, other.high - other.value  # type: ignore[operator]
    return one.value - other.value > hypot(down, up)  # type: ignore[operator]
