"""A model's accuracy before and after the day until which, as its card says, it was trained.

It loads numpy (see `leaderboard.board.matrix`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from evaluation.models import Submission
from leaderboard.board.cells import Cell
from leaderboard.board.matrix import Matrix, Model
from leaderboard.board.sets import BoardSet
from leaderboard.rounds.matrix import NOTHING, minus
from tasks.models import Round
from validation.rules.rates import wilson

Floats = NDArray[np.floating[Any]]
SHARES = ("accuracy", "exact_match", "vqa_accuracy")
"""Metrics that are shares of right answers, so that sets can be joined."""


@dataclass(frozen=True)
class Side:
    """The rounds on one side of the day, and the share of right answers on all of them."""

    rounds: tuple[int, ...]
    n: int
    cell: Cell
    provisional: tuple[BoardSet, ...] = ()  # those of the sets whose rounds were still judged

    def as_json(self) -> dict[str, Any]:
        """Return the side for programs, in percent."""
        return {
            "rounds": [*self.rounds],
            "n": self.n,
            "is_provisional": bool(self.provisional),
            **self.cell._asdict(),
        }


@dataclass(frozen=True)
class Dated:
    """A model with a day. others: by how much other models are better before it, in points.

    Neither side has rounds during which the day fell, nor those written against this very model.
    """

    model: Model
    trained_until: date
    before: Side
    after: Side
    difference: Cell  # before − after, in points
    others: float | None


def metric_of(matrix: Matrix) -> str | None:
    """Return the first metric that is a share of right answers; None when the task has none."""
    return next((name for name in SHARES if name in matrix.metrics), None)


def dated_models(matrix: Matrix, rounds: Sequence[Round]) -> list[Dated]:
    """Return the models of a board that state a day, by name. One query."""
    metric = metric_of(matrix)
    if metric is None:
        return []
    days = _days(matrix.models)
    lines = [
        _dated(matrix, metric, place, day, rounds)
        for place, model in enumerate(matrix.models)
        if (day := days.get(model.id))
    ]
    return sorted(lines, key=lambda line: line.model.name)


def _days(models: Iterable[Model]) -> Mapping[UUID, date]:
    told = Submission.objects.filter(pk__in=[model.id for model in models])
    return {pk: day for pk, day in told.values_list("pk", "trained_until") if day}


def _dated(matrix: Matrix, metric: str, place: int, day: date, rounds: Sequence[Round]) -> Dated:
    numbers, column = matrix.numbers, matrix.metrics.index(metric)
    run = [
        at
        for at, one in enumerate(matrix.sets)
        if one.round
        and not numbers.in_the_loop[place, at]
        and numbers.values[place, at, column] == numbers.values[place, at, column]
    ]
    before, after = (
        [at for at in run if matrix.sets[at].round in numbered] for numbered in _parted(rounds, day)
    )
    sides = [side_of(matrix, place, column, group) for group in (before, after)]
    return Dated(
        model=matrix.models[place],
        trained_until=day,
        before=sides[0],
        after=sides[1],
        difference=minus(sides[0].cell, sides[1].cell),
        others=_others(matrix, column, place, before, after),
    )


def _parted(rounds: Sequence[Round], day: date) -> tuple[set[int], set[int]]:
    """Return the numbers of the rounds that were over by the day, and of those opened after it."""
    before = {one.number for one in rounds if one.closed_at and one.closed_at.date() <= day}
    after = {one.number for one in rounds if one.opened_at and one.opened_at.date() > day}
    return before, after


def side_of(matrix: Matrix, place: int, column: int, group: Sequence[int]) -> Side:
    """Return a model's share (a column of the metrics) on several sets together."""
    sets: list[BoardSet] = [matrix.sets[at] for at in group]
    sizes = [int(matrix.numbers.n[place, at, column]) or matrix.sets[at].size for at in group]
    n = sum(sizes)
    numbers = tuple(number for one in sets if (number := one.round or one.held_of))
    if not n:
        return Side(numbers, 0, NOTHING)
    shares = [float(matrix.numbers.values[place, at, column]) / 100 for at in group]
    right = sum(share * size for share, size in zip(shares, sizes, strict=True))
    low, high = wilson(min(right, n), n)
    early = tuple(one for one in sets if one.is_provisional)
    return Side(numbers, n, Cell(100 * right / n, 100 * low, 100 * high), early)


def _others(
    matrix: Matrix, column: int, place: int, before: Sequence[int], after: Sequence[int]
) -> float | None:
    """Return the mean difference of the other models that were run on the same sets.

    None without any. It tells how much harder the later rounds are for everybody.
    """
    if not (before and after):
        return None
    falls = _joined(matrix, column, before) - _joined(matrix, column, after)
    known = np.delete(falls, place)
    known = known[~np.isnan(known)]
    return float(known.mean()) if known.size else None


def _joined(matrix: Matrix, column: int, group: Sequence[int]) -> Floats:
    """Return each model's share on several sets together, in percent; NaN where one is missing."""
    n = matrix.numbers.n[:, group, column]
    sizes = np.where(n > 0, n, [matrix.sets[at].size for at in group])
    found: Floats = (matrix.numbers.values[:, group, column] * sizes).sum(axis=1) / sizes.sum(
        axis=1
    )
    return found


def dated_body(matrix: Matrix, lines: Sequence[Dated]) -> dict[str, Any]:
    """Return the models before and after for programs, in percent and points."""
    return {
        "task": matrix.task,
        "metric": metric_of(matrix) or "",
        "models": [*_json_lines(lines)],
    }


def _json_lines(lines: Sequence[Dated]) -> Iterator[dict[str, Any]]:
    for line in lines:
        yield {
            "id": str(line.model.id),
            "model": line.model.name,
            "trained_until": line.trained_until.isoformat(),
            "before": line.before.as_json(),
            "after": line.after.as_json(),
            "difference": line.difference._asdict(),
            "others": line.others,
        }
