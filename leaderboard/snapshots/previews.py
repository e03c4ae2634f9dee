"""The first lines of boards, for lists of tasks: of their last snapshots, in one query."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import F, Max

from core.charts import Place, reach
from leaderboard.board.exports import provisional_of
from leaderboard.models import Snapshot
from tasks.models import Task

SHOWN = 3


class PreviewLine(NamedTuple):
    """A model's rank, and its Dynascore with the ends of its interval, or from least to most."""

    rank: str
    model: str
    value: float | None
    low: float | None
    high: float | None
    least: float | None
    most: float | None


@dataclass(frozen=True)
class Top:
    """The first models of a board, and of when it is."""

    lines: list[PreviewLine]
    made_at: datetime
    provisional: list[Mapping[str, Any]]  # the sets behind the scores that were still judged

    @property
    def rows(self) -> list[tuple[str, str, float | None]]:
        """Rank, model and Dynascore."""
        return [line[:3] for line in self.lines]

    @property
    def scale(self) -> Place:
        """Return the least and the greatest end of the intervals."""
        return reach(end for line in self.lines for end in line[2:] if end is not None)


def tops_of(tasks: Collection[Task]) -> Mapping[int, Top]:
    """Return the first models by the task's id; tasks without a snapshot are left out.

    A snapshot has at least one score.
    """
    lines = [f"table__rows__{number}" for number in range(SHOWN)]
    boards = [task for task in tasks if task.config.kind != "arena"]
    last = (
        Snapshot.objects.filter(task__in=boards)
        .annotate(last=Max("task__snapshots__number"))
        .filter(number=F("last"))
        .order_by()
    )
    return {
        task: Top(
            [_line(row) for row in rows if row and row["rank"]], made_at, provisional_of(sets)
        )
        for task, made_at, sets, *rows in last.values_list("task", "made_at", "table__sets", *lines)
    }


def _line(row: Mapping[str, Any]) -> PreviewLine:
    score = row["dynascore"]
    numbers = (score.get(part) for part in PreviewLine._fields[2:])
    return PreviewLine(row["rank"], row["model"], *numbers)
