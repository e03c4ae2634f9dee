"""Reads about assignments, examples and what their authors have used up."""

import random
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models import Count, Prefetch, QuerySet
from django.utils import timezone

from annotation.answers import filter_open_answers, may_see_answer
from annotation.models import (
    Assignment,
    Attempt,
    Conversation,
    Example,
    GatePass,
    TargetOutput,
    TextKey,
)
from annotation.questions import are_judged, are_sent_back, get_return_reason
from annotation.rules.near_duplicates import (
    ALIKE,
    compute_band_keys,
    compute_overlap,
    get_compared_text,
    list_files,
    split_grams,
)
from core.accounts.counting import SPENT_SQL, quota_name
from core.accounts.models import Annotator
from core.days import midnight, today
from tasks.models import Context, Round, Task
from tasks.questions import find_writers

TRIES = "tries"
LARGE_ROUND = 400
"""Examples of a round from which on one person may write only a share of it."""
MAX_CANDIDATES = 100
"""Most candidates for a near-duplicate that one submit compares."""
MAX_PARENTS = 50
"""Examples among which the one to change is chosen."""
MAX_PARENT_ROUNDS = 3
"""Released rounds in which it is looked for."""


def find_current_assignment(annotator: Annotator, round: Round) -> Assignment | None:
    """Return the annotator's current assignment in the round, or None."""
    return (
        Assignment.objects.filter(annotator=annotator, round=round, left_at__isnull=True)
        .select_related("context", "parent", "annotator", "round__task")
        .first()
    )


def has_begun(annotator: Annotator, round: Round) -> bool:
    """Return whether the annotator has an unsubmitted draft or conversation in this round."""
    current = find_current_assignment(annotator, round)
    if current is None:
        return False
    # In a chat the turns are what was written.
    conversations = Conversation.objects.filter(assignment=current).exclude(turns=[])
    return bool(current.draft) or conversations.exists()


def may_send(assignment: Assignment) -> bool:
    """Return whether the round accepts an example for this assignment.

    People who were writing when it closed may finish. No query while the round is open.
    """
    round = assignment.round
    # While a round is open this is the whole answer, without a query.
    if not round.is_being_written or round.closed_at is None:
        return round.state == Round.State.OPEN
    return find_writers(round, round.closed_at).filter(pk=assignment.pk).exists()


def prefetch_outputs(path: str = "target_outputs") -> Prefetch:  # type: ignore[type-arg]
    """Return a prefetch of the targets' answers, with their targets; one query.

    path: lookup from the rows to the answers.
    """
    return Prefetch(path, TargetOutput.objects.select_related("target"))


def has_passed_gate(annotator: Annotator, task: Task) -> bool:
    """Return whether the annotator has accepted the task's content warning."""
    return GatePass.objects.filter(annotator=annotator, task=task).exists()


def order_contexts_by_use(round: Round) -> QuerySet[Context]:
    """Return the round's contexts, least assigned first; ties are in random order."""
    return (
        # All in one query, under the round's lock, where people wait for one another.
        round.contexts.filter(is_retired=False)
        .annotate(uses=Count("assignments"))
        .order_by("uses", "?")
    )


def count_goal_uses(round: Round) -> dict[str, int]:
    """Return how often each goal was assigned in the round."""
    rows = Assignment.objects.filter(round=round).values_list("goal").annotate(Count("pk"))
    return dict(rows)


def count_tries_today(annotator: Annotator) -> dict[str, int]:
    """Return the number of examples written since 00:00 UTC, by the task's quota."""
    written = Example.objects.filter(annotator=annotator, created_at__gte=midnight())
    counts = written.order_by().values_list("round__task").annotate(Count("pk"))
    return {quota_name(TRIES, task): number for task, number in counts}


class UsageCounts(NamedTuple):
    """Counts of an annotator's examples: `here` on the context, `today` in the task.

    `today` is since 00:00 UTC and includes the person's deleted accounts. `in_round`
    excludes retracted examples. `same_text`: id of an equal text on this context. `asking`:
    number of texts being submitted at this moment, in any task. `attempt`: id of an earlier
    attempt with the same key.
    """

    here: int
    today: int
    in_round: int
    same_text: int | None
    asking: int
    attempt: int | None


# One pass over the person's examples, whose counts differ only in what they filter by.
# An attempt that asks counts only while a process holds it, as in `Attempt.is_lost`.
USAGE_SQL = """
SELECT COUNT(CASE WHEN e.context_id = %s THEN 1 END),
       COUNT(CASE WHEN r.task_id = %s AND e.created_at >= %s THEN 1 END) + spent_today,
       COUNT(CASE WHEN e.round_id = %s AND e.retracted_at IS NULL THEN 1 END),
       MAX(CASE WHEN e.context_id = %s AND e.digest = %s AND e.retracted_at IS NULL THEN e.id END),
       (SELECT COUNT(*) FROM annotation_attempt
        WHERE annotator_id = %s AND state = 'asking' AND held_until >= %s AND asked_at >= %s),
       (SELECT id FROM annotation_attempt WHERE annotator_id = %s AND key = %s)
FROM annotation_example e JOIN tasks_round r ON r.id = e.round_id WHERE e.annotator_id = %s
""".replace("spent_today", SPENT_SQL)


def count_usage(assignment: Assignment, digest: str = "", key: UUID | None = None) -> UsageCounts:
    """Return the usage counts of the assignment's annotator.

    One query in plain SQL, because each submission needs the counts twice.
    """
    annotator, context, round = assignment.annotator_id, assignment.context_id, assignment.round
    # Values of a raw query must have the database's form, which the ORM gives them by itself.
    as_time = connection.ops.adapt_datetimefield_value
    as_day = connection.ops.adapt_datefield_value
    now, oldest_alive = as_time(timezone.now()), as_time(Attempt.oldest_alive())
    # PostgreSQL has a type for UUIDs, and SQLite stores them as text.
    key_value = Attempt._meta.get_field("key").get_db_prep_value(key, connection)
    with connection.cursor() as cursor:
        cursor.execute(
            USAGE_SQL,
            [
                *(context, round.task_id, as_time(midnight())),
                *(annotator, quota_name(TRIES, round.task_id), as_day(today())),
                *(round.pk, context, digest),
                annotator,
                now,
                oldest_alive,
                annotator,
                key_value,
                annotator,
            ],
        )
        return UsageCounts(*cursor.fetchone())


def add_submitting(assignment: Assignment, usage: UsageCounts) -> tuple[UsageCounts, list[str]]:
    """Add the texts that are being submitted to the counts of `usage`.

    Returns the new counts, and those texts that are about other contexts of the round.
    """
    # As for nearly every submit: the query below is for people with a second tab.
    if not usage.asking:
        return usage, []
    attempts = Attempt.objects.filter(
        annotator=assignment.annotator_id,
        state=Attempt.State.ASKING,
        # Others are lost, as after a killed process, and no tries.
        held_until__gte=timezone.now(),
        asked_at__gte=Attempt.oldest_alive(),
    ).values_list("assignment__context", "assignment__round", "assignment__round__task", "inputs")
    task, context_count, today_count, texts = assignment.round.task, usage.here, usage.today, []
    for context, round, its_task, inputs in attempts:
        context_count += context == assignment.context_id
        today_count += its_task == task.pk
        # On the same context a similar text is an edit, which is allowed.
        if round == assignment.round_id and context != assignment.context_id:
            texts.append(get_compared_text(task.config, inputs))
    return usage._replace(here=context_count, today=today_count), texts


def count_left_in_round(round: Round, written_count: int) -> int | None:
    """Return how many more examples a person with `written_count` examples may write in the round.

    None if there is no cap yet. The cap applies once the round plans or has LARGE examples.
    If the round has a budget, it is known from the first example on; otherwise examples are
    counted once the person has written half of the smallest possible share.
    """
    # The planned size is known without a query.
    share, size = round.task.config.limits.share_of_round, round.max_collected or 0
    # Below that nobody can reach a cap, so the round's examples are not counted.
    if size < LARGE_ROUND and written_count >= share * LARGE_ROUND / 2:
        size = Example.objects.filter(round=round).count()
    return max(0, int(share * size) - written_count) if size >= LARGE_ROUND else None


class NearDuplicates(NamedTuple):
    """The most similar near duplicates in a round: the author's own and another person's."""

    own: Example | None
    other: Example | None


def find_near_duplicates(assignment: Assignment, inputs: Mapping[str, Any]) -> NearDuplicates:
    """Find the earlier near duplicates of these inputs.

    One query finds candidates by the index of keys, and one reads them for comparison.
    """
    config = assignment.round.task.config
    text, files = get_compared_text(config, inputs), list_files(config, inputs)
    keys = compute_band_keys(text)
    if not keys:
        return NearDuplicates(None, None)
    same_key = TextKey.objects.filter(round=assignment.round_id, key__in=keys)
    # A row for each shared key, so an example may be there as often as there are keys.
    alike = set(same_key.values_list("example", flat=True)[: MAX_CANDIDATES * len(keys)])
    if not alike:  # as for most texts
        return NearDuplicates(None, None)
    # Made once, because each candidate is compared with them.
    own_grams = split_grams(text)
    closest_examples: dict[bool, tuple[float, Example]] = {}
    for example in Example.objects.filter(pk__in=alike, retracted_at__isnull=True)[:MAX_CANDIDATES]:
        # The same words about another picture make another example.
        if list_files(config, example.inputs) != files:
            continue
        likeness = compute_overlap(
            own_grams, split_grams(get_compared_text(config, example.inputs))
        )
        is_own = example.annotator_id == assignment.annotator_id
        if likeness >= ALIKE and likeness > closest_examples.get(is_own, (0.0,))[0]:
            closest_examples[is_own] = likeness, example
    best = {is_own: example for is_own, (_, example) in closest_examples.items()}
    return NearDuplicates(best.get(True), best.get(False))


def list_recent(annotator: Annotator, round: Round, limit: int = 10) -> Sequence[Example]:
    """Return the annotator's latest examples of the round, oldest first."""
    # The newest are chosen, and then turned round for reading.
    examples = Example.objects.filter(annotator=annotator, round=round).order_by("-created_at")
    return list(reversed(examples[:limit]))


def is_judged(example: Example) -> bool:
    """Return whether the example has a vote."""
    return Example.objects.filter(are_judged(), pk=example.pk).exists()


def find_unanswered(annotator: Annotator, task: Task) -> Example | None:
    """Return the author's latest example on which they must still answer a question.

    Only of open rounds. No query if the task's rule never asks the author.
    """
    if not task.config.may_ask_author:
        return None
    # Once others have judged it, the author's answer comes too late (`answer_undecided`).
    rows = Example.objects.filter(
        annotator=annotator,
        round__task=task,
        round__state=Round.State.OPEN,
        outcome=Example.Outcome.UNDECIDED,
        retracted_at__isnull=True,
        # Imported examples have no author here who could answer.
        uid__isnull=True,
    ).exclude(are_judged())
    return rows.order_by("pk").last()


def is_sent_back(example: Example) -> bool:
    """Return whether a reviewer has sent the example back to its author."""
    # What its author took back needs no change.
    standing = Example.objects.filter(pk=example.pk, retracted_at__isnull=True)
    return standing.filter(are_sent_back()).exists()


def get_sent_back_reason(assignment: Assignment) -> str:
    """Return the reviewer's request for changes; empty if the assignment has none.

    One query if the assignment corrects an example.
    """
    if assignment.mends_id is None:
        return ""
    return get_return_reason(assignment.mends_id)


def draw_parent(annotator: Annotator, round: Round) -> Example | None:
    """Return another person's example to change minimally, or None.

    From the newest released round that has one. Its answer is public, because what people
    write in this round may be sealed later. Chooses the least changed of PARENTS examples
    that follow a random id, so that few rows are read while the round is locked.
    """
    for earlier in select_released_before(round).order_by("-number")[:MAX_PARENT_ROUNDS]:
        if parents := _draw_parents(annotator, round, earlier):
            rows = Example.objects.filter(pk__in=parents).annotate(changes=Count("retries"))
            return rows.select_related("context").order_by("changes", "?").first()
    return None


def _draw_parents(annotator: Annotator, round: Round, earlier: Round) -> Sequence[int]:
    """Return the ids of up to PARENTS examples that may be changed, from a random id on."""
    of_round = Example.objects.filter(round=earlier).order_by("pk")
    ids = of_round.values_list("pk", flat=True)
    first_id, last_id = ids.first(), ids.last()
    if first_id is None or last_id is None:
        return []
    written = {f"inputs__{round.task.config.text_field}__isnull": False}
    others = of_round.filter(parent__isnull=True, **written).exclude(annotator=annotator)
    rows = filter_open_answers(others).values_list("pk", flat=True)
    # From a random id on: sorting all examples by chance would read all of them.
    start = random.randint(first_id, last_id)
    parents = list(rows.filter(pk__gte=start)[:MAX_PARENTS])
    # After the last id the walk goes on at the first.
    return parents + list(rows.filter(pk__lt=start)[: MAX_PARENTS - len(parents)])


def get_open_parent(assignment: Assignment) -> Example | None:
    """Return the example to change, or None if it may no longer be shown.

    No query if the assignment has none.
    """
    # It may have been withdrawn, or sealed by a later version, since it was assigned.
    parent = assignment.parent
    is_shown = parent is not None and may_see_answer(assignment.annotator.user, parent)
    return parent if is_shown else None


def select_released_before(round: Round) -> QuerySet[Round]:
    """Return the task's released rounds before this one."""
    return Round.objects.filter(
        task=round.task_id, number__lt=round.number, state=Round.State.RELEASED
    )


def is_newcomer(annotator: Annotator, task: Task) -> bool:
    """Return whether the person has fewer than three examples, so that instructions are open."""
    return Example.objects.filter(annotator=annotator, round__task=task).count() < 3
