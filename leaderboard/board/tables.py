"""A board as one JSON value, which snapshots store and exports write."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from core.versions import get_version
from evaluation.models import WholeRoundScore
from evaluation.runs.whole_rounds import find_whole_round_scores
from evaluation.scoring.metrics import METRICS
from leaderboard.board.cells import BoardScore, Cell
from leaderboard.board.exports import describe_table_formula
from leaderboard.board.matrix import DRAW_COUNT, Matrix, read_matrix
from leaderboard.board.opening import choose_opening_weights
from leaderboard.board.query import Mode
from leaderboard.board.ranked import RankedBoard, RankedModel, rank_board
from leaderboard.board.scales import build_rule
from leaderboard.board.sets import BoardSet
from leaderboard.ranking.weights import Weighting
from tasks.config.schema import LLM_JUDGE
from tasks.models import Task

Table = Mapping[str, Any]
DIGITS = 4
"""Digits after the point, so that the same numbers give the same digest everywhere."""
CODE_PATTERNS = (
    "leaderboard/**/*.py",
    "evaluation/scoring/metrics/*.py",
    "evaluation/scoring/bootstrap.py",
    "evaluation/scoring/mean_intervals.py",
    "evaluation/scoring/robustness.py",
    "validation/rates/rates.py",
)
"""Patterns of the files that compute the numbers of a board."""


def build_board_table(task: Task, matrix: Matrix, board: RankedBoard) -> dict[str, Any]:
    """Return everything that a board shows or depends on. Only for public matrices."""
    whole_rounds = find_whole_round_scores(
        [each.version_id for each in matrix.sets if each.is_whole_round and not each.is_sealed]
    )
    table = {
        "task": {"code": task.code, "name": task.name},
        "date": timezone.now().date().isoformat(),
        "code": compute_code_version(),
        "mode": board.mode,
        "main": matrix.main,
        "metrics": [_build_metric(matrix, name) for name in matrix.metrics],
        "weights": asdict(board.weighting),
        "rates": dict(board.rates.values),
        "budgets": dict(build_rule(matrix, board.weighting.metrics).budgets),
        "anchors": describe_anchors(matrix, board),
        "pool": list(board.rates.pool),
        "resamples": DRAW_COUNT,
        "runner": matrix.numbers.runner,
        "sets": [_build_set(each) for each in matrix.sets],
        "notices": list(board.notices),
        "rows": [_build_row(matrix, row, whole_rounds) for row in board.rows],
    }
    return {**table, "formula": describe_table_formula(table)}


def _build_set(board_set: BoardSet) -> dict[str, Any]:
    overlap = board_set.overlap
    return {
        "name": board_set.name,
        "version": board_set.version,
        "sha256": board_set.sha256,
        "access": board_set.access,
        "examples": board_set.size,
        "date": board_set.date.isoformat(),
        "is_provisional": board_set.is_provisional,
        "judged": board_set.judged,
        "to_judge": board_set.to_judge,
        "left_out": board_set.left_out,
        "min_examples": board_set.min_examples,
        "counts": board_set.counts,
        "is_sealed": board_set.is_sealed,
        "overlap": None if overlap is None else round(overlap, DIGITS),
    }


def _build_metric(matrix: Matrix, name: str) -> dict[str, Any]:
    """Return a metric's name, version and direction; for an LLM judge, also its agreement."""
    if custom := matrix.customs.get(name):
        return custom.public_fields
    column = {"name": name, "version": 1, "higher_is_better": name not in matrix.less_is_better}
    if name == LLM_JUDGE and matrix.judge:
        return {**column, "version": matrix.judge.number, "judge": matrix.judge.public_fields}
    if name in METRICS:  # speed and memory are not metrics of answers
        column["version"] = METRICS[name].get_version_for(matrix.language)
    return column


def describe_anchors(matrix: Matrix, board: RankedBoard) -> dict[str, Any] | None:
    """Return each metric's values at positions 0 and 1, and the versions of their pool.

    None for a board that is not anchored.
    """
    if not (board.anchors and matrix.pool):
        return None
    scales = {}
    for name, scale in board.anchors.scales.items():
        scales[name] = {"low": scale.low, "high": scale.high}
    return {"version": matrix.pool.version, "costs": matrix.pool.cost_version, "scales": scales}


def _build_row(
    matrix: Matrix, row: RankedModel, whole_rounds: Mapping[tuple[UUID, int], WholeRoundScore]
) -> dict[str, Any]:
    estimates = {}
    for each in matrix.sets:
        score = whole_rounds.get((row.model.id, each.version_id))
        if score is not None and score.value is not None:
            shares = (score.value, score.low, score.high)
            percentages = [None if share is None else 100 * share for share in shares]
            estimates[each.name] = _build_cell(Cell(*percentages))
    return {
        "id": str(row.model.id),
        "model": row.model.name,
        "owner": row.model.owner,
        "team": row.model.team,
        "rank": row.rank,
        "first": row.first,
        "last": row.last,
        "dynascore": _build_cell(row.dynascore),
        "points": {name: round(value, DIGITS) for name, value in row.points_by_metric.items()},
        "metrics": {name: _build_cell(cell) for name, cell in row.metrics.items()},
        "sets": _group_cells_by_set(matrix, row),
        "whole_rounds": estimates,
        "in_the_loop": list(row.in_the_loop),
        "missing": list(row.missing),
    }


def _group_cells_by_set(matrix: Matrix, row: RankedModel) -> dict[str, dict[str, Any]]:
    """Return a model's measured metrics on each set."""
    cells_by_set: dict[str, dict[str, Any]] = {}
    for set_index, each in enumerate(matrix.sets):
        cells = cells_by_set[each.name] = {}
        for name in matrix.metrics:
            cell = read_cell(matrix, row.model_index, set_index, name)
            if cell.value is not None:
                cells[name] = _build_cell(cell)
    return cells_by_set


def read_cell(matrix: Matrix, model: int, set_index: int, metric: str) -> Cell:
    """Return a model's metric on one set, by the indices of both in the matrix."""
    index = model, set_index, matrix.metrics.index(metric)
    numbers = matrix.numbers
    value, low, high = numbers.values[index], numbers.low[index], numbers.high[index]
    return Cell(_replace_nan(value), _replace_nan(low), _replace_nan(high))


def _replace_nan(number: float) -> float | None:
    return None if number != number else float(number)


def _build_cell(cell: Cell | BoardScore) -> dict[str, float | None]:
    rounded_cell: dict[str, float | None] = {}
    for name, number in cell._asdict().items():
        rounded_cell[name] = None
        if number is not None:
            rounded_cell[name] = round(number, DIGITS) + 0.0  # PostgreSQL has no -0.0
    return rounded_cell


def encode_canonically(table: Table) -> bytes:
    """Return the bytes that a snapshot's SHA-256 covers: sorted keys, no spaces, UTF-8."""
    return json.dumps(table, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def compute_table_digest(table: Table) -> str:
    """Return the SHA-256 of the canonical bytes, in hex."""
    return hashlib.sha256(encode_canonically(table)).hexdigest()


def build_public_table(
    task: Task, weighting: Weighting | None = None, mode: Mode | None = None
) -> dict[str, Any]:
    """Return the public board as JSON values. weighting: by default the opening weights."""
    matrix = read_matrix(task)
    weights = weighting or choose_opening_weights(task, matrix)
    return build_board_table(task, matrix, rank_board(matrix, weights, mode))


@lru_cache
def compute_code_version() -> str:
    """Return the installed version, with a digest of the files that compute the numbers."""
    files: list[Path] = []
    for pattern in CODE_PATTERNS:
        files += Path(settings.BASE_DIR).glob(pattern)
    # In a fixed order, because digests are compared between machines.
    content = b"".join(path.read_bytes() for path in sorted(files))
    return f"{get_version()} ({hashlib.sha256(content).hexdigest()[:12]})"
