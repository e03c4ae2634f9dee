"""Previews of boards for lists of tasks: the first lines of each board, read in one query.

They are stored whenever a board changes (`leaderboard.board.first_models`), so that a list shows
the same numbers as the boards.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from core.charts import compute_value_range
from core.figures.rows import PERCENT_AXIS, RowAxis
from leaderboard.models import Board
from tasks.models import Task

MAX_SCORE = 100


class PreviewLine(NamedTuple):
    """A model's rank, and its Dynascore with an interval or as a range from least to most."""

    rank: str
    model: str
    value: float | None
    low: float | None
    high: float | None
    least: float | None
    most: float | None

    @property
    def is_tied(self) -> bool:
        """Return whether other models may have the rank as well."""
        return not self.rank.isdecimal()


@dataclass(frozen=True)
class BoardPreview:
    """The first models of a board, and when they last changed."""

    lines: list[PreviewLine]
    changed_at: datetime
    provisional: list[Mapping[str, Any]]  # sets behind the scores that were still being judged

    @property
    def rows(self) -> list[tuple[str, str, float | None]]:
        """Return rank, model and Dynascore of each line."""
        return [line[:3] for line in self.lines]

    @property
    def axis(self) -> RowAxis:
        """Return the axis of the scores: 0 to 100 on every card, so that cards can be compared."""
        # Only of the shown models; others are not on the card.
        interval_ends = []
        for line in self.lines:
            for end in (line.value, line.low, line.high, line.least, line.most):
                if end is not None:
                    interval_ends.append(end)
        # Scores by exchange rates may be outside it.
        if interval_ends and not (min(interval_ends) >= 0 and max(interval_ends) <= MAX_SCORE):
            return RowAxis(*compute_value_range(interval_ends), ticks=())
        return PERCENT_AXIS


def read_previews(tasks: Collection[Task]) -> Mapping[int, BoardPreview]:
    """Return the first models of each task's public board, by task id.

    Tasks without a ranked model are left out.
    """
    boards = [task for task in tasks if task.config.kind != "arena"]
    rows = Board.objects.filter(task__in=boards).exclude(first_models={})
    previews = {}
    for task, stored in rows.values_list("task", "first_models"):
        if not stored["rows"]:
            continue
        lines = [PreviewLine(**row) for row in stored["rows"]]
        changed_at = datetime.fromisoformat(stored["changed_at"])
        previews[task] = BoardPreview(lines, changed_at, stored["provisional"])
    return previews
