"""The board across tasks: a mean of main scores, rescaled so that a model without knowledge gets 0.

docs/communities.md gives the reasons. Pure: no database, no framework.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import hypot
from typing import NamedTuple

from leaderboard.ranking.ranks import compute_shared_ranks, label_ranks

PERFECT_PERCENT = 100.0
"""The best value of a main metric, in percent."""
MAX_WEIGHT = 8.0
"""The largest weight of a task. Only the ratios of weights matter."""
EQUAL_DECIMALS = 9
"""The number of decimals to which scores have to be equal to share a rank."""


class MeasuredScore(NamedTuple):
    """A model's main metric on a task, with its interval, in percent.

    value: None if it was not measured. low, high: None if there is no interval.
    """

    value: float | None
    low: float | None = None
    high: float | None = None


NO_MEASUREMENT = MeasuredScore(None)


@dataclass(frozen=True)
class Entrant:
    """A model with its scores by task. track: its track, or "" if it has none."""

    key: str
    name: str
    owner: str
    track: str
    scores: Mapping[str, MeasuredScore]
    models: Mapping[str, str]  # by task, the id of its submission


@dataclass(frozen=True)
class BoardLine:
    """A model's line on the board.

    rank: "" if the model lacks a task that counts. first, last: the best and the worst rank that
    the intervals allow; None if a score has no interval. missing: the codes of the tasks that count
    but have no result.
    """

    entrant: Entrant
    points: Mapping[str, MeasuredScore]
    score: MeasuredScore
    rank: str
    first: int | None
    last: int | None
    missing: tuple[str, ...]


def rescale_to_points(score: MeasuredScore, floor: float) -> MeasuredScore:
    """Rescale a metric to points: 0 at `floor`, 100 at 100 percent.

    floor: the metric of a model without knowledge, in percent. Points are limited to 0 to
    100. The ends of the interval are rescaled in the same way.
    """

    def rescale_value(value: float | None) -> float | None:
        if value is None:
            return None
        return max(0.0, min(100.0, 100 * (value - floor) / (PERFECT_PERCENT - floor)))

    return MeasuredScore(*map(rescale_value, score))


def average_points(
    points: Mapping[str, MeasuredScore], weights: Mapping[str, float]
) -> MeasuredScore:
    """Return a model's weighted mean over the tasks that count; no value if one of them is missing.

    Parameters
    ----------
    points
        The model's points by task.
    weights
        The weight of each task. A task of weight 0 does not count.

    Notes
    -----
    Tasks have different examples, so their errors are independent, and the distances to the ends of
    the intervals add up as squares. The mean is `Σ wᵢpᵢ / Σ wᵢ`; its lower end is the mean less
    `√Σ (wᵢ(pᵢ − lowᵢ) / Σ wᵢ)²`.
    """
    positive_weights = {task: weight for task, weight in weights.items() if weight > 0}
    total = sum(positive_weights.values())
    if not total:
        return NO_MEASUREMENT
    mean = 0.0
    lower_errors: list[float] = []
    upper_errors: list[float] = []
    for task, weight in positive_weights.items():
        value, low, high = points.get(task, NO_MEASUREMENT)
        if value is None:
            return NO_MEASUREMENT
        # Weights may have any sum: only their ratios matter.
        share = weight / total
        mean += share * value
        if low is not None and high is not None:
            lower_errors.append(share * (value - low))
            upper_errors.append(share * (high - value))
    # A mean has an interval only where each of its parts has one.
    if len(lower_errors) < len(positive_weights):
        return MeasuredScore(mean)
    return MeasuredScore(mean, mean - hypot(*lower_errors), mean + hypot(*upper_errors))


def rank_entrants(
    entrants: Sequence[Entrant], weights: Mapping[str, float], floors: Mapping[str, float]
) -> list[BoardLine]:
    """Return the models' lines, ordered by score, the best first.

    Models that lack a task come last.

    Parameters
    ----------
    entrants
        The models.
    weights
        The weight of each task. A task of weight 0 does not count.
    floors
        The metric that gives 0 points, by task. See `rescale_to_points`.

    Notes
    -----
    A model that lacks a task that counts has no score, because a mean over other tasks would not be
    comparable. Among these models, the ones that lack the fewest tasks come first.
    """
    lines = [_make_line(entrant, weights, floors) for entrant in entrants]
    scored_lines = [line for line in lines if line.score.value is not None]
    # Rounded, so that the order in which floats were added makes no difference.
    labels = label_ranks(
        compute_shared_ranks(
            [round(line.score.value or 0.0, EQUAL_DECIMALS) for line in scored_lines]
        )
    )
    bounds = _compute_rank_bounds([line.score for line in scored_lines])
    ranked_lines = [
        replace(line, rank=label, first=first, last=last)
        for line, label, (first, last) in zip(scored_lines, labels, bounds, strict=True)
    ]
    unscored_lines = [line for line in lines if line.score.value is None]
    return sorted(ranked_lines + unscored_lines, key=_get_sort_key)


def _get_sort_key(line: BoardLine) -> tuple[float, int, str, str]:
    """Return the sort key of a line."""
    # No score is above 0 when it is negated, so lines without one come last.
    score = line.score.value
    negated = 1.0 if score is None else -round(score, EQUAL_DECIMALS)
    return negated, len(line.missing), line.entrant.name.casefold(), line.entrant.key


def _make_line(
    entrant: Entrant, weights: Mapping[str, float], floors: Mapping[str, float]
) -> BoardLine:
    """Return a model's line without its rank."""
    points = {
        task: rescale_to_points(score, floors[task]) for task, score in entrant.scores.items()
    }
    missing_tasks = tuple(
        task
        for task, weight in weights.items()
        if weight > 0 and points.get(task, NO_MEASUREMENT).value is None
    )
    return BoardLine(
        entrant, points, average_points(points, weights), "", None, None, missing_tasks
    )


def _compute_rank_bounds(scores: Sequence[MeasuredScore]) -> list[tuple[int | None, int | None]]:
    """Return the best and worst rank of each score that the intervals allow.

    Both are None if any score has no interval. Two models differ significantly if their difference
    exceeds the root of the sum of squares of the interval ends that face each other. On shared
    examples this is conservative, because errors are positively correlated.
    """
    if any(score.low is None for score in scores):
        return [(None, None)] * len(scores)
    bounds: list[tuple[int | None, int | None]] = []
    for score in scores:
        better = sum(_is_better(other, score) for other in scores)
        worse = sum(_is_better(score, other) for other in scores)
        bounds.append((1 + better, len(scores) - worse))
    return bounds


def _is_better(score: MeasuredScore, other_score: MeasuredScore) -> bool:
    """Return whether a score is significantly better than another. Both must have intervals."""
    assert None not in score
    assert None not in other_score
    lower_error, upper_error = score.value - score.low, other_score.high - other_score.value  # type: ignore[operator]
    return score.value - other_score.value > hypot(lower_error, upper_error)  # type: ignore[operator]
