"""The first lines of boards, for lists of tasks: of their last snapshots, in one query."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import F, Max

from core.charts import Place, reach
from leaderboard.board.exports import select_provisional_sets
from leaderboard.models import Snapshot
from tasks.models import Task

SHOWN_MODELS = 3


class PreviewLine(NamedTuple):
    """A model's rank, and its Dynascore with an interval or as a range from least to most."""

    rank: str
    model: str
    value: float | None
    low: float | None
    high: float | None
    least: float | None
    most: float | None


@dataclass(frozen=True)
class BoardPreview:
    """The first models of a board, and the time of its snapshot."""

    lines: list[PreviewLine]
    made_at: datetime
    provisional: list[Mapping[str, Any]]  # the sets behind the scores that were still judged

    @property
    def rows(self) -> list[tuple[str, str, float | None]]:
        """Return rank, model and Dynascore of each line."""
        return [line[:3] for line in self.lines]

    @property
    def scale(self) -> Place:
        """Return the lowest and the highest end of the intervals."""
        interval_ends = []
        for line in self.lines:
            for end in (line.value, line.low, line.high, line.least, line.most):
                if end is not None:
                    interval_ends.append(end)
        return reach(interval_ends)


def read_previews(tasks: Collection[Task]) -> Mapping[int, BoardPreview]:
    """Return the first models of each task's newest snapshot, by task id.

    Tasks without a snapshot are left out. A snapshot has at least one score.
    """
    # Only the first rows are read, because tables are large.
    columns = [f"table__rows__{number}" for number in range(SHOWN_MODELS)]
    boards = [task for task in tasks if task.config.kind != "arena"]
    newest_snapshots = (
        Snapshot.objects.filter(task__in=boards)
        .annotate(last=Max("task__snapshots__number"))
        .filter(number=F("last"))
        # Without the usual order, which a mapping does not need.
        .order_by()
    )
    tops = {}
    for task, made_at, sets, *rows in newest_snapshots.values_list(
        "task", "made_at", "table__sets", *columns
    ):
        lines = [_build_line(row) for row in rows if row and row["rank"]]
        tops[task] = BoardPreview(lines, made_at, select_provisional_sets(sets))
    return tops


def _build_line(row: Mapping[str, Any]) -> PreviewLine:
    score = row["dynascore"]
    return PreviewLine(
        rank=row["rank"],
        model=row["model"],
        value=score.get("value"),
        low=score.get("low"),
        high=score.get("high"),
        least=score.get("least"),
        most=score.get("most"),
    )
