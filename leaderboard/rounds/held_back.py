"""A model's accuracy on a release's held-back rows, beside the published rows of these rounds.

It loads numpy (see `leaderboard.board.matrix`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.files.tables import build_csv_text
from evaluation.runs.leak_trials import ShownTrial, find_shown_trials, iterate_csv_rows
from leaderboard.board.cells import Cell
from leaderboard.board.matrix import BoardModel, Matrix
from leaderboard.board.sets import BoardSet
from leaderboard.rounds import training_dates
from leaderboard.rounds.matrix import subtract_cells
from leaderboard.rounds.training_dates import Side, compute_side, find_share_metric
from tasks.models import Round


@dataclass(frozen=True)
class HeldBackLine:
    """A model's results on published and held-back rows, without rounds written against it."""

    model: BoardModel
    released: Side
    held: Side
    difference: Cell  # released − held, in points


def list_provisional_sets(lines: Sequence[HeldBackLine]) -> list[BoardSet]:
    """Return each set behind these lines whose round was still being judged, once."""
    sets_by_version: dict[int, BoardSet] = {}
    for line in lines:
        for board_set in (*line.released.provisional, *line.held.provisional):
            sets_by_version[board_set.version_id] = board_set
    return list(sets_by_version.values())


def build_held_back_lines(matrix: Matrix) -> list[HeldBackLine]:
    """Return the models that were run on released and on held-back rows of a round, by name."""
    metric = find_share_metric(matrix)
    pairs = _find_set_pairs(matrix)
    if metric is None or not pairs:
        return []
    column = matrix.metrics.index(metric)
    lines = []
    for set_index, model in enumerate(matrix.models):
        released_sets, held_sets = [], []
        for released_set, held_set in pairs:
            # Both sides must be measured, or the rounds on them would differ.
            if _is_counted(matrix, set_index, released_set, column) and _is_counted(
                matrix, set_index, held_set, column
            ):
                released_sets.append(released_set)
                held_sets.append(held_set)
        if released_sets:
            released_side = compute_side(matrix, set_index, column, released_sets)
            held_side = compute_side(matrix, set_index, column, held_sets)
            lines.append(
                HeldBackLine(
                    model,
                    released_side,
                    held_side,
                    subtract_cells(released_side.cell, held_side.cell),
                )
            )
    return sorted(lines, key=lambda line: line.model.name)


def _find_set_pairs(matrix: Matrix) -> list[tuple[int, int]]:
    """Return the indices of the released and the held-back set, for each round with both."""
    released_indices, held_indices = {}, {}
    for set_index, board_set in enumerate(matrix.sets):
        if board_set.round:
            released_indices[board_set.round] = set_index
        if board_set.held_of:
            held_indices[board_set.held_of] = set_index
    return [
        (released_indices[number], held_indices[number])
        for number in released_indices
        if number in held_indices
    ]


def _is_counted(matrix: Matrix, model: int, set_index: int, column: int) -> bool:
    """Return whether a model was measured on a set that was not written against that model."""
    is_measured = not np.isnan(matrix.numbers.values[model, set_index, column])
    return is_measured and not matrix.numbers.in_the_loop[model, set_index]


def build_training_dates_body(matrix: Matrix, rounds: Sequence[Round]) -> dict[str, Any]:
    """Return the results by training date and on held-back rows, in percent, as JSON values."""
    dated_body = training_dates.build_dated_body(
        matrix, training_dates.build_dated_models(matrix, rounds)
    )
    lines = list(_iter_json_lines(build_held_back_lines(matrix)))
    trials = [{"model": name, **shown.build_json()} for name, shown in find_named_trials(matrix)]
    return {**dated_body, "held_back": lines, "leak_trials": trials}


def find_named_trials(matrix: Matrix) -> list[tuple[str, ShownTrial]]:
    """Return the trials of leaks of a board's models with their names, by name and round.

    They are listed together, so their p-values are corrected together. One query.
    """
    names = {model.id: model.name for model in matrix.models}
    trials = [(names[shown.trial.submission_id], shown) for shown in find_shown_trials(list(names))]
    return sorted(trials, key=lambda pair: (pair[0], pair[1].trial.round.number))


def write_trials_csv(trials: Sequence[tuple[str, ShownTrial]]) -> str:
    """Return CSV with a row for each trial, in points."""
    return build_csv_text(list(iterate_csv_rows(trials)))


def _iter_json_lines(lines: Sequence[HeldBackLine]) -> Iterator[Mapping[str, Any]]:
    for line in lines:
        yield {
            "id": str(line.model.id),
            "model": line.model.name,
            "released": line.released.build_json(),
            "held": line.held.build_json(),
            "difference": line.difference._asdict(),
        }
