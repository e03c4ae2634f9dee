"""The first models of a board, for a task's page, other sites and lists of tasks.

It loads numpy (see `leaderboard.board.matrix`).
"""

import hashlib
from typing import Any

from core.days import get_today
from core.figures.rows import draw_axis
from core.versions import get_version
from evaluation.judges.llm_judges.selectors import find_metric_judge
from evaluation.runs.selectors import find_accepted_models
from evaluation.submissions.selectors import build_public_condition
from leaderboard.board.figures import build_score_axis, format_cell
from leaderboard.board.matrix import Matrix, read_matrix
from leaderboard.board.opening import choose_opening_weights
from leaderboard.board.ranked import RankedBoard, rank_board
from leaderboard.board.sets import list_shown_sets
from leaderboard.models import Board
from tasks.models import Task

FIRST_MODELS = 5
"""The number of models on a task's page."""
LISTED_MODELS = 3
"""The number of models that are stored for lists of tasks."""


def rank_first_models(task: Task) -> dict[str, Any]:
    """Return the public board's first models with the owner's weights, as template values.

    top: their rows with formatted score and interval, without models that have no results.
    provisional: the sets behind the scores whose rounds are still being judged. axis: the axis of
    the scores, as on the board. axis_plot: its drawing.
    """
    matrix, board = _rank_public_board(task)
    rows = [row for row in board.rows if row.rank]
    lines = [(row, *format_cell("dynascore", row.dynascore)) for row in rows[:FIRST_MODELS]]
    axis = build_score_axis(board)
    return {
        "top": lines,
        "provisional": matrix.provisional_sets,
        "axis": axis,
        "axis_plot": draw_axis(axis),
    }


def build_listed_models(task: Task) -> dict[str, Any]:
    """Return the public board's first models, as lists of tasks show them, as JSON values."""
    matrix, board = _rank_public_board(task)
    rows: list[dict[str, Any]] = []
    for row in board.rows:
        if row.rank and len(rows) < LISTED_MODELS:
            score = row.dynascore
            ends = {"low": score.low, "high": score.high, "least": score.least, "most": score.most}
            rows.append(
                {"rank": row.open_rank, "model": row.model.name, "value": score.value, **ends}
            )
    return {"rows": rows, "provisional": _describe_provisional_sets(matrix)}


def _rank_public_board(task: Task) -> tuple[Matrix, RankedBoard]:
    matrix = read_matrix(task)
    return matrix, rank_board(matrix, choose_opening_weights(task, matrix))


def _describe_provisional_sets(matrix: Matrix) -> list[dict[str, Any]]:
    sets: list[dict[str, Any]] = []
    for each in matrix.provisional_sets:
        sets.append(
            {
                "name": each.name,
                "version": each.version,
                "is_provisional": True,
                "judged": each.judged,
                "to_judge": each.to_judge,
            }
        )
    return sets


def compute_board_state(task: Task, board: Board) -> str:
    """Return a digest of everything that the public board depends on. Reads no numbers.

    Equal digests mean equal boards. At most four queries.
    """
    public_models = find_accepted_models(task).filter(build_public_condition())
    models = list(
        public_models.order_by("pk").values_list("pk", "name", "anonymous_until", "team", "owner")
    )
    sets = list_shown_sets(task)
    judge = find_metric_judge(task)
    parts = (
        # Models stop being anonymous on a day, and another release may compute scores differently.
        get_today(),
        get_version(),
        task.config_text,
        models,
        sets,
        # It changes with the end of each run.
        board.renewed_to,
        board.frozen_at,
        board.anchor_costs,
        (judge.pk, judge.newest) if judge else None,
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()
