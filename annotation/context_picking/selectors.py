"""Which text a writer gets next: contexts and goals by their use, and an example to change."""

import random
from collections.abc import Sequence

from django.db.models import Count, Exists, OuterRef, QuerySet

from annotation.answers import filter_open_answers
from annotation.models import Assignment, Example
from annotation.questions import (
    build_catch_condition,
    build_decided_condition,
    build_verified_condition,
)
from annotation.rules.context_draw import CellEvidence
from annotation.selectors import select_released_before
from core.accounts.models import Annotator
from core.data.adaptive_cache import read_or_count
from tasks.models import Context, Round

MAX_PARENTS = 50
"""The number of examples from which the example to change is chosen."""
MAX_PARENT_ROUNDS = 3
"""The maximum number of released rounds that are searched for an example to change."""


def sort_contexts_by_use(contexts: QuerySet[Context]) -> QuerySet[Context]:
    """Return contexts of a round, least assigned first; ties are in random order."""
    # All in one query, under the round's lock, where people wait for one another.
    return contexts.annotate(uses=Count("assignments")).order_by("uses", "?")


def count_contexts_by_cell(contexts: QuerySet[Context]) -> dict[str, int]:
    """Count contexts by their tag, as cells of `annotation.rules.context_draw`. One query."""
    return dict(contexts.order_by("tag").values_list("tag").annotate(Count("pk")))


def count_evidence_by_cell(round: Round) -> dict[str, CellEvidence]:
    """Count what the round's tries say about each cell; cached for a short time.

    Draws stay exact in spite of the cache: a probability is that of the counts it was drawn by.
    """
    return read_or_count(f"context-evidence:{round.pk}", lambda: _count_evidence(round))


def _count_evidence(round: Round) -> dict[str, CellEvidence]:
    tries = Example.objects.filter(round=round, retracted_at=None, by_program=False)
    rows = tries.values_list("context__tag").annotate(
        tries=Count("pk"),
        decided=Count("pk", filter=build_decided_condition()),
        verified=Count("pk", filter=build_verified_condition()),
        # Every catch is also verified, so the rest of those are tries that the model got right.
        catches=Count("pk", filter=build_catch_condition()),
    )
    return {
        cell: CellEvidence(
            errors=catch_count,
            right=verified_count - catch_count,
            pending=try_count - decided_count,
        )
        for cell, try_count, decided_count, verified_count, catch_count in rows.order_by()
    }


def is_case_decided(assignment: Assignment) -> bool:
    """Return whether the person has decided about the assignment's case since they got it."""
    own_examples = Example.objects.filter(
        annotator=assignment.annotator_id, context=assignment.context_id
    )
    # Earlier ones don't count: a decision that a reviewer sent back is assigned once more.
    return own_examples.filter(created_at__gte=assignment.assigned_at).exists()


def exclude_decided_contexts(
    contexts: QuerySet[Context], annotator: Annotator
) -> QuerySet[Context]:
    """Return the contexts that the person has not decided about."""
    own_examples = Example.objects.filter(annotator=annotator, context=OuterRef("pk"))
    # Withdrawn ones count too, since the person has met the case.
    return contexts.exclude(Exists(own_examples))


def count_goal_uses(round: Round) -> dict[str, int]:
    """Return how often each goal was assigned in the round."""
    rows = Assignment.objects.filter(round=round).values_list("goal").annotate(Count("pk"))
    return dict(rows)


def draw_parent(annotator: Annotator, round: Round) -> Example | None:
    """Return another person's example to change minimally, or None.

    It comes from the newest released round that has one. Its answer is public, because what people
    write in this round may be sealed later.

    Of MAX_PARENTS examples that follow a random id, chooses the one that was changed least often.
    Few rows are read, because the round is locked at that time.
    """
    for earlier in select_released_before(round).order_by("-number")[:MAX_PARENT_ROUNDS]:
        if parent_ids := _draw_parent_ids(annotator, round, earlier):
            rows = Example.objects.filter(pk__in=parent_ids).annotate(changes=Count("retries"))
            return rows.select_related("context").order_by("changes", "?").first()
    return None


def _draw_parent_ids(annotator: Annotator, round: Round, earlier: Round) -> Sequence[int]:
    """Return the ids of up to MAX_PARENTS examples that may be changed, starting at a random id."""
    round_examples = Example.objects.filter(round=earlier).order_by("pk")
    ids = round_examples.values_list("pk", flat=True)
    first_id, last_id = ids.first(), ids.last()
    if first_id is None or last_id is None:
        return []
    has_text = {f"inputs__{round.task.config.text_field}__isnull": False}
    other_examples = round_examples.filter(parent__isnull=True, **has_text).exclude(
        annotator=annotator
    )
    rows = filter_open_answers(other_examples).values_list("pk", flat=True)
    # From a random id on: sorting all examples by chance would read all of them.
    start = random.randint(first_id, last_id)
    parent_ids = list(rows.filter(pk__gte=start)[:MAX_PARENTS])
    # After the last id the walk goes on at the first.
    return parent_ids + list(rows.filter(pk__lt=start)[: MAX_PARENTS - len(parent_ids)])
