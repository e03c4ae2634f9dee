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
from validation.rates.rates import wilson

Floats = NDArray[np.floating[Any]]
SHARES = ("accuracy", "exact_match", "vqa_accuracy")
"""Metrics that are shares of right answers, so that sets can be joined."""


@dataclass(frozen=True)
class Side:
    """The rounds before or after a training date, and the share of correct answers on all of them.

    rounds: their numbers. n: the number of examples.
    """

    rounds: tuple[int, ...]
    n: int
    cell: Cell
    provisional: tuple[BoardSet, ...] = ()  # those of the sets whose rounds were still judged

    def as_json(self) -> dict[str, Any]:
        """Return the side as JSON values, in percent."""
        return {
            "rounds": list(self.rounds),
            "n": self.n,
            "is_provisional": bool(self.provisional),
            **self.cell._asdict(),
        }


@dataclass(frozen=True)
class Dated:
    """A model with a training date. others: how much better other models are before it, in points.

    Neither side has rounds that were open on the date, nor rounds written against this model.
    """

    model: Model
    trained_until: date
    before: Side
    after: Side
    difference: Cell  # before − after, in points
    others: float | None


def metric_of(matrix: Matrix) -> str | None:
    """Return the first metric that is a share of correct answers; None if the task has none."""
    return next((name for name in SHARES if name in matrix.metrics), None)


def dated_models(matrix: Matrix, rounds: Sequence[Round]) -> list[Dated]:
    """Return the models of a board that state a training date, by name. One query."""
    metric = metric_of(matrix)
    if metric is None:
        return []
    days = _days(matrix.models)
    lines = []
    for place, model in enumerate(matrix.models):
        if model.id in days:
            lines.append(_dated(matrix, metric, place, days[model.id], rounds))
    return sorted(lines, key=lambda line: line.model.name)


def _days(models: Iterable[Model]) -> Mapping[UUID, date]:
    """Return the training date of each model that states one."""
    submissions = Submission.objects.filter(pk__in=[model.id for model in models])
    days = {}
    for submission, day in submissions.values_list("pk", "trained_until"):
        if day is not None:
            days[submission] = day
    return days


def _dated(matrix: Matrix, metric: str, place: int, day: date, rounds: Sequence[Round]) -> Dated:
    """Compare a model's rounds before and after its training date."""
    numbers, column = matrix.numbers, matrix.metrics.index(metric)
    numbers_before, numbers_after = _parted(rounds, day)
    before: list[int] = []
    after: list[int] = []
    for at, each in enumerate(matrix.sets):
        is_measured = not np.isnan(numbers.values[place, at, column])
        if not is_measured or numbers.in_the_loop[place, at]:
            continue
        if each.round in numbers_before:
            before.append(at)
        if each.round in numbers_after:
            after.append(at)
    side_before = side_of(matrix, place, column, before)
    side_after = side_of(matrix, place, column, after)
    return Dated(
        model=matrix.models[place],
        trained_until=day,
        before=side_before,
        after=side_after,
        difference=minus(side_before.cell, side_after.cell),
        others=_others(matrix, column, place, before, after),
    )


def _parted(rounds: Sequence[Round], day: date) -> tuple[set[int], set[int]]:
    """Return the numbers of the rounds that had ended by the date, and of those opened after it."""
    before, after = set(), set()
    for round in rounds:
        if round.closed_at and round.closed_at.date() <= day:
            before.add(round.number)
        if round.opened_at and round.opened_at.date() > day:
            after.add(round.number)
    return before, after


def side_of(matrix: Matrix, place: int, column: int, group: Sequence[int]) -> Side:
    """Return a model's share of correct answers on several sets together.

    place: the model's index. column: the metric's index. group: the indices of the sets.
    """
    numbers: list[int] = []
    provisional: list[BoardSet] = []
    n, right = 0, 0.0
    for at in group:
        each = matrix.sets[at]
        # A set of held back rows belongs to no round, but comes from one.
        if number := each.round or each.held_of:
            numbers.append(number)
        if each.is_provisional:
            provisional.append(each)
        # Where the number of examples was not stored, it is that of the set.
        size = int(matrix.numbers.n[place, at, column]) or each.size
        n += size
        right += float(matrix.numbers.values[place, at, column]) / 100 * size
    if not n:
        return Side(tuple(numbers), 0, NOTHING)
    # Rounded shares may add up to a little more than all examples.
    low, high = wilson(min(right, n), n)
    cell = Cell(100 * right / n, 100 * low, 100 * high)
    return Side(tuple(numbers), n, cell, tuple(provisional))


def _others(
    matrix: Matrix, column: int, place: int, before: Sequence[int], after: Sequence[int]
) -> float | None:
    """Return the mean difference of the other models that were run on the same sets.

    None if there are none. The difference shows how much harder the later rounds are for all
    models.
    """
    if not (before and after):
        return None
    # A model that lacks one of the sets has no place in the mean.
    falls = _joined(matrix, column, before) - _joined(matrix, column, after)
    of_others = np.delete(falls, place)
    of_others = of_others[~np.isnan(of_others)]
    return float(of_others.mean()) if of_others.size else None


def _joined(matrix: Matrix, column: int, group: Sequence[int]) -> Floats:
    """Return each model's share on several sets together, in percent; NaN if one is missing."""
    n = matrix.numbers.n[:, group, column]
    sizes = np.where(n > 0, n, [matrix.sets[at].size for at in group])
    right: Floats = (matrix.numbers.values[:, group, column] * sizes).sum(axis=1)
    shares: Floats = right / sizes.sum(axis=1)
    return shares


def dated_body(matrix: Matrix, lines: Sequence[Dated]) -> dict[str, Any]:
    """Return the models' results before and after as JSON values, in percent and points."""
    return {
        "task": matrix.task,
        "metric": metric_of(matrix) or "",
        "models": list(_json_lines(lines)),
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
