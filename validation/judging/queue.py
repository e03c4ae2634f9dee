"""Reads of the queue of examples to judge, of leases and of votes."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from annotation.models import Example, ShownExample
from core.accounts.counting import quota_name, spent_today
from core.accounts.models import Annotator
from core.data.prepared import PreparedRead, Slot
from core.data.sql import first_row
from core.days import midnight
from tasks.members.assignments.rules import EVERY, Span
from tasks.models import Round, Task, TaskMember
from tasks.permissions import JUDGES, READERS
from tasks.selectors import find_visible_tasks
from validation.decisions.awaited import JUDGED_STATES, drawn
from validation.decisions.counted import is_counted
from validation.models import Consensus, JudgeLease, QueueItem, Skip, Validation

PASSES = "passes"
# Agreement with others is shown only after it, so that no vote follows from theirs.
UNDO_TIME = timedelta(minutes=10)
AUTHOR_TIME = timedelta(hours=1)
"""So long an author who is asked whether the model was fooled may answer before others judge."""


def rounds_to_fill(task: Task) -> Sequence[Round]:
    """Return the rounds with examples not yet considered for the queue, oldest first."""
    return list(rounds_with_last(judged_rounds(task)).filter(last__gt=F("seen")))


def rounds_with_last(rounds: QuerySet[Round]) -> QuerySet[Any]:
    """Annotate judged rounds with `last`, the id of their last example, and `seen`.

    seen: the id of the last example that was considered for the queue.
    """
    # One look at the end of `example_order` for each round.
    last = Example.objects.filter(round=OuterRef("pk")).order_by("-pk").values("pk")[:1]
    seen = Coalesce("round_policy__filled_to", 0)
    return rounds.filter(state__in=JUDGED_STATES).annotate(last=Subquery(last), seen=seen)


def rounds_with_places(task: Task) -> Sequence[Round]:
    """Return the judged rounds with queued examples that still need votes, oldest first."""
    rounds = ROUNDS_WITH_PLACES.rows(task=task.pk)
    for round in rounds:
        round.task = task
    return rounds


def _rounds_with_places() -> QuerySet[Round]:
    # A look at one end of an index for each round. For an EXISTS PostgreSQL reads all items.
    most = QueueItem.objects.filter(round=OuterRef("pk")).order_by("-still_needed")
    rounds = Round.objects.filter(task=Slot("task"), state__in=JUDGED_STATES).order_by("number")
    return rounds.alias(most=Subquery(most.values("still_needed")[:1])).filter(most__gt=0)


ROUNDS_WITH_PLACES = PreparedRead(_rounds_with_places)


def judged_rounds(task: Task) -> QuerySet[Round]:
    """Select the rounds that are judged now, oldest first, because the oldest is released first."""
    return task.rounds.filter(state__in=JUDGED_STATES).order_by("number")


# In SQL, as each vote needs them (core/data/sql.py).
LATEST_LEASE = """
SELECT lease.id, lease.until > %(now)s AND example.retracted_at IS NULL AND NOT EXISTS (
    SELECT 1 FROM annotation_shownexample AS shown
    WHERE shown.example_id = lease.example_id AND shown.annotator_id = lease.validator_id
  ), example.annotator_id,
  example.uuid, example.round_id, round.state,
  NOT EXISTS (SELECT 1 FROM tasks_duty AS duty
    WHERE duty.task_id = round.task_id AND duty.kind = 'judge' AND duty.ended_at IS NULL),
  NOT EXISTS (SELECT 1 FROM campaigns_place AS place
    WHERE place.annotator_id = lease.validator_id),
  NOT EXISTS (SELECT 1 FROM validation_goldanswer AS answer
    WHERE answer.validator_id = lease.validator_id)
FROM validation_judgelease AS lease JOIN annotation_example AS example
  ON example.id = lease.example_id JOIN tasks_round AS round ON round.id = example.round_id
WHERE lease.validator_id = %(validator)s AND round.task_id = %(task)s
ORDER BY lease.until DESC LIMIT 1
"""
SHOWN = """
SELECT 1 FROM annotation_shownexample
WHERE example_id = %(example)s AND annotator_id = %(validator)s
"""
# Along the index `validation_time`, which has a person's votes of one day together.
JUDGED_SINCE = """
SELECT COUNT(*) FROM validation_validation AS vote JOIN annotation_example AS example
  ON example.id = vote.example_id JOIN tasks_round AS round ON round.id = example.round_id
WHERE vote.validator_id = %(validator)s AND vote.created_at >= %(since)s
  AND round.task_id = %(task)s
"""
VOTES = "SELECT COUNT(*) FROM validation_validation WHERE validator_id = %(validator)s"
# Slower, as it looks up each example; asked only where VOTES does not decide.
VOTES_IN = """
SELECT COUNT(*) FROM validation_validation AS vote JOIN annotation_example AS example
  ON example.id = vote.example_id
WHERE vote.validator_id = %(validator)s AND example.round_id = %(round)s
"""
# One level of `still_needed` at a time, so that the walk begins in the index at `start`.
NEXT_PLACE = """
SELECT item.example_id, lease.id, item.key
FROM validation_queueitem AS item JOIN annotation_example AS example ON example.id = item.example_id
  LEFT JOIN validation_judgelease AS lease
  ON lease.example_id = item.example_id AND lease.validator_id = %(validator)s
WHERE item.round_id = %(round)s AND item.still_needed = (SELECT MIN(level.still_needed)
    FROM validation_queueitem AS level
    WHERE level.round_id = %(round)s AND level.still_needed > %(above)s)
  AND item.key BETWEEN %(first)s AND %(last)s AND item.free > {kept}
  AND example.retracted_at IS NULL
  AND (example.outcome <> 'undecided' OR example.created_at < %(asked_until)s)
  AND COALESCE(item.author_id, -1) NOT IN (%(validator)s, %(avoid)s)
  AND NOT EXISTS (SELECT 1 FROM validation_validation AS vote
    WHERE vote.example_id = item.example_id AND vote.validator_id = %(validator)s)
  AND NOT EXISTS (SELECT 1 FROM validation_skip AS skip
    WHERE skip.example_id = item.example_id AND skip.validator_id = %(validator)s)
  AND NOT EXISTS (SELECT 1 FROM annotation_shownexample AS shown
    WHERE shown.example_id = item.example_id AND shown.annotator_id = %(validator)s)
ORDER BY item.key LIMIT 1
"""
# How many of the others for whom an item is kept have neither written, seen, judged nor passed it.
KEPT = """(SELECT COUNT(*) FROM (VALUES {rows}) AS kept
  WHERE item.key BETWEEN kept.column2 AND kept.column3
  AND kept.column1 <> COALESCE(item.author_id, -1)
  AND NOT EXISTS (SELECT 1 FROM validation_validation AS vote
    WHERE vote.example_id = item.example_id AND vote.validator_id = kept.column1)
  AND NOT EXISTS (SELECT 1 FROM validation_skip AS skip
    WHERE skip.example_id = item.example_id AND skip.validator_id = kept.column1)
  AND NOT EXISTS (SELECT 1 FROM annotation_shownexample AS shown
    WHERE shown.example_id = item.example_id AND shown.annotator_id = kept.column1)
  AND NOT EXISTS (SELECT 1 FROM validation_judgelease AS taken
    WHERE taken.example_id = item.example_id AND taken.validator_id = kept.column1
    AND taken.takes_place))"""
# A step in the index `queue_order`, past all items of the level before.
NEXT_LEVEL = """
SELECT MIN(still_needed) FROM validation_queueitem
WHERE round_id = %(round)s AND still_needed > %(above)s
"""


class ReservedSpan(NamedTuple):
    """A range of queue keys reserved for a validator."""

    validator: int
    first: int
    last: int


class Place(NamedTuple):
    """A free place in the queue: its example id, the id of the validator's old lease, its key."""

    example: int
    lease: int | None
    key: int


def next_place(
    round: int,
    validator: Annotator,
    avoid: int = 0,
    span: Span = EVERY,
    reserved_spans: Sequence[ReservedSpan] = (),
    *,
    lock: bool = False,
) -> Place | None:
    """Find the next place for the validator: nearly decided examples first, then in random order.

    Scans the index queue_order from one key of the span to the other and takes the first suitable
    row. A row is unsuitable if the validator wrote, judged, skipped or saw that example, if it is
    by the author `avoid`, or if all its free places are reserved for others. With `lock`, locks the
    queue item and skips items that others are taking.
    """
    # Only whole numbers get into the text of the statement.
    rows = ", ".join(str(tuple(map(int, place))) for place in reserved_spans)
    sql = NEXT_PLACE.format(kept=KEPT.format(rows=rows) if reserved_spans else "0")
    # Without waiting: an item that another person takes at this moment is passed by.
    if lock and connection.features.has_select_for_update_skip_locked:
        sql += "FOR UPDATE OF item SKIP LOCKED"
    # Decided examples stay in the table with 0 votes needed; they are passed by.
    level: int | None = 0
    while level is not None:
        values: dict[str, Any] = {"round": round, "validator": validator.pk, "avoid": avoid}
        values |= {"first": span[0], "last": span[1]}
        values |= {"asked_until": timezone.now() - AUTHOR_TIME}
        if row := first_row(sql, **values, above=level):
            return Place(*row)
        # Nothing is free on this level; go on with examples that need more votes.
        (level,) = first_row(NEXT_LEVEL, round=round, above=level) or (None,)
    return None


class LatestLease(NamedTuple):
    """The latest lease: whether it is current, and where the scan of the queue continues."""

    lease: int
    is_current: bool  # the validator still has its example to judge
    author: int | None
    uuid: UUID
    round: int
    round_state: str
    # What most people in most tasks have not, so that it need not be read.
    has_no_assignment: bool  # nobody was asked to judge in the task
    has_no_study: bool
    has_no_gold: bool  # they have answered no gold item


def latest_lease(validator: Annotator, task: Task) -> LatestLease | None:
    """Return the validator's latest lease in this task."""
    row = first_row(LATEST_LEASE, validator=validator.pk, task=task.pk, now=timezone.now())
    if row is None:
        return None
    lease, holds, author, uuid, round, state, *absence_flags = row
    # A lease ends early where its example is retracted, was shown, or its round is released.
    is_current = bool(holds) and state in JUDGED_STATES
    # SQLite returns ids as text and booleans as numbers.
    return LatestLease(
        lease, is_current, author, UUID(str(uuid)), round, state, *map(bool, absence_flags)
    )


def was_shown(example: Example, validator: Annotator) -> bool:
    """Return whether the validator has seen the example outside the queue."""
    return first_row(SHOWN, example=example.pk, validator=validator.pk) is not None


def last_vote(validator: Annotator, task: Task) -> Validation | None:
    """Return the vote that can still be undone; None if there is none."""
    votes = Validation.objects.filter(
        validator=validator,
        example__round__task=task,
        # Imported votes are history, even where they name this person.
        is_imported=False,
        created_at__gt=timezone.now() - UNDO_TIME,
    )
    return votes.select_related("example").order_by("-created_at").first()


def judged_today(validator: Annotator, task: Task) -> int:
    """Count the examples of the task that the validator has judged since 00:00 UTC."""
    row = first_row(JUDGED_SINCE, validator=validator.pk, task=task.pk, since=midnight())
    return int(row[0]) if row else 0


def passed_today(validator: Annotator, task: Task) -> int:
    """Count the examples that a person skipped, or answered and undid, since 00:00 UTC.

    Also counts those of accounts that they deleted today.
    """
    # Accounts that are deleted and made again count together.
    quota = quota_name(PASSES, task.pk)
    return passes_today(validator).get(quota, 0) + spent_today(validator.user_id, quota)


def passes_today(validator: Annotator) -> dict[str, int]:
    """Count the examples that a validator skipped since 00:00 UTC, by the task's quota."""
    skips = Skip.objects.filter(validator=validator, created_at__gte=midnight())
    undone = JudgeLease.objects.filter(validator=validator, undone_at__gte=midnight())
    passes_by_quota: Counter[str] = Counter()
    for rows in (skips, undone):
        counts = rows.order_by().values_list("example__round__task").annotate(Count("pk"))
        for task, number in counts:
            passes_by_quota[quota_name(PASSES, task)] += number
    return dict(passes_by_quota)


def has_given(vote_limit: int, round: int, validator: Annotator) -> bool:
    """Return whether the validator has given at least `vote_limit` votes in the round.

    With few votes in total an index answers this; otherwise the round's examples are searched.
    """
    values = {"validator": validator.pk, "round": round}
    # The first query is answered by an index, and mostly decides.
    return all(first_row(sql, **values)[0] >= vote_limit for sql in (VOTES, VOTES_IN))  # type: ignore[index]


def round_numbers(*rounds: Round) -> Mapping[int, Mapping[str, int]]:
    """Count by round id: collected, fooled, judged, decided, verified, validated_errors.

    Only examples by people; by_programs counts those by programs. Retracted examples are left out.
    One query for any number of rounds.
    """
    words = {
        **{word: word for word in ("fooled", "judged", "decided")},
        "verified": "confirmed",
        "validated_errors": "catches",
    }
    aggregates = {name: Count("pk", filter=is_counted(word)) for name, word in words.items()}
    columns = {"collected": Count("pk"), **aggregates}
    numbers = {round.pk: dict.fromkeys((*columns, "by_programs"), 0) for round in rounds}
    examples = Example.objects.filter(round__in=rounds, retracted_at__isnull=True).order_by()
    counted = examples.values("round", "by_program").annotate(**columns)
    for pk, by_program, *counts in counted.values_list("round", "by_program", *columns):
        # Of programs only the number: their examples are in no number about people.
        if by_program:
            numbers[pk]["by_programs"] = counts[0]
        else:
            numbers[pk] |= zip(columns, counts, strict=True)
    return numbers


def other_queues(validator: Annotator, task: Task) -> Sequence[Task]:
    """Return the other tasks that have an example to judge for this validator. One query."""
    user = validator.user
    if user is None or user.is_superuser:
        return []  # who reads the labels of all tasks judges none
    members = TaskMember.objects.with_standing().filter(user=user, is_blind=False)
    other_role = Q(stands=True) & ~Q(role__in=JUDGES)
    # Tasks in which the person has another role, or reads the labels.
    closed = members.filter(other_role | Q(role__in=READERS)).values("task")
    others = find_visible_tasks(user).exclude(pk=task.pk).exclude(pk__in=closed)
    return list(others.filter(Exists(_places_for(validator))))


def tasks_with_places(validator: Annotator, tasks: Collection[int]) -> set[int]:
    """Return the ids of those tasks that have an example to judge for this validator.

    One query.
    """
    others = Task.objects.filter(pk__in=tasks).filter(Exists(_places_for(validator)))
    return set(others.values_list("pk", flat=True))


def _places_for(validator: Annotator) -> QuerySet[QueueItem]:
    """Select the queue items of an outer query's task that the validator may get or has."""
    own_filter = {"example": OuterRef("pk"), "validator": validator}
    return QueueItem.objects.filter(
        # The person's own lease may have taken the last free place.
        Q(free__gt=0) | Exists(JudgeLease.objects.filter(**own_filter, takes_place=True)),
        ~Exists(Validation.objects.filter(**own_filter)),
        ~Exists(Skip.objects.filter(**own_filter)),
        # What the person saw with its label can no longer be judged blindly.
        ~Exists(ShownExample.objects.filter(example=OuterRef("pk"), annotator=validator)),
        ~Q(author=validator),
        round__task=OuterRef("pk"),
        round__state__in=JUDGED_STATES,
        example__retracted_at__isnull=True,
        still_needed__gt=0,  # in the index
    )


def queued_examples(rounds: Collection[int]) -> Counter[int]:
    """Count the queued examples that need votes, by round id. One query."""
    queued = QueueItem.objects.filter(round__in=rounds, still_needed__gt=0).order_by()
    usable = queued.filter(example__retracted_at__isnull=True)
    return Counter(dict(usable.values_list("round").annotate(Count("pk"))))


def judged_examples(round: Round) -> tuple[int, int]:
    """Count a round's examples that need no more votes, and all its examples to judge."""
    decided = Consensus.objects.filter(example__round=round, still_needed=0)
    judged = decided.filter(example__retracted_at__isnull=True).count()
    return judged, judged + waiting_examples([round])[round.pk]


def waiting_examples(rounds: Sequence[Round]) -> Counter[int]:
    """Count the examples of each round that need votes, queued or not yet considered.

    Two queries.
    """
    open_rounds = [round for round in rounds if round.state in JUDGED_STATES]
    waiting_by_round = queued_examples([round.pk for round in open_rounds])
    # Not queued yet: the same draw as `fill_queue` makes.
    waiting_by_round.update(
        round for round, _pk in drawn(Example.objects.filter(round__in=open_rounds), open_rounds)
    )
    return waiting_by_round
