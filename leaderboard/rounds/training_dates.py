"""A model's accuracy before and after the training date that its card states.

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
from leaderboard.board import columns
from leaderboard.board.cells import Cell
from leaderboard.board.matrix import BoardModel, Matrix
from leaderboard.board.sets import BoardSet
from leaderboard.rounds.matrix import EMPTY_CELL, subtract_cells
from tasks.models import Round
from validation.rates.rates import compute_wilson_interval

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Side:
    """The rounds before or after a training date, and the share of correct answers on all of them.

    rounds: their numbers. n: the number of examples.
    """

    rounds: tuple[int, ...]
    n: int
    cell: Cell
    provisional: tuple[BoardSet, ...] = ()  # the sets whose rounds were still being judged

    def build_json(self) -> dict[str, Any]:
        """Return the side as JSON values, in percent."""
        return {
            "rounds": list(self.rounds),
            "n": self.n,
            "is_provisional": bool(self.provisional),
            **self.cell._asdict(),
        }


@dataclass(frozen=True)
class DatedModel:
    """A model with a training date, and its results before and after that date.

    others: the mean difference (before − after) of other models, in points. Neither side has rounds
    that were open on the date, nor rounds written against this model.
    """

    model: BoardModel
    trained_until: date
    before: Side
    after: Side
    difference: Cell  # before − after, in points
    others: float | None


def find_share_metric(matrix: Matrix) -> str | None:
    """Return the first metric that is a share of correct answers; None if the task has none."""
    return columns.find_share_metric(matrix.metrics)


def build_dated_models(matrix: Matrix, rounds: Sequence[Round]) -> list[DatedModel]:
    """Return the models of a board that state a training date, by name. One query."""
    metric = find_share_metric(matrix)
    if metric is None:
        return []
    days = _read_days(matrix.models)
    lines = []
    for board_index, model in enumerate(matrix.models):
        if model.id in days:
            lines.append(_build_dated_model(matrix, metric, board_index, days[model.id], rounds))
    return sorted(lines, key=lambda line: line.model.name)


def _read_days(models: Iterable[BoardModel]) -> Mapping[UUID, date]:
    """Return the training date of each model that states one."""
    submissions = Submission.objects.filter(pk__in=[model.id for model in models])
    days = {}
    for submission, day in submissions.values_list("pk", "trained_until"):
        if day is not None:
            days[submission] = day
    return days


def _build_dated_model(
    matrix: Matrix, metric: str, board_index: int, day: date, rounds: Sequence[Round]
) -> DatedModel:
    """Return a model's results on the rounds before and after its training date."""
    numbers, column = matrix.numbers, matrix.metrics.index(metric)
    numbers_before, numbers_after = _split_rounds(rounds, day)
    set_indices_before: list[int] = []
    set_indices_after: list[int] = []
    for set_index, board_set in enumerate(matrix.sets):
        is_measured = not np.isnan(numbers.values[board_index, set_index, column])
        if not is_measured or numbers.in_the_loop[board_index, set_index]:
            continue
        if board_set.round in numbers_before:
            set_indices_before.append(set_index)
        if board_set.round in numbers_after:
            set_indices_after.append(set_index)
    side_before = compute_side(matrix, board_index, column, set_indices_before)
    side_after = compute_side(matrix, board_index, column, set_indices_after)
    return DatedModel(
        model=matrix.models[board_index],
        trained_until=day,
        before=side_before,
        after=side_after,
        difference=subtract_cells(side_before.cell, side_after.cell),
        others=_compare_others(matrix, column, board_index, set_indices_before, set_indices_after),
    )


def _split_rounds(rounds: Sequence[Round], day: date) -> tuple[set[int], set[int]]:
    """Return the numbers of the rounds that closed by the date, and of those opened after it."""
    numbers_before, numbers_after = set(), set()
    for round in rounds:
        if round.closed_at and round.closed_at.date() <= day:
            numbers_before.add(round.number)
        if round.opened_at and round.opened_at.date() > day:
            numbers_after.add(round.number)
    return numbers_before, numbers_after


def compute_side(matrix: Matrix, board_index: int, column: int, set_indices: Sequence[int]) -> Side:
    """Return a model's share of correct answers on several sets together.

    board_index: the model's index. column: the metric's index. set_indices: the indices of the
    sets.
    """
    round_numbers: list[int] = []
    provisional_sets: list[BoardSet] = []
    n, correct_examples = 0, 0.0
    for set_index in set_indices:
        board_set = matrix.sets[set_index]
        # A set of rows that a release left out belongs to no round, but comes from one.
        if number := board_set.round or board_set.held_of:
            round_numbers.append(number)
        if board_set.is_provisional:
            provisional_sets.append(board_set)
        # If the number of examples was not stored, use that of the set.
        size = int(matrix.numbers.n[board_index, set_index, column]) or board_set.size
        n += size
        correct_examples += (
            float(matrix.numbers.values[board_index, set_index, column]) / 100 * size
        )
    if not n:
        return Side(tuple(round_numbers), 0, EMPTY_CELL)
    # Rounded shares may add up to a little more than all examples.
    low, high = compute_wilson_interval(min(correct_examples, n), n)
    cell = Cell(100 * correct_examples / n, 100 * low, 100 * high)
    return Side(tuple(round_numbers), n, cell, tuple(provisional_sets))


def _compare_others(
    matrix: Matrix,
    column: int,
    board_index: int,
    set_indices_before: Sequence[int],
    set_indices_after: Sequence[int],
) -> float | None:
    """Return the mean difference of the other models that were run on the same sets.

    None if there are none. The difference shows how much harder the later rounds are for all
    models.
    """
    if not (set_indices_before and set_indices_after):
        return None
    # A model that lacks one of the sets is left out of the mean.
    differences = _join_sets(matrix, column, set_indices_before) - _join_sets(
        matrix, column, set_indices_after
    )
    other_differences = np.delete(differences, board_index)
    other_differences = other_differences[~np.isnan(other_differences)]
    return float(other_differences.mean()) if other_differences.size else None


def _join_sets(matrix: Matrix, column: int, set_indices: Sequence[int]) -> Floats:
    """Return each model's share on several sets together, in percent; NaN if one is missing."""
    n = matrix.numbers.n[:, set_indices, column]
    sizes = np.where(n > 0, n, [matrix.sets[set_index].size for set_index in set_indices])
    correct_counts: Floats = (matrix.numbers.values[:, set_indices, column] * sizes).sum(axis=1)
    shares: Floats = correct_counts / sizes.sum(axis=1)
    return shares


def build_dated_body(matrix: Matrix, lines: Sequence[DatedModel]) -> dict[str, Any]:
    """Return the models' results before and after as JSON values, in percent and points."""
    return {
        "task": matrix.task,
        "metric": find_share_metric(matrix) or "",
        "models": list(_iter_json_lines(lines)),
    }


def _iter_json_lines(lines: Sequence[DatedModel]) -> Iterator[dict[str, Any]]:
    for line in lines:
        yield {
            "id": str(line.model.id),
            "model": line.model.name,
            "trained_until": line.trained_until.isoformat(),
            "before": line.before.build_json(),
            "after": line.after.build_json(),
            "difference": line.difference._asdict(),
            "others": line.others,
        }
