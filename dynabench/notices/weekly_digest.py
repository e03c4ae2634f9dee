"""The contents of the summary on Mondays: a person's week, and news from their tasks."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.models import Example
from core.accounts.models import Annotator
from dynabench.catches.selectors import CatchLine, select_own_catches, select_public_catches
from dynabench.catches.services import show_catches
from tasks.budgets import list_public_limits
from tasks.models import Round, Task
from tasks.permissions import can_see
from tasks.questions import get_used_budget
from validation.decisions.counted import build_try_condition
from validation.models import Consensus, Validation

WEEK = timedelta(days=7)
OWN_TASK_TIME = timedelta(days=28)
"""How recently a person must have written in a task for it to be one of theirs."""
MAX_TASKS = 3


@dataclass(frozen=True)
class RoundProgress:
    """An open round of a task in which the person writes.

    used_share: the used share (0-1) of its budget, apart from money; None if it has no other limit.
    """

    task: Task
    number: int
    used_share: float | None


@dataclass(frozen=True)
class PeerCatch:
    """A public catch by somebody else."""

    task: Task
    line: CatchLine


@dataclass(frozen=True)
class WeekSummary:
    """A person's past week, without work in sensitive tasks.

    tries, judged: the numbers of tries and judgements in that week. catches: the number of catches
    confirmed in it. waiting: how many of its tries fooled a model and are not decided yet. task: a
    task with an open round, or None.
    """

    tries: int
    judged: int
    catches: int
    waiting: int
    rounds: Sequence[RoundProgress]
    peer_catch: PeerCatch | None
    task: Task | None

    @property
    def headline(self) -> str:
        """Return the week as one line."""
        tries = ngettext("%(n)d try", "%(n)d tries", self.tries) % {"n": self.tries}
        values = {"tries": tries, "catches": self._catch_words, "waiting": self.waiting}
        if self.waiting:
            return _("Your week: %(tries)s, %(catches)s (%(waiting)d waiting)") % values
        return _("Your week: %(tries)s, %(catches)s") % values

    @property
    def _catch_words(self) -> str:
        return ngettext("%(n)d catch", "%(n)d catches", self.catches) % {"n": self.catches}


def summarise_week(annotator: Annotator, monday: datetime) -> WeekSummary | None:
    """Return the person's week before this Monday; None if they did nothing.

    About ten queries, whatever the person did.
    """
    tasks = _list_own_tasks(annotator, monday)
    # The week before, whole: a mail that is sent late says the same.
    in_week = Q(created_at__gte=monday - WEEK, created_at__lt=monday)
    own_tries = _select_tries(annotator, tasks).filter(in_week)
    # An example that nobody has judged yet has no consensus.
    is_undecided = Q(consensus=None) | Q(consensus__state=Consensus.State.UNDECIDED)
    is_waiting = Q(outcome=Example.Outcome.FOOLED) & is_undecided
    numbers = own_tries.aggregate(tries=Count("pk"), waiting=Count("pk", filter=is_waiting))
    votes = Validation.objects.filter(
        in_week, validator=annotator, by_program=False, is_imported=False
    )
    judged = votes.count()
    if not numbers["tries"] and not judged:
        return None
    catches = select_own_catches(annotator).filter(
        round__task__in=tasks,
        consensus__decided_at__gte=monday - WEEK,
        consensus__decided_at__lt=monday,
    )
    rounds = _list_progress(tasks)
    return WeekSummary(
        tries=numbers["tries"],
        judged=judged,
        catches=catches.count(),
        waiting=numbers["waiting"],
        rounds=rounds,
        peer_catch=_find_peer_catch(annotator, tasks),
        task=rounds[0].task if rounds else None,
    )


def _list_own_tasks(annotator: Annotator, monday: datetime) -> list[Task]:
    """Return the tasks in which the person wrote within OWN_TASK_TIME, the most active ones first.

    Leaves out sensitive tasks, and tasks that the person may not see any more.
    """
    recent_tries = Example.objects.filter(
        build_try_condition(),
        annotator=annotator,
        created_at__gte=monday - OWN_TASK_TIME,
        created_at__lt=monday,
    )
    counts = recent_tries.order_by().values_list("round__task").annotate(tries=Count("pk"))
    task_ids = [task for task, _tries in sorted(counts, key=lambda row: (-row[1], row[0]))]
    tasks_by_id = Task.objects.in_bulk(task_ids)
    tasks = [tasks_by_id[pk] for pk in task_ids if not tasks_by_id[pk].is_sensitive]
    assert annotator.user
    return [task for task in tasks if can_see(annotator.user, task)]


def _select_tries(annotator: Annotator, tasks: Sequence[Task]) -> QuerySet[Any]:
    return Example.objects.filter(build_try_condition(), annotator=annotator, round__task__in=tasks)


def _list_progress(tasks: Sequence[Task]) -> list[RoundProgress]:
    """Return the progress of the open rounds in the first MAX_TASKS tasks, in the tasks' order."""
    open_rounds = Round.objects.filter(task__in=tasks[:MAX_TASKS], state=Round.State.OPEN)
    rounds_by_task = {round.task_id: round for round in open_rounds}
    progress = []
    for task in tasks[:MAX_TASKS]:
        round = rounds_by_task.get(task.pk)
        if round is None:
            continue
        shares = [
            line.used / line.limit
            for line in list_public_limits(round.budget, get_used_budget(round))
            if line.limit
        ]
        used_share = None
        if shares:
            # Rounded down, so that only a full round is 100% full.
            used_share = min(100, int(100 * max(shares))) / 100
        progress.append(RoundProgress(task, round.number, used_share))
    return progress


def _find_peer_catch(annotator: Annotator, tasks: Sequence[Task]) -> PeerCatch | None:
    """Return the newest public catch by somebody else in the first task that has one, or None.

    Only looks at the first MAX_TASKS tasks.
    """
    assert annotator.user
    # One task after another: mostly the first one has a catch.
    for task in tasks[:MAX_TASKS]:
        newest_catches = select_public_catches(task).exclude(annotator=annotator)[:1]
        for line in show_catches(annotator.user, task, newest_catches):
            return PeerCatch(task, line)
    return None
