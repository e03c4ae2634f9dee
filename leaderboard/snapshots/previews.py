"""The first lines of boards, for lists of tasks: of their last snapshots, in one query."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F, Max

from leaderboard.models import Snapshot
from tasks.models import Task

SHOWN = 3


@dataclass(frozen=True)
class Top:
    """The first models of a board with rank and Dynascore, and of when it is."""

    rows: list[tuple[str, str, float | None]]
    made_at: datetime


def tops_of(tasks: Collection[Task]) -> Mapping[int, Top]:
    """By the task's id; tasks without a snapshot are missing. A snapshot holds a score at least."""
    lines = [f"table__rows__{number}" for number in range(SHOWN)]
    last = (
        Snapshot.objects.filter(task__in=tasks)
        .annotate(last=Max("task__snapshots__number"))
        .filter(number=F("last"))
        .order_by()
    )
    return {
        task: Top([_line(row) for row in rows if row and row["rank"]], made_at)
        for task, made_at, *rows in last.values_list("task", "made_at", *lines)
    }


def _line(row: Mapping[str, Any]) -> tuple[str, str, float | None]:
    return row["rank"], row["model"], row["dynascore"]["value"]
