"""A board as one value in JSON: what snapshots freeze and what exports write."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils import timezone

from core.versions import version
from evaluation.scoring.metrics import METRICS
from leaderboard.board.cells import BoardScore, Cell
from leaderboard.board.exports import formula_of
from leaderboard.board.matrix import DRAWS, Matrix, score_matrix
from leaderboard.board.opening import opening_of
from leaderboard.board.query import Mode
from leaderboard.board.ranked import Ranked, RankedModel, rank_board
from leaderboard.board.scales import rule_of
from leaderboard.scoring.weights import Weighting
from tasks.config.schema import LLM_JUDGE
from tasks.models import Task

Table = Mapping[str, Any]
DIGITS = 4
"""After the point; so the same numbers give the same digest everywhere."""
CODE = (
    "leaderboard/**/*.py",
    "evaluation/scoring/metrics/*.py",
    "evaluation/scoring/bootstrap.py",
    "evaluation/scoring/mean_intervals.py",
    "evaluation/scoring/robustness.py",
    "validation/rules/rates.py",
)


def board_table(task: Task, matrix: Matrix, ranked: Ranked) -> dict[str, Any]:
    """Return all that is shown of a board and what it depends on. Only for public matrices."""
    table = {
        "task": {"code": task.code, "name": task.name},
        "date": timezone.now().date().isoformat(),
        "code": code_version(),
        "mode": ranked.mode,
        "main": matrix.main,
        "metrics": [_metric(matrix, name) for name in matrix.metrics],
        "weights": asdict(ranked.weighting),
        "rates": dict(ranked.rates.values),
        "budgets": dict(rule_of(matrix, ranked.weighting.metrics).budgets),
        "anchors": anchors_of(matrix, ranked),
        "pool": [*ranked.rates.pool],
        "resamples": DRAWS,
        "runner": matrix.numbers.runner,
        "sets": [
            {
                "name": one.name,
                "version": one.version,
                "sha256": one.sha256,
                "access": one.access,
                "examples": one.size,
                "date": one.date.isoformat(),
                "is_provisional": one.is_provisional,
                "judged": one.judged,
                "to_judge": one.to_judge,
                "min_examples": one.least,
                "counts": one.counts,
                "is_sealed": one.is_sealed,
                "overlap": None if one.overlap is None else round(one.overlap, DIGITS),
            }
            for one in matrix.sets
        ],
        "notices": [*ranked.notices],
        "rows": [_row(matrix, row) for row in ranked.rows],
    }
    return {**table, "formula": formula_of(table)}


def _metric(matrix: Matrix, name: str) -> dict[str, Any]:
    """Return a column: which version scored it, and what a reader must know with it."""
    if name == LLM_JUDGE and matrix.judge:
        return {"name": name, "version": matrix.judge.number, "judge": matrix.judge.told}
    if own := matrix.customs.get(name):
        return own.told
    known = METRICS.get(name)
    return {"name": name, "version": known.version_for(matrix.language) if known else 1}


def anchors_of(matrix: Matrix, ranked: Ranked) -> dict[str, Any] | None:
    """Return the values at which each metric's place is 0 and 1, and the versions of their pool.

    None for a board that is not anchored.
    """
    if not (ranked.anchors and matrix.pool):
        return None
    scales = {
        name: {"low": scale.low, "high": scale.high}
        for name, scale in ranked.anchors.scales.items()
    }
    return {"version": matrix.pool.version, "costs": matrix.pool.costs, "scales": scales}


def _row(matrix: Matrix, row: RankedModel) -> dict[str, Any]:
    return {
        "id": str(row.model.id),
        "model": row.model.name,
        "owner": row.model.owner,
        "team": row.model.team,
        "rank": row.rank,
        "first": row.first,
        "last": row.last,
        "dynascore": _cell(row.dynascore),
        "points": {name: round(value, DIGITS) for name, value in row.parts.items()},
        "metrics": {name: _cell(cell) for name, cell in row.metrics.items()},
        "sets": {
            one.name: {
                name: _cell(cell)
                for name in matrix.metrics
                if (cell := cell_of(matrix, row.place, place, name)).value is not None
            }
            for place, one in enumerate(matrix.sets)
        },
        "in_the_loop": [*row.in_the_loop],
        "missing": [*row.missing],
    }


def cell_of(matrix: Matrix, model: int, one: int, metric: str) -> Cell:
    """Return a metric of a model on one set, by their places in the matrix."""
    at = model, one, matrix.metrics.index(metric)
    found = (
        float(some[at]) for some in (matrix.numbers.values, matrix.numbers.low, matrix.numbers.high)
    )
    return Cell(*(None if number != number else number for number in found))


def _cell(cell: Cell | BoardScore) -> dict[str, float | None]:
    return {
        name: None if number is None else round(number, DIGITS) + 0.0  # PostgreSQL knows no -0.0
        for name, number in cell._asdict().items()
    }


def canonical_bytes(table: Table) -> bytes:
    """Return the bytes whose SHA-256 a snapshot keeps: sorted keys, no spaces, UTF-8."""
    return json.dumps(table, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def table_digest(table: Table) -> str:
    """Return the SHA-256 of the canonical bytes, in hex."""
    return hashlib.sha256(canonical_bytes(table)).hexdigest()


def public_table(
    task: Task, weighting: Weighting | None = None, mode: Mode | None = None
) -> dict[str, Any]:
    """Return the public board under some weights (default: those it opens with) as JSON values."""
    matrix = score_matrix(task)
    return board_table(
        task, matrix, rank_board(matrix, weighting or opening_of(task, matrix), mode)
    )


@lru_cache
def code_version() -> str:
    """Return the version of this installation with a digest of the files that make the numbers."""
    files = sorted(path for pattern in CODE for path in Path(settings.BASE_DIR).glob(pattern))
    found = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
    return f"{version()} ({found[:12]})"
