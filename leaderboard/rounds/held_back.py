"""A model's accuracy on what a release holds back, beside what the same rounds published.

It loads numpy (see `leaderboard.board.matrix`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leaderboard.board.cells import Cell
from leaderboard.board.matrix import Matrix, Model
from leaderboard.rounds import training_dates
from leaderboard.rounds.matrix import minus
from leaderboard.rounds.training_dates import Side, metric_of, side_of
from tasks.models import Round


@dataclass(frozen=True)
class HeldBackLine:
    """A model on both sides of the same rounds; without those written against this very model."""

    model: Model
    released: Side
    held: Side
    difference: Cell  # released − held, in points


def held_back_lines(matrix: Matrix) -> list[HeldBackLine]:
    """Return the models that were run on released and on held back rows of a round, by name."""
    metric = metric_of(matrix)
    pairs = _pairs(matrix)
    if metric is None or not pairs:
        return []
    column = matrix.metrics.index(metric)
    found = []
    for place, model in enumerate(matrix.models):
        known = [pair for pair in pairs if all(_counts(matrix, place, at, column) for at in pair)]
        if known:
            groups = zip(*known, strict=True)
            released, held = (side_of(matrix, place, column, group) for group in groups)
            found.append(HeldBackLine(model, released, held, minus(released.cell, held.cell)))
    return sorted(found, key=lambda line: line.model.name)


def _pairs(matrix: Matrix) -> list[tuple[int, int]]:
    """Return the places of both sets of each round that has its set and one that is held back."""
    released = {one.round: at for at, one in enumerate(matrix.sets) if one.round}
    held = {one.held_of: at for at, one in enumerate(matrix.sets) if one.held_of}
    return [(released[number], held[number]) for number in released if number in held]


def _counts(matrix: Matrix, place: int, at: int, column: int) -> bool:
    value = matrix.numbers.values[place, at, column]
    return bool(value == value) and not matrix.numbers.in_the_loop[place, at]


def training_dates_body(matrix: Matrix, rounds: Sequence[Round]) -> dict[str, Any]:
    """Return training dates and what is held back for programs, in percent and points."""
    dated = training_dates.dated_body(matrix, training_dates.dated_models(matrix, rounds))
    return {**dated, "held_back": [*_json_lines(held_back_lines(matrix))]}


def _json_lines(lines: Sequence[HeldBackLine]) -> Iterator[Mapping[str, Any]]:
    for line in lines:
        yield {
            "id": str(line.model.id),
            "model": line.model.name,
            "released": line.released.as_json(),
            "held": line.held.as_json(),
            "difference": line.difference._asdict(),
        }
