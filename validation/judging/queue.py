"""Reads of the queue of examples to judge, of leases and of votes."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import islice
from typing import Any, NamedTuple
from uuid import UUID

from django.core.cache import cache
from django.db import connection
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from annotation.models import Example, ShownExample
from core.accounts.counting import build_quota_name, count_spent_today
from core.accounts.models import Annotator
from core.data.adaptive_cache import read_or_count
from core.data.prepared import PreparedRead, Slot
from core.data.sql import fetch_first_row
from core.days import get_midnight
from tasks.members.assignments.rules import ALL_POSITIONS, Span
from tasks.models import Round, Task, TaskMember
from tasks.permissions import JUDGES, READERS
from tasks.selectors import find_visible_tasks
from validation.decisions.awaited import JUDGED_ROUND_STATES, iterate_drawn_examples
from validation.decisions.counted import build_measure_condition
from validation.models import Consensus, JudgeLease, QueueItem, Skip, Validation

PASSES_LABEL = "passes"
WORK_SECONDS = 60
"""How long the first page remembers in which tasks a person may judge."""
MAX_UNQUEUED = 500
"""The number of examples outside the queue after which counting stops."""
# Agreement is shown only after this time, so that votes stay independent.
UNDO_TIME = timedelta(minutes=10)
AUTHOR_TIME = timedelta(hours=1)
"""The time in which an author may decide an undecided verdict before others judge."""


def list_rounds_to_fill(task: Task) -> Sequence[Round]:
    """Return the rounds with examples not yet considered for the queue, oldest first."""
    return list(select_rounds_with_last(select_judged_rounds(task)).filter(last__gt=F("seen")))


def select_rounds_with_last(rounds: QuerySet[Round]) -> QuerySet[Any]:
    """Annotate judged rounds with `last`, the id of their last example, and `seen`.

    seen: the id of the last example that was considered for the queue.
    """
    # One lookup at the end of the index `example_order` for each round.
    last = Example.objects.filter(round=OuterRef("pk")).order_by("-pk").values("pk")[:1]
    seen = Coalesce("round_policy__filled_to", 0)
    return rounds.filter(state__in=JUDGED_ROUND_STATES).annotate(last=Subquery(last), seen=seen)


def list_rounds_with_places(task: Task) -> Sequence[Round]:
    """Return the judged rounds with queued examples that still need votes, oldest first."""
    rounds = ROUNDS_WITH_PLACES.fetch_rows(task=task.pk)
    for round in rounds:
        round.task = task
    return rounds


def _select_rounds_with_places() -> QuerySet[Round]:
    # One index lookup for each round. With EXISTS, PostgreSQL would read all items.
    neediest_item = QueueItem.objects.filter(round=OuterRef("pk")).order_by("-still_needed")
    rounds = Round.objects.filter(task=Slot("task"), state__in=JUDGED_ROUND_STATES).order_by(
        "number"
    )
    return rounds.alias(most=Subquery(neediest_item.values("still_needed")[:1])).filter(most__gt=0)


ROUNDS_WITH_PLACES = PreparedRead(_select_rounds_with_places)


def select_judged_rounds(task: Task) -> QuerySet[Round]:
    """Select the rounds that are judged now, oldest first, because the oldest is released first."""
    return task.rounds.filter(state__in=JUDGED_ROUND_STATES).order_by("number")


# In SQL, because each vote runs them (core/data/sql.py).
LATEST_LEASE_SQL = """
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
SHOWN_SQL = """
SELECT 1 FROM annotation_shownexample
WHERE example_id = %(example)s AND annotator_id = %(validator)s
"""
# Reads the index `validation_time`, where a person's votes of a day are adjacent.
JUDGED_SINCE_SQL = """
SELECT COUNT(*) FROM validation_validation AS vote JOIN annotation_example AS example
  ON example.id = vote.example_id JOIN tasks_round AS round ON round.id = example.round_id
WHERE vote.validator_id = %(validator)s AND vote.created_at >= %(since)s
  AND round.task_id = %(task)s
"""
VOTES_SQL = "SELECT COUNT(*) FROM validation_validation WHERE validator_id = %(validator)s"
# Slower, because it looks up each example; used only if VOTES does not decide.
VOTES_IN_SQL = """
SELECT COUNT(*) FROM validation_validation AS vote JOIN annotation_example AS example
  ON example.id = vote.example_id
WHERE vote.validator_id = %(validator)s AND example.round_id = %(round)s
"""
# One level of `still_needed` at a time, so that the scan starts in the index at `start`.
NEXT_ITEM_SQL = """
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
  AND COALESCE(item.author_id, -1) NOT IN (%(validator)s, %(avoided_author)s)
  AND NOT EXISTS (SELECT 1 FROM validation_validation AS vote
    WHERE vote.example_id = item.example_id AND vote.validator_id = %(validator)s)
  AND NOT EXISTS (SELECT 1 FROM validation_skip AS skip
    WHERE skip.example_id = item.example_id AND skip.validator_id = %(validator)s)
  AND NOT EXISTS (SELECT 1 FROM annotation_shownexample AS shown
    WHERE shown.example_id = item.example_id AND shown.annotator_id = %(validator)s)
ORDER BY item.key LIMIT 1
"""
# The number of people for whom an item is reserved and who can still judge it.
RESERVED_SQL = """(SELECT COUNT(*) FROM (VALUES {rows}) AS kept
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
# A step in the index `queue_order`, past all items of the previous level.
NEXT_LEVEL_SQL = """
SELECT MIN(still_needed) FROM validation_queueitem
WHERE round_id = %(round)s AND still_needed > %(above)s
"""


class ReservedSpan(NamedTuple):
    """A range of queue keys reserved for a validator."""

    validator: int
    first: int
    last: int


class FreePlace(NamedTuple):
    """A free place in the queue: its example id, the id of the validator's old lease, its key."""

    example: int
    lease: int | None
    key: int


def find_next_place(
    round: int,
    validator: Annotator,
    avoided_author: int = 0,
    span: Span = ALL_POSITIONS,
    reserved_spans: Sequence[ReservedSpan] = (),
    *,
    should_lock: bool = False,
) -> FreePlace | None:
    """Find the next place for the validator: nearly decided examples first, then in random order.

    Scans the index queue_order from one key of the span to the other and takes the first suitable
    row. A row is unsuitable if the validator wrote, judged, skipped or saw that example. It is also
    unsuitable if its author is `avoided_author`, or if all its free places are reserved for others.
    With `should_lock`, locks the queue item and skips items that others are taking.
    """
    # Only integers are interpolated into the statement.
    span_rows = ", ".join(str(tuple(map(int, reserved))) for reserved in reserved_spans)
    sql = NEXT_ITEM_SQL.format(kept=RESERVED_SQL.format(rows=span_rows) if reserved_spans else "0")
    # Does not wait: skips an item that another person is taking at this moment.
    if should_lock and connection.features.has_select_for_update_skip_locked:
        sql += "FOR UPDATE OF item SKIP LOCKED"
    # Decided examples stay in the table with 0 votes needed, and are skipped.
    votes_needed: int | None = 0
    while votes_needed is not None:
        values: dict[str, Any] = {
            "round": round,
            "validator": validator.pk,
            "avoided_author": avoided_author,
        }
        values |= {"first": span[0], "last": span[1]}
        values |= {"asked_until": timezone.now() - AUTHOR_TIME}
        if row := fetch_first_row(sql, **values, above=votes_needed):
            return FreePlace(*row)
        # Nothing is free on this level; continue with examples that need more votes.
        (votes_needed,) = fetch_first_row(NEXT_LEVEL_SQL, round=round, above=votes_needed) or (
            None,
        )
    return None


class LatestLease(NamedTuple):
    """A validator's latest lease in a task: whether it is current, and where the scan continues."""

    lease: int
    is_current: bool  # the validator still has to judge its example
    author: int | None
    uuid: UUID
    round: int
    round_state: str
    # The next three flags save queries for what most people in most tasks lack.
    has_no_assignment: bool  # the task has no assignments to judge
    has_no_study: bool
    has_no_gold: bool  # the validator has not answered any gold item


def find_latest_lease(validator: Annotator, task: Task) -> LatestLease | None:
    """Return the validator's latest lease in this task, or None."""
    row = fetch_first_row(
        LATEST_LEASE_SQL, validator=validator.pk, task=task.pk, now=timezone.now()
    )
    if row is None:
        return None
    lease, is_valid, author, uuid, round, state, *absence_flags = row
    # A lease ends early if its example is retracted or was shown, or its round is released.
    is_current = bool(is_valid) and state in JUDGED_ROUND_STATES
    # SQLite returns ids as text and booleans as numbers.
    return LatestLease(
        lease, is_current, author, UUID(str(uuid)), round, state, *map(bool, absence_flags)
    )


def was_shown(example: Example, validator: Annotator) -> bool:
    """Return whether the validator has seen the example outside the queue."""
    return fetch_first_row(SHOWN_SQL, example=example.pk, validator=validator.pk) is not None


def find_last_vote(validator: Annotator, task: Task) -> Validation | None:
    """Return the validator's latest vote in the task, if it can still be undone, or None."""
    votes = Validation.objects.filter(
        validator=validator,
        example__round__task=task,
        # Imported votes are history, even where they name this person.
        is_imported=False,
        created_at__gt=timezone.now() - UNDO_TIME,
    )
    return votes.select_related("example").order_by("-created_at").first()


def count_judged_today(validator: Annotator, task: Task) -> int:
    """Count the examples of the task that the validator has judged since 00:00 UTC."""
    row = fetch_first_row(
        JUDGED_SINCE_SQL, validator=validator.pk, task=task.pk, since=get_midnight()
    )
    return int(row[0]) if row else 0


def count_passes_with_deleted_accounts(validator: Annotator, task: Task) -> int:
    """Count the examples that a person skipped, or answered and undid, since 00:00 UTC.

    Includes those under accounts that they deleted today.
    """
    # Deleted and newly created accounts of one person count together.
    quota_name = build_quota_name(PASSES_LABEL, task.pk)
    return count_passes_by_quota(validator).get(quota_name, 0) + count_spent_today(
        validator.user_id, quota_name
    )


def count_passes_by_quota(validator: Annotator) -> dict[str, int]:
    """Count the examples that a validator skipped, or answered and undid, since 00:00 UTC.

    Returns the counts by the name of the task's quota.
    """
    skips = Skip.objects.filter(validator=validator, created_at__gte=get_midnight())
    undone_leases = JudgeLease.objects.filter(validator=validator, undone_at__gte=get_midnight())
    passes_by_quota: Counter[str] = Counter()
    for rows in (skips, undone_leases):
        counts = rows.order_by().values_list("example__round__task").annotate(Count("pk"))
        for task, count in counts:
            passes_by_quota[build_quota_name(PASSES_LABEL, task)] += count
    return dict(passes_by_quota)


def has_reached_vote_limit(vote_limit: int, round: int, validator: Annotator) -> bool:
    """Return whether the validator has given at least `vote_limit` votes in the round.

    With few votes in total an index answers this; otherwise the round's examples are searched.
    """
    parameters = {"validator": validator.pk, "round": round}
    # The first query uses only an index, and usually decides.
    for sql in (VOTES_SQL, VOTES_IN_SQL):
        (vote_count,) = fetch_first_row(sql, **parameters) or (0,)
        if vote_count < vote_limit:
            return False
    return True


def read_round_numbers(*rounds: Round) -> Mapping[int, Mapping[str, int]]:
    """Return the counts of each round by round id. One query for any number of rounds.

    Keys: collected, fooled, judged, decided, verified and validated_errors, of examples by people;
    by_programs, of examples by programs. Retracted examples are left out.
    """
    measures_by_name = {
        **{measure: measure for measure in ("fooled", "judged", "decided")},
        "verified": "confirmed",
        "validated_errors": "catches",
    }
    aggregates = {
        name: Count("pk", filter=build_measure_condition(measure))
        for name, measure in measures_by_name.items()
    }
    columns = {"collected": Count("pk"), **aggregates}
    numbers = {round.pk: dict.fromkeys((*columns, "by_programs"), 0) for round in rounds}
    examples = Example.objects.filter(round__in=rounds, retracted_at__isnull=True).order_by()
    rows = examples.values("round", "by_program").annotate(**columns)
    for round_id, by_program, *counts in rows.values_list("round", "by_program", *columns):
        # For programs only the count, because numbers about people exclude their examples.
        if by_program:
            numbers[round_id]["by_programs"] = counts[0]
        else:
            numbers[round_id] |= zip(columns, counts, strict=True)
    return numbers


def list_other_queues(validator: Annotator, task: Task) -> Sequence[tuple[Task, int]]:
    """Return the other tasks with examples to judge for this validator, and how many each has.

    Four queries. The counts are exact up to MAX_UNQUEUED.
    """
    user = validator.user
    if user is None or user.is_superuser:
        return []  # people who read the labels of all tasks cannot judge any
    members = TaskMember.objects.annotate_effectiveness().filter(user=user, is_blind=False)
    other_role = Q(is_effective=True) & ~Q(role__in=JUDGES)
    # Tasks in which the person has another role, or reads the labels.
    closed_tasks = members.filter(other_role | Q(role__in=READERS)).values("task")
    # Evaluated once below: the ids for both counts, and then the tasks themselves.
    other_tasks = find_visible_tasks(user).exclude(pk=task.pk).exclude(pk__in=closed_tasks)
    counts = count_places(validator, [other_task.pk for other_task in other_tasks])
    # New examples enter a queue only when somebody opens it, so both kinds count.
    counts.update(count_unqueued_examples(validator, [other_task.pk for other_task in other_tasks]))
    return [
        (other_task, counts[other_task.pk]) for other_task in other_tasks if counts[other_task.pk]
    ]


def find_tasks_with_places(validator: Annotator, tasks: Collection[int]) -> set[int]:
    """Return the ids of the tasks that have an example to judge for this validator. One query."""
    found_tasks = Task.objects.filter(pk__in=tasks).filter(Exists(_select_places_for(validator)))
    return set(found_tasks.values_list("pk", flat=True))


def has_places(validator: Annotator, task: Task) -> bool:
    """Return whether the task has an example to judge for this validator, as of the last minute.

    The answer is cached, because the head of each page of a task needs it. `forget_places` removes
    it from the cache.
    """
    key = _build_places_key(validator, task)
    return read_or_count(key, lambda: bool(find_tasks_with_places(validator, [task.pk])))


def forget_places(validator: Annotator, task: Task) -> None:
    """Remove from the cache which tasks have an example to judge for this validator."""
    cache.delete_many([_build_places_key(validator, task), _build_work_key(validator)])


def _build_work_key(validator: Annotator) -> str:
    return f"work:{validator.pk}"


def _build_places_key(validator: Annotator, task: Task) -> str:
    return f"places:{task.pk}:{validator.pk}"


def count_places(validator: Annotator, tasks: Collection[int]) -> Counter[int]:
    """Count the examples that this validator may be given or is judging, by task id. One query."""
    places = _select_places(validator).filter(round__task__in=tasks).order_by()
    return Counter(dict(places.values_list("round__task").annotate(Count("pk"))))


def _select_places_for(validator: Annotator) -> QuerySet[QueueItem]:
    """Select the queue items of an outer query's task for the validator. See `_select_places`."""
    return _select_places(validator).filter(round__task=OuterRef("pk"))


def _select_places(validator: Annotator) -> QuerySet[QueueItem]:
    """Select the queue items that the validator may be given or is judging."""
    own_filter = {"example": OuterRef("pk"), "validator": validator}
    return QueueItem.objects.filter(
        # The person's own lease may have taken the last free place.
        Q(free__gt=0) | Exists(JudgeLease.objects.filter(**own_filter, takes_place=True)),
        ~Exists(Validation.objects.filter(**own_filter)),
        ~Exists(Skip.objects.filter(**own_filter)),
        # Examples that the person saw with their labels can no longer be judged blindly.
        ~Exists(ShownExample.objects.filter(example=OuterRef("pk"), annotator=validator)),
        ~Q(author=validator),
        _build_askable_condition(),
        round__state__in=JUDGED_ROUND_STATES,
        example__retracted_at__isnull=True,
        still_needed__gt=0,  # in the index
    )


def _build_askable_condition() -> Q:
    """Return the condition that an item's author has decided the verdict, or had time to."""
    asked_until = timezone.now() - AUTHOR_TIME
    return ~Q(example__outcome=Example.Outcome.UNDECIDED, example__created_at__gte=asked_until)


def count_queued_examples(rounds: Collection[int]) -> Counter[int]:
    """Count the queued examples that need votes, by round id. One query."""
    items = QueueItem.objects.filter(round__in=rounds, still_needed__gt=0).order_by()
    # As the queue: else pages would offer what it does not hand out yet.
    usable_items = items.filter(_build_askable_condition(), example__retracted_at__isnull=True)
    return Counter(dict(usable_items.values_list("round").annotate(Count("pk"))))


def count_waiting_roughly(rounds: Sequence[Round]) -> Counter[int]:
    """Count the examples that wait for votes, by round id, as of about the last minute.

    Of those that are not queued yet, at most MAX_UNQUEUED count. Cached, because lists of tasks are
    read more often than people vote. Three queries when it is counted.
    """
    ids = [round.pk for round in rounds if round.state in JUDGED_ROUND_STATES]
    if not ids:
        return Counter()

    def count() -> Counter[int]:
        waiting_by_round = count_queued_examples(ids)
        # With their tasks, each of which says which share of its examples is judged.
        judged_rounds = Round.objects.filter(pk__in=ids).select_related("task")
        new_examples = Example.objects.filter(round__in=ids)
        drawn = islice(iterate_drawn_examples(new_examples, judged_rounds), MAX_UNQUEUED)
        waiting_by_round.update(round for round, _example_id in drawn)
        return waiting_by_round

    return read_or_count(f"waiting:{'-'.join(map(str, ids))}", count)


def find_tasks_with_work_roughly(validator: Annotator, tasks: Collection[int]) -> set[int]:
    """Return what `find_tasks_with_work` found within about the last minute, for the first page.

    Cached, as the counts beside it are (`count_waiting_roughly`). `forget_places` removes it from
    the cache, so that nobody is offered what they have just judged.
    """
    key, wanted_ids = _build_work_key(validator), set(tasks)
    remembered: tuple[set[int], set[int]] = cache.get(key, (set(), set()))
    searched_ids, found_ids = remembered
    # Another page may have asked about fewer tasks.
    if not wanted_ids <= searched_ids:
        found_ids = find_tasks_with_work(validator, wanted_ids)
        cache.set(key, (wanted_ids, found_ids), WORK_SECONDS)
    return found_ids & wanted_ids


def find_tasks_with_work(validator: Annotator, tasks: Collection[int]) -> set[int]:
    """Return the ids of the tasks that have an example for this validator, queued or new.

    At most three queries.
    """
    # The queue first: it is indexed, and usually has something.
    found_tasks = find_tasks_with_places(validator, tasks)
    other_tasks = set(tasks) - found_tasks
    # New examples enter a queue only when somebody opens it, so both kinds count.
    for task_id in _iterate_unqueued_examples(validator, other_tasks):
        found_tasks.add(task_id)
        # One example of each task is enough, and a round may have thousands.
        if other_tasks <= found_tasks:
            break
    return found_tasks


def count_unqueued_examples(validator: Annotator, tasks: Collection[int]) -> Counter[int]:
    """Count the examples of others that would be queued when the validator asks for one.

    Returns the counts by task id, which stop at MAX_UNQUEUED in total. Two queries.
    """
    return Counter(_iterate_unqueued_examples(validator, tasks))


def _iterate_unqueued_examples(validator: Annotator, tasks: Collection[int]) -> Iterator[int]:
    """Yield the task id of each example that would be queued, at most MAX_UNQUEUED.

    Reads them as they are asked for. Two queries.
    """
    # Where a judge model answers first, new examples can't be judged before they are drawn.
    rounds = Round.objects.filter(
        task__in=tasks, state__in=JUDGED_ROUND_STATES, round_policy__draw__isnull=True
    )
    round_by_id = {round.pk: round for round in rounds.select_related("task")}
    # Without a round there is no share to draw by.
    if not round_by_id:
        return
    asked_until = timezone.now() - AUTHOR_TIME
    examples = Example.objects.filter(
        ~Exists(ShownExample.objects.filter(example=OuterRef("pk"), annotator=validator)),
        ~Q(outcome=Example.Outcome.UNDECIDED, created_at__gte=asked_until),
        round__in=round_by_id,
    ).exclude(annotator=validator)
    # Not all of them: pages only say that there is work, and a new import may have a million rows.
    drawn = islice(iterate_drawn_examples(examples, round_by_id.values()), MAX_UNQUEUED)
    for round, _example_id in drawn:
        yield round_by_id[round].task_id


def count_judged_examples(round: Round) -> tuple[int, int]:
    """Count a round's examples that need no more votes, and all its examples to judge."""
    decided_examples = Consensus.objects.filter(example__round=round, still_needed=0)
    judged_count = decided_examples.filter(example__retracted_at__isnull=True).count()
    return judged_count, judged_count + count_waiting_examples([round])[round.pk]


def count_waiting_examples(rounds: Sequence[Round]) -> Counter[int]:
    """Count the examples of each round that need votes, queued or not yet considered.

    Two queries.
    """
    open_rounds = [round for round in rounds if round.state in JUDGED_ROUND_STATES]
    waiting_by_round = count_queued_examples([round.pk for round in open_rounds])
    # Not queued yet: uses the same draw as `fill_queue`.
    waiting_by_round.update(
        round
        for round, _example_id in iterate_drawn_examples(
            Example.objects.filter(round__in=open_rounds), open_rounds
        )
    )
    return waiting_by_round
