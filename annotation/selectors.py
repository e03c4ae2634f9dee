"""Reads about examples."""

import uuid
from collections.abc import Sequence
from typing import NamedTuple

from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from annotation.models import Assignment, Attempt, Example, GatePass, TextKey
from annotation.near_duplicates import ALIKE, band_keys, jaccard, written_text
from dynabench.accounts.models import Annotator
from tasks.models import Context, Round, Task
from tasks.selectors import writers

LARGE = 400
"""Examples of a round from which on one person may write only a share of it."""
MOST_ALIKE = 200
"""Most candidates for a near-duplicate that one submit compares."""


def current_assignment(annotator: Annotator, round: Round) -> Assignment | None:
    """What the annotator works on in this round."""
    return (
        Assignment.objects.filter(annotator=annotator, round=round, left_at__isnull=True)
        .select_related("context", "parent", "annotator", "round__task")
        .first()
    )


def may_send(assignment: Assignment) -> bool:
    """Whether the round takes an example of this assignment.

    Those who were writing when it closed may finish theirs. No query while the round is open.
    """
    round = assignment.round
    if not round.is_being_written or round.closed_at is None:
        return round.state == Round.State.OPEN
    return writers(round, round.closed_at).filter(pk=assignment.pk).exists()


def has_passed_gate(annotator: Annotator, task: Task) -> bool:
    """Whether the annotator has accepted the task's content warning."""
    return GatePass.objects.filter(annotator=annotator, task=task).exists()


def least_used_contexts(round: Round) -> QuerySet[Context]:
    """The round's contexts, least handed out first, chance among equals."""
    return (
        round.contexts.filter(is_retired=False)
        .annotate(uses=Count("assignments"))
        .order_by("uses", "?")
    )


def goal_uses(round: Round) -> dict[str, int]:
    """How often each goal was handed out in the round."""
    rows = Assignment.objects.filter(round=round).values_list("goal").annotate(Count("pk"))
    return dict(rows)


def written_here(assignment: Assignment) -> int:
    """How many examples the annotator has written on this context."""
    mine = Example.objects.filter(annotator=assignment.annotator_id)
    return mine.filter(context=assignment.context_id).count()


class Tries(NamedTuple):
    """What an annotator has used up: on this context, in this task since 00:00 UTC."""

    here: int
    today: int
    twin: uuid.UUID | None  # the example with the same text on this context
    sending: Sequence[str]  # texts on other contexts of the round whose targets are being asked


def tries(assignment: Assignment, digest: str = "") -> Tries:
    """The tries of the assignment's annotator; what is just being sent counts too.

    Two plain queries, counted here: this runs at each submit, for some ten rows.
    """
    midnight = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    context, round, task = assignment.context_id, assignment.round_id, assignment.round.task_id
    written = Example.objects.filter(
        Q(context=context) | Q(created_at__gte=midnight), annotator=assignment.annotator_id
    ).values_list("context", "created_at", "round", "round__task", "digest", "retracted_at", "uuid")
    asking = Attempt.objects.filter(
        annotator=assignment.annotator_id,
        state=Attempt.State.ASKING,
        asked_at__gte=Attempt.oldest_alive(),
    ).values_list("assignment__context", "assignment__round", "assignment__round__task", "inputs")
    here = today = 0
    twin = None
    for one, created_at, its_round, its_task, its_digest, retracted_at, its_uuid in written:
        here += one == context
        today += its_task == task and created_at >= midnight
        if (one, its_round, its_digest, retracted_at) == (context, round, digest, None):
            twin = its_uuid
    sending = []
    for one, its_round, its_task, inputs in asking:
        here += one == context
        today += its_task == task
        if its_round == round and one != context:
            sending.append(written_text(assignment.round.task.config, inputs))
    return Tries(here, today, twin, sending)


def left_in_round(annotator: Annotator, round: Round) -> int | None:
    """How many examples the annotator may still write before their share of the round is full.

    None: no cap yet. It begins when the round wants, or has, LARGE examples, and is known from the
    first example on where the round has a budget, else from half of the least share on.
    """
    mine = Example.objects.filter(annotator=annotator, round=round, retracted_at=None).count()
    share, size = round.task.config.limits.share_of_round, round.max_collected or 0
    if size < LARGE and mine >= share * LARGE / 2:
        size = Example.objects.filter(round=round).count()
    return max(0, int(share * size) - mine) if size >= LARGE else None


class Resembling(NamedTuple):
    """Standing examples of a round whose text is nearly the same: one's own, somebody else's."""

    own: Example | None
    other: Example | None


def resembling(assignment: Assignment, text: str) -> Resembling:
    """Earlier examples that a text resembles, the most alike of each kind.

    One query through the index of the keys; the few that share one are compared.
    """
    keys = band_keys(text)
    if not keys:
        return Resembling(None, None)
    same_key = TextKey.objects.filter(round=assignment.round_id, key__in=keys).values("example")
    found: dict[bool, tuple[float, Example]] = {}
    for example in Example.objects.filter(pk__in=same_key, retracted_at__isnull=True)[:MOST_ALIKE]:
        other = written_text(assignment.round.task.config, example.inputs)
        likeness, is_own = jaccard(text, other), example.annotator_id == assignment.annotator_id
        if likeness >= ALIKE and likeness > found.get(is_own, (0.0,))[0]:
            found[is_own] = likeness, example
    best = {is_own: example for is_own, (_, example) in found.items()}
    return Resembling(best.get(True), best.get(False))


def history(annotator: Annotator, context: Context) -> Sequence[Example]:
    """The annotator's examples on one context, oldest first."""
    return list(Example.objects.filter(annotator=annotator, context=context).order_by("pk"))


def is_judged(example: Example) -> bool:
    """Whether anybody has voted on it.

    Votes are a later stage's rows; `validations` is the name that they give their link here.
    """
    return Example.objects.filter(pk=example.pk, validations__isnull=False).exists()


def parent_candidates(annotator: Annotator, round: Round) -> QuerySet[Example]:
    """Others' examples that may be changed minimally, least changed first."""
    return (
        Example.objects.filter(round=round, retracted_at__isnull=True, parent__isnull=True)
        .exclude(annotator=annotator)
        .annotate(changes=Count("retries"))
        .order_by("changes", "?")
    )


def is_newcomer(annotator: Annotator, task: Task) -> bool:
    """Whether the instructions should stand open: on the first three examples."""
    return Example.objects.filter(annotator=annotator, round__task=task).count() < 3
