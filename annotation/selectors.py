"""Queries about assignments, examples, and how much of their limits authors have used."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models import Count, Prefetch, QuerySet
from django.utils import timezone

from annotation.answers import may_see_answer
from annotation.models import (
    Assignment,
    Attempt,
    Conversation,
    Example,
    GatePass,
    TargetOutput,
    TextKey,
)
from annotation.questions import (
    build_judged_condition,
    build_sent_back_condition,
    get_return_reason,
)
from annotation.rules.near_duplicates import (
    MIN_LIKENESS,
    compute_band_keys,
    compute_overlap,
    get_compared_text,
    list_files,
    split_grams,
)
from core.accounts.counting import SPENT_SQL, build_quota_name
from core.accounts.models import Annotator
from core.days import get_midnight, get_today
from tasks.models import Round, Task
from tasks.questions import find_writers

TRIES_LABEL = "tries"
MIN_LARGE_ROUND_EXAMPLES = 400
"""The number of examples in a round from which a person may write only a share of them."""
MAX_CANDIDATES = 100
"""The maximum number of candidates that are compared with one submitted text."""


def find_current_assignment(annotator: Annotator, round: Round) -> Assignment | None:
    """Return the annotator's current assignment in the round, or None."""
    return (
        Assignment.objects.filter(annotator=annotator, round=round, left_at__isnull=True)
        .select_related("context", "parent", "annotator", "round__task")
        .first()
    )


def has_begun_writing(annotator: Annotator, round: Round) -> bool:
    """Return whether the annotator has an unsubmitted draft or conversation in this round."""
    current = find_current_assignment(annotator, round)
    if current is None:
        return False
    # In a chat the turns are what was written.
    conversations = Conversation.objects.filter(assignment=current).exclude(turns=[])
    return bool(current.draft) or conversations.exists()


def may_submit_example(assignment: Assignment) -> bool:
    """Return whether the round accepts an example for this assignment.

    After it has closed, people who were writing at that time may finish. Makes no query while the
    round is open.
    """
    round = assignment.round
    # While a round is open this is the whole answer, without a query.
    if not round.is_being_written or round.closed_at is None:
        return round.state == Round.State.OPEN
    return find_writers(round, round.closed_at).filter(pk=assignment.pk).exists()


def prefetch_outputs(path: str = "target_outputs") -> Prefetch:  # type: ignore[type-arg]
    """Return a prefetch of the targets' answers with the targets, which makes one query.

    path: the lookup from the rows to the answers.
    """
    return Prefetch(path, TargetOutput.objects.select_related("target"))


def has_passed_gate(annotator: Annotator, task: Task) -> bool:
    """Return whether the annotator has accepted the task's content warning."""
    return GatePass.objects.filter(annotator=annotator, task=task).exists()


def count_tries_today(annotator: Annotator) -> dict[str, int]:
    """Return the number of examples written since 00:00 UTC, by the name of the task's quota."""
    examples_today = Example.objects.filter(annotator=annotator, created_at__gte=get_midnight())
    counts = examples_today.order_by().values_list("round__task").annotate(Count("pk"))
    return {build_quota_name(TRIES_LABEL, task): number for task, number in counts}


class UsageCounts(NamedTuple):
    """Counts of an annotator's examples.

    context_count: the number of examples on the context. today_count: the number in the task since
    00:00 UTC, including those of the person's deleted accounts. round_count: the number in the
    round, without retracted examples. same_text_id: the id of an example with the same text on this
    context. asking_count: the number of texts that are being submitted at this moment, in any task.
    attempt: the id of an earlier attempt with the same key.
    """

    context_count: int
    today_count: int
    round_count: int
    same_text_id: int | None
    asking_count: int
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

    Makes one query in plain SQL, because each submission needs the counts twice.
    """
    annotator, context, round = assignment.annotator_id, assignment.context_id, assignment.round
    # Values of a raw query must have the database's form, which the ORM gives them by itself.
    adapt_time = connection.ops.adapt_datetimefield_value
    adapt_day = connection.ops.adapt_datefield_value
    now, live_since = adapt_time(timezone.now()), adapt_time(Attempt.get_oldest_live_start())
    # PostgreSQL has a type for UUIDs, and SQLite stores them as text.
    key_value = Attempt._meta.get_field("key").get_db_prep_value(key, connection)
    with connection.cursor() as cursor:
        cursor.execute(
            USAGE_SQL,
            [
                *(context, round.task_id, adapt_time(get_midnight())),
                *(annotator, build_quota_name(TRIES_LABEL, round.task_id), adapt_day(get_today())),
                *(round.pk, context, digest),
                annotator,
                now,
                live_since,
                annotator,
                key_value,
                annotator,
            ],
        )
        return UsageCounts(*cursor.fetchone())


def add_submitting_texts(
    assignment: Assignment, usage: UsageCounts
) -> tuple[UsageCounts, list[str]]:
    """Add the texts that are being submitted to the counts of `usage`.

    Returns the new counts, and the texts that are about other contexts of the round.
    """
    # As for nearly every submit: the query below is for people with a second tab.
    if not usage.asking_count:
        return usage, []
    attempts = Attempt.objects.filter(
        annotator=assignment.annotator_id,
        state=Attempt.State.ASKING,
        # Others are lost, as after a killed process, and no tries.
        held_until__gte=timezone.now(),
        asked_at__gte=Attempt.get_oldest_live_start(),
    ).values_list("assignment__context", "assignment__round", "assignment__round__task", "inputs")
    task, context_count, today_count, texts = (
        assignment.round.task,
        usage.context_count,
        usage.today_count,
        [],
    )
    for context, round, attempt_task, inputs in attempts:
        context_count += context == assignment.context_id
        today_count += attempt_task == task.pk
        # On the same context a similar text is an edit, which is allowed.
        if round == assignment.round_id and context != assignment.context_id:
            texts.append(get_compared_text(task.config, inputs))
    return usage._replace(context_count=context_count, today_count=today_count), texts


def count_left_in_round(round: Round, written_count: int) -> int | None:
    """Return how many more examples a person with `written_count` examples may write in the round.

    None if there is no cap. The cap applies once the round plans or has MIN_LARGE_ROUND_EXAMPLES
    examples.

    In a round with a budget, the cap is known from the first example on. Otherwise, the round's
    examples are counted only once the person has written half of the smallest possible share.
    """
    # The planned size is known without a query.
    share, size = round.task.config.limits.share_of_round, round.max_collected or 0
    # Below that nobody can reach a cap, so the round's examples are not counted.
    if size < MIN_LARGE_ROUND_EXAMPLES and written_count >= share * MIN_LARGE_ROUND_EXAMPLES / 2:
        size = Example.objects.filter(round=round).count()
    # Never negative: the round may have shrunk since the person wrote.
    return max(0, int(share * size) - written_count) if size >= MIN_LARGE_ROUND_EXAMPLES else None


class NearDuplicates(NamedTuple):
    """The examples of a round that are most similar to a text; None if there is no near duplicate.

    own_example: the most similar one by the same author. other_example: the most similar one by
    another person.
    """

    own_example: Example | None
    other_example: Example | None


def find_near_duplicates(assignment: Assignment, inputs: Mapping[str, Any]) -> NearDuplicates:
    """Return the author's own and another person's example that these inputs nearly repeat.

    Examples with other files are left out. One query finds candidates by the index of keys, and
    another one reads them for comparison.
    """
    config = assignment.round.task.config
    text, files = get_compared_text(config, inputs), list_files(config, inputs)
    keys = compute_band_keys(text)
    if not keys:
        return NearDuplicates(None, None)
    rows_with_key = TextKey.objects.filter(round=assignment.round_id, key__in=keys)
    # A row for each shared key, so an example may be there as often as there are keys.
    similar_ids = set(rows_with_key.values_list("example", flat=True)[: MAX_CANDIDATES * len(keys)])
    if not similar_ids:  # as for most texts
        return NearDuplicates(None, None)
    # Made once, because each candidate is compared with them.
    own_grams = split_grams(text)
    closest_examples: dict[bool, tuple[float, Example]] = {}
    for example in Example.objects.filter(pk__in=similar_ids, retracted_at__isnull=True)[
        :MAX_CANDIDATES
    ]:
        # The same words about another picture make another example.
        if list_files(config, example.inputs) != files:
            continue
        likeness = compute_overlap(
            own_grams, split_grams(get_compared_text(config, example.inputs))
        )
        is_own = example.annotator_id == assignment.annotator_id
        if likeness >= MIN_LIKENESS and likeness > closest_examples.get(is_own, (0.0,))[0]:
            closest_examples[is_own] = likeness, example
    closest_by_ownership = {is_own: example for is_own, (_, example) in closest_examples.items()}
    return NearDuplicates(closest_by_ownership.get(True), closest_by_ownership.get(False))


def list_recent_examples(annotator: Annotator, round: Round, limit: int = 10) -> Sequence[Example]:
    """Return up to `limit` of the annotator's latest examples of the round, oldest first."""
    # The newest are chosen, and then turned round for reading.
    examples = Example.objects.filter(annotator=annotator, round=round).order_by("-created_at")
    return list(reversed(examples[:limit]))


def is_judged(example: Example) -> bool:
    """Return whether the example has a vote."""
    return Example.objects.filter(build_judged_condition(), pk=example.pk).exists()


def find_unanswered_example(annotator: Annotator, task: Task) -> Example | None:
    """Return the author's latest example with an undecided verdict, or None.

    The author must decide it. Searches only open rounds. Makes no query if the task's rule never
    asks the author.
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
    ).exclude(build_judged_condition())
    return rows.order_by("pk").last()


def is_sent_back(example: Example) -> bool:
    """Return whether a reviewer has sent the example back to its author."""
    # What its author took back needs no change.
    current_rows = Example.objects.filter(pk=example.pk, retracted_at__isnull=True)
    return current_rows.filter(build_sent_back_condition()).exists()


def get_sent_back_reason(assignment: Assignment) -> str:
    """Return the reviewer's request for changes; "" if the assignment corrects no example.

    Makes one query if it does.
    """
    if assignment.mends_id is None:
        return ""
    return get_return_reason(assignment.mends_id)


def get_open_parent(assignment: Assignment) -> Example | None:
    """Return the assignment's example to change; None without one, or if it must stay hidden.

    Makes no query without one.
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
    """Return whether the person has not yet written an example in the task.

    The page then shows the instructions unfolded.
    """
    return not Example.objects.filter(annotator=annotator, round__task=task).exists()
