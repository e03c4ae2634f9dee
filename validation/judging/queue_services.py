"""Writes to the queue of examples to judge. Locks: docs/locking.md."""

from collections.abc import Sequence
from itertools import islice

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from annotation.models import Example
from tasks.models import Round
from validation.consensus.consensus import Policy, count_votes_still_needed
from validation.consensus.sampling import compute_order_key, is_judged
from validation.decisions.consensus_rows import get_round_policy
from validation.judging.queue import AUTHOR_TIME
from validation.models import QueueItem, RoundPolicy

# Few enough that nobody waits long, in a round of any size.
CHUNK_EXAMPLES = 500
JOINED_ROWS = ("consensus", "gold", "queue_item", "vote_draw")


def fill_queue(*, round: Round) -> int:
    """Queue the round's examples that have not been considered yet; return how many were queued.

    Locks the round's policy. An example enters its round under the round's lock, so ids grow in the
    order in which examples become visible, and one stored id suffices.

    If the round draws what people judge, examples that weren't drawn are considered but not queued.
    It stops at the first example that a judge model still has to answer, but passes over those that
    are left to their authors for now.
    """
    # A key says whether people decided rightly, so nobody judges.
    if round.task.config.verdict.type == "decide":
        return 0
    # Creates the row that is locked below, if the round has none yet.
    get_round_policy(round)
    judged_share = round.task.config.validation.judge_not_fooled
    with transaction.atomic():
        # If two people find an empty queue, the second waits here, and continues after the mark.
        policy_row = RoundPolicy.objects.select_for_update(of=("self",)).get(round=round)
        # Read under the lock, so that it is the latest policy.
        initial_vote_count = count_votes_still_needed([], Policy(**policy_row.policy))
        items: list[QueueItem] = []
        # A whole chunk may contain only examples that are not judged.
        while not items:
            new_examples = Example.objects.filter(
                round=round, pk__gt=policy_row.filled_to
            ).order_by("pk")
            # Each may be missing; the joins save a query each for each example.
            rows = list(new_examples.select_related(*JOINED_ROWS)[:CHUNK_EXAMPLES])
            last_id = rows[-1].pk if rows else None
            if policy_row.draw:
                rows, last_id = _take_drawn(rows, judged_share)
            items = [
                item
                for row in rows
                if (item := _build_queue_item(row, initial_vote_count, judged_share))
            ]
            # Nothing is new, or the first new one waits for its author or a judge model.
            if last_id is None:
                break
            policy_row.filled_to = last_id
            policy_row.save(update_fields=["filled_to"])
        # An import, or a change of the policy, may have queued some of them already.
        QueueItem.objects.bulk_create(items, ignore_conflicts=True)
    return len(items)


def queue_all_examples(*, round: Round, first_id: int, last_id: int) -> None:
    """Queue all examples of the round with ids from first to last, whatever their outcome.

    Call it in the transaction that stores the examples, before others can see them. Takes no lock.
    If the round draws what people judge, it queues nothing: `fill_queue` does so after the draw.
    """
    policy_row = get_round_policy(round)
    if policy_row.draw:
        return
    initial_vote_count = count_votes_still_needed([], Policy(**policy_row.policy))
    selected = Example.objects.filter(round=round, pk__range=(first_id, last_id)).order_by("pk")
    examples = selected.select_related(*JOINED_ROWS).iterator(chunk_size=CHUNK_EXAMPLES)
    while chunk := list(islice(examples, CHUNK_EXAMPLES)):
        # All of them, not a sample, because their owner has requested judges.
        items = (_build_queue_item(row, initial_vote_count, judged_share=1) for row in chunk)
        QueueItem.objects.bulk_create([item for item in items if item])


def _build_queue_item(
    example: Example, initial_vote_count: int, judged_share: float
) -> QueueItem | None:
    """Return the queue item of an example; None if it is not to be judged."""
    consensus = getattr(example, "consensus", None)
    # Examples with votes are finished, whatever the draw would decide.
    if consensus is None and not is_judged(
        example.uuid, example.outcome, judged_share, settings.SECRET_KEY
    ):
        return None
    votes_needed = consensus.still_needed if consensus else initial_vote_count
    # Gold is assigned by its own rule, not by the queue.
    if not votes_needed or example.retracted_at or hasattr(example, "gold"):
        return None
    # The draw stays valid even after the round's rule has changed.
    draw = getattr(example, "vote_draw", None)
    if consensus is None and draw and not draw.is_drawn:
        return None
    return QueueItem(
        example=example,
        round_id=example.round_id,
        author_id=example.annotator_id,
        still_needed=votes_needed,
        # Nobody has a lease yet.
        free=votes_needed,
        key=compute_order_key(example.uuid, settings.SECRET_KEY),
    )


def _take_drawn(rows: Sequence[Example], judged_share: float) -> tuple[list[Example], int | None]:
    """Return the rows that may enter the queue, and the id of the last one that is considered.

    Ends before the first row that a judge model still has to answer. One that is left to its author
    holds up no later row, but the mark stays before it, so that it is drawn afterwards. None: the
    mark stays.
    """
    taken_rows: list[Example] = []
    last_id, is_moving = None, True
    for row in rows:
        if needs_draw(row, judged_share):
            if not is_left_to_author(row):
                break
            is_moving = False
            continue
        if is_moving:
            last_id = row.pk
        # Behind the mark, rows are read again, and were queued already.
        if is_moving or not hasattr(row, "queue_item"):
            taken_rows.append(row)
    return taken_rows, last_id


def needs_draw(example: Example, judged_share: float) -> bool:
    """Return whether a draw decides about an example, and is still open.

    example: with the rows of JOINED_ROWS. An example that people were already asked about is
    certain, so it needs no draw. judged_share: as `is_judged` takes it.
    """
    if example.retracted_at or any(hasattr(example, name) for name in JOINED_ROWS):
        return False
    return is_judged(example.uuid, example.outcome, judged_share, settings.SECRET_KEY)


def is_left_to_author(example: Example) -> bool:
    """Return whether the example's author is asked for the verdict, and still has time to decide.

    Until then nobody knows whether it is to be judged, and no judge model is asked or paid.
    """
    is_undecided = example.outcome == Example.Outcome.UNDECIDED
    return is_undecided and example.created_at >= timezone.now() - AUTHOR_TIME
