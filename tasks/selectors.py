"""Reads about tasks."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Prefetch, Q, QuerySet, Sum
from django.utils import timezone

from core.accounts.models import User
from core.data.prepared import PreparedRead, Slot
from tasks.budgets import Used
from tasks.models import Round, RoundTarget, Task, TaskMember
from tasks.permissions import EDITORS, Person

WRITING_TIME = timedelta(minutes=15)
PLANNED = (Round.State.DRAFT, Round.State.READY)


def writers(round: Round, at: datetime, since: datetime | None = None) -> QuerySet[Any]:
    """Return the assignments on which somebody was writing at that time, one for each person.

    They are current, and were assigned, saved or sent within the 15 minutes before, and after
    `since` where it is given. A person who has seen a verdict and typed nothing since has finished.
    """
    since = max(at - WRITING_TIME, since or at - WRITING_TIME)
    lately = Q(assigned_at__gte=since) | Q(attempt__asked_at__gte=since)
    unfinished = ~Q(attempt__state="done") | Q(conversation__isnull=False)
    active = (
        Q(draft_saved_at__gte=since)
        | Q(attempt__asked_at__gte=since, attempt__state="asking")
        | lately & unfinished
    )
    return round.assignment_set.filter(active, left_at__isnull=True).distinct()


def grace_end(round: Round, now: datetime) -> datetime | None:
    """Return until when people may finish writing if the round closes now; None if nobody writes.

    A round that was opened again gives those who have not written since no more time than the
    earlier closing gave them. Two queries at most.
    """
    if writers(round, now, since=round.closed_at).exists():
        return now + WRITING_TIME
    if round.closed_at is not None and writers(round, now).exists():
        return round.closed_at + WRITING_TIME
    return None


def still_writing(round: Round) -> int:
    """Return how many people may still finish what they were writing when the round closed.

    No query unless it has closed within the last minutes.
    """
    if not round.is_being_written:
        return 0
    at = round.closed_at or timezone.now()
    return writers(round, at).count()


def used(round: Round) -> Used:
    """Return what the round has used of its budget. Counts nothing that has no limit.

    What programs write uses up nothing; votes on it do.
    """
    budget = round.budget
    if (budget.collected, budget.fooling, budget.money) == (None, None, None):
        return Used()
    counted = round.examples.filter(retracted_at__isnull=True, by_program=False)
    voted = round.examples.filter(consensus__round=round)
    has_money = budget.money is not None
    return Used(
        collected=counted.count() if has_money or budget.collected is not None else 0,
        fooling=counted.filter(consensus__round=round, consensus__is_validated_error=True).count()
        if has_money or budget.fooling is not None
        else 0,
        votes=voted.aggregate(n=Sum("consensus__votes"))["n"] or 0 if has_money else 0,
    )


ENTRIES = PreparedRead(
    lambda: RoundTarget.objects.select_related("target").filter(round=Slot("round"))
)


def targets_of(round: Round) -> Sequence[RoundTarget]:
    """Return the round's targets in their order.

    One query, which `Round.target_names` then does not repeat.
    """
    prefetched = round.__dict__.setdefault("_prefetched_objects_cache", {})
    if "round_targets" not in prefetched:
        entries = round.round_targets.all()
        entries._result_cache = ENTRIES.rows(round=round.pk)
        prefetched["round_targets"] = entries
    targets = list(round.round_targets.all())
    for entry in targets:
        entry.round, entry.target.task = round, round.task  # the same, and known
    return targets


def listed_tasks(user: Person) -> QuerySet[Task]:
    """Return the tasks that this person may see, by name."""
    if user.is_superuser:
        return Task.objects.all()
    memberships = TaskMember.objects.standing().filter(user=user.pk).values("task")
    if isinstance(user, User) and user.is_of_panel:
        return Task.objects.filter(pk__in=memberships)
    return Task.objects.filter(Q(is_visible=True) | Q(pk__in=memberships))


def edited_tasks(user: Person) -> QuerySet[Task]:
    """Return the tasks whose configuration this person may read and change, by name."""
    if user.is_superuser:
        return Task.objects.all()
    memberships = TaskMember.objects.standing().filter(user=user.pk, role__in=EDITORS)
    return Task.objects.filter(pk__in=memberships.values("task"))


def seen_rounds(tasks: Iterable[Task]) -> Sequence[Round]:
    """Return the rounds of the tasks that have ever opened, by number; two queries with targets."""
    rounds = Round.objects.filter(task__in=tasks).exclude(state__in=PLANNED)
    targets = Prefetch("round_targets", RoundTarget.objects.select_related("target"))
    return list(rounds.prefetch_related(targets).order_by("number"))


def known_rounds(task: Task, *, planned: bool) -> QuerySet[Round]:
    """Return the rounds that have ever opened, with the planned ones where `planned`."""
    return task.rounds.all() if planned else task.rounds.exclude(state__in=PLANNED)
