"""Queries about tasks."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from django.db.models import Prefetch, Q, QuerySet
from django.utils import timezone

from core.accounts.models import User
from core.data.prepared import PreparedRead, Slot
from tasks.models import Round, RoundTarget, Task, TaskMember
from tasks.permissions import EDITORS, Person
from tasks.questions import find_writers
from tasks.writing_time import WRITING_TIME

PLANNED_STATES = (Round.State.DRAFT, Round.State.READY)


def find_grace_end(round: Round, now: datetime) -> datetime | None:
    """Return the time by which people must finish writing if the round closes now.

    None if nobody is writing. In a reopened round, some people may not have written since it last
    closed. They get no more time than that closing gave them. Makes at most two queries.
    """
    # Those who wrote since the last closing get the full time, the others what that closing left.
    if find_writers(round, now, since=round.closed_at).exists():
        return now + WRITING_TIME
    if round.closed_at is not None and find_writers(round, now).exists():
        return round.closed_at + WRITING_TIME
    return None


def count_late_writers(round: Round) -> int:
    """Return how many people may still finish what they were writing when the round closed.

    Makes no query unless the round closed a few minutes ago.
    """
    # Read from the row: no query for the many pages that show a round which closed long ago.
    if not round.is_being_written:
        return 0
    at = round.closed_at or timezone.now()
    return find_writers(round, at).count()


TARGETS_OF_ROUND = PreparedRead(
    lambda: RoundTarget.objects.select_related("target").filter(round=Slot("round"))
)


def list_targets(round: Round) -> Sequence[RoundTarget]:
    """Return the round's targets in order.

    Makes one query, whose result `Round.target_names` reuses.
    """
    # The prepared query fills Django's own prefetch cache, which `Round.target_names` and the
    # templates read.
    prefetched_objects = round.__dict__.setdefault("_prefetched_objects_cache", {})
    if "round_targets" not in prefetched_objects:
        entries = round.round_targets.all()
        entries._result_cache = TARGETS_OF_ROUND.fetch_rows(round=round.pk)
        prefetched_objects["round_targets"] = entries
    round_targets = list(round.round_targets.all())
    for entry in round_targets:
        entry.round, entry.target.task = round, round.task  # the same, and known
    return round_targets


def find_visible_tasks(user: Person) -> QuerySet[Task]:
    """Return the tasks that the person may see, ordered by name."""
    if user.is_superuser:
        return Task.objects.all()
    # A subquery and no list of ids: people may be members of many tasks.
    memberships = TaskMember.objects.select_effective().filter(user=user.pk).values("task")
    if isinstance(user, User) and user.is_panel_participant:
        return Task.objects.filter(pk__in=memberships)
    return Task.objects.filter(Q(is_visible=True) | Q(pk__in=memberships))


def find_editable_tasks(user: Person) -> QuerySet[Task]:
    """Return the tasks whose configuration the person may edit, ordered by name."""
    if user.is_superuser:
        return Task.objects.all()
    memberships = TaskMember.objects.select_effective().filter(user=user.pk, role__in=EDITORS)
    return Task.objects.filter(pk__in=memberships.values("task"))


def find_opened_rounds(tasks: Iterable[Task]) -> Sequence[Round]:
    """Return the rounds of the tasks that have ever opened, ordered by number, with their targets.

    Makes two queries.
    """
    rounds = Round.objects.filter(task__in=tasks).exclude(state__in=PLANNED_STATES)
    targets = Prefetch("round_targets", RoundTarget.objects.select_related("target"))
    return list(rounds.prefetch_related(targets).order_by("number"))


def find_visible_rounds(task: Task, *, include_planned: bool) -> QuerySet[Round]:
    """Return the rounds that have ever opened and, if `include_planned`, the planned ones."""
    if include_planned:
        return task.rounds.all()
    return task.rounds.exclude(state__in=PLANNED_STATES)
