"""Writes the queue: which examples of a round are judged. Locks: docs/locking.md."""

from itertools import islice

from django.conf import settings
from django.db import transaction

from annotation.models import Example
from tasks.models import Round
from validation.consensus.consensus import Policy, votes_still_needed
from validation.consensus.sampling import is_judged, order_key
from validation.decisions.consensus_rows import round_policy_of
from validation.models import QueueItem, RoundPolicy

# Few enough that nobody waits long, in a round of any size.
CHUNK = 500


def fill_queue(*, round: Round) -> int:
    """Queue the round's examples that have not been considered yet; return how many were queued.

    Locks the round's policy. An example enters its round under the round's lock, so ids grow in the
    order in which examples become visible, and one stored id suffices.
    """
    # Creates the row that is locked below, where the round has none yet.
    round_policy_of(round)
    share = round.task.config.validation.judge_not_fooled
    with transaction.atomic():
        # Of two people who find an empty queue the second waits here, and looks behind the mark.
        policy_row = RoundPolicy.objects.select_for_update(of=("self",)).get(round=round)
        # Under the lock, so that a policy changed just before is the one that counts.
        at_first = votes_still_needed([], Policy(**policy_row.policy))
        items: list[QueueItem] = []
        # A whole chunk may be of examples that nobody judges.
        while not items:
            unseen = Example.objects.filter(round=round, pk__gt=policy_row.filled_to).order_by("pk")
            # Either may be missing; the joins save two queries for each example.
            rows = list(unseen.select_related("consensus", "gold")[:CHUNK])
            if not rows:
                break
            policy_row.filled_to = rows[-1].pk
            items = [item for row in rows if (item := _queue_item(row, at_first, share))]
            policy_row.save(update_fields=["filled_to"])
        # An import, or a change of the policy, may have queued some of them already.
        QueueItem.objects.bulk_create(items, ignore_conflicts=True)
    return len(items)


def queue_all(*, round: Round, first_id: int, last_id: int) -> None:
    """Queue all examples of the round with ids from first to last, whatever their outcome.

    For examples that are not visible to others yet, in the transaction that stores them. Takes no
    lock.
    """
    at_first = votes_still_needed([], Policy(**round_policy_of(round).policy))
    rows = Example.objects.filter(round=round, pk__range=(first_id, last_id)).order_by("pk")
    stream = rows.select_related("consensus", "gold").iterator(chunk_size=CHUNK)
    while some := list(islice(stream, CHUNK)):
        # All of them: their owner asked for judges, so no sample is drawn.
        items = (_queue_item(row, at_first, share=1) for row in some)
        QueueItem.objects.bulk_create([item for item in items if item])


def _queue_item(example: Example, at_first: int, share: float) -> QueueItem | None:
    """Return the queue item of an example; None if it is not to be judged."""
    consensus = getattr(example, "consensus", None)
    # What people have begun to judge is finished, whatever the draw would say.
    if consensus is None and not is_judged(
        example.uuid, example.outcome, share, settings.SECRET_KEY
    ):
        return None
    votes_needed = consensus.still_needed if consensus else at_first
    # Gold is given by its own rule, not by the queue.
    if not votes_needed or example.retracted_at or hasattr(example, "gold"):
        return None
    return QueueItem(
        example=example,
        round_id=example.round_id,
        author_id=example.annotator_id,
        still_needed=votes_needed,
        # Nobody has a lease yet.
        free=votes_needed,
        key=order_key(example.uuid, settings.SECRET_KEY),
    )
