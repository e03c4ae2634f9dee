"""A person's catches that still fool the model trained on the previous round.

They are read from the reports of training runs, which ask the new model about held-out rows.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from annotation.models import Example
from core.accounts.models import Annotator
from evaluation.models import TrainingRun
from tasks.models import Round, Task
from tasks.permissions import cache_roles, can_see

MIN_CATCHES = 5
"""The minimum number of a round's catches for a percentage."""
LIVE_STATES = (Round.State.OPEN, Round.State.PAUSED)


@dataclass(frozen=True)
class StandingCatches:
    """How the model of an open round answers the catches of an earlier round.

    round: the number of the open round. share: the share (0-1) of the catches of `earlier_round`
    that the model gets right. own_count: how many of the person's catches still fool it.
    """

    task: Task
    round: int
    earlier_round: int
    share: float
    own_count: int


def find_standing_catches(annotator: Annotator, tasks: Iterable[Task]) -> list[StandingCatches]:
    """Return the standing catches of the tasks where a catch of the person still fools the model.

    tasks: the tasks in which the person wrote. Sensitive ones are left out, and those that the
    person may not see any more. Three queries, and a fourth if a role was given to an address.
    """
    if annotator.user is None:
        return []
    non_sensitive_tasks = [task for task in tasks if not task.is_sensitive]
    cache_roles(annotator.user, non_sensitive_tasks)
    visible_tasks = {task.pk: task for task in non_sensitive_tasks if can_see(annotator.user, task)}
    runs = TrainingRun.objects.filter(
        task__in=visible_tasks,
        state=TrainingRun.State.DONE,
        target__rounds__state__in=LIVE_STATES,
    )
    # Only a part of the report, which may be long.
    report_rows = list(runs.values_list("task", "target__rounds__number", "report__standing"))
    newest_rounds = [
        (task, number, _find_newest_round(counts_by_source))
        for task, number, counts_by_source in report_rows
    ]
    standing_ids = {
        example_id
        for _task, _number, latest in newest_rounds
        if latest
        for example_id in latest[1]["standing"]
    }
    own_ids = _filter_own_ids(annotator, standing_ids)
    standing_catches = []
    for task, number, latest in newest_rounds:
        if latest is None or latest[0] >= number or latest[1]["catches"] < MIN_CATCHES:
            continue
        earlier_round, counts = latest
        # Of a few catches a share would say nothing, and of nobody's own it is no news.
        own_count = len(own_ids.intersection(counts["standing"]))
        if own_count:
            right = counts["catches"] - len(counts["standing"])
            share = right / counts["catches"]
            standing_catches.append(
                StandingCatches(visible_tasks[task], number, earlier_round, share, own_count)
            )
    return standing_catches


def _find_newest_round(
    counts_by_source: Mapping[str, Any] | None,
) -> tuple[int, Mapping[str, Any]] | None:
    """Return (number, counts) of the newest round with catches; None if there is none.

    counts_by_source: the counts by source name, such as `round3`; None in older reports.
    """
    numbered_counts = []
    for name, counts in (counts_by_source or {}).items():
        # Other sources, such as uploaded rows, were written by nobody here.
        number = name.removeprefix("round")
        if number.isdecimal() and counts["catches"]:
            numbered_counts.append((int(number), counts))
    return max(numbered_counts, key=lambda row: row[0], default=None)


def _filter_own_ids(annotator: Annotator, ids: Iterable[str]) -> set[str]:
    """Return the ids that belong to examples of the person that were not retracted.

    ids: the ids in a release. Those of imported history, which are not UUIDs, are ignored.
    """
    uuids = []
    for example_id in ids:
        try:
            uuids.append(UUID(example_id))
        except ValueError:
            continue  # of imported history, which has ids of its own
    own_examples = Example.objects.filter(annotator=annotator, uuid__in=uuids, retracted_at=None)
    return {str(uuid) for uuid in own_examples.values_list("uuid", flat=True)}
