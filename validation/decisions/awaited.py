"""The examples that others are asked to judge: those in the queue, and those still to enter it."""

from collections.abc import Iterable, Iterator

from django.conf import settings
from django.db.models import F, Q, QuerySet

from annotation.models import Example
from tasks.models import Round
from validation.consensus.sampling import is_judged

# In paused and closed rounds only writing has stopped.
JUDGED_STATES = [Round.State.OPEN, Round.State.PAUSED, Round.State.CLOSED]
_NOT_LOOKED_AT = (
    (Q(round__round_policy__isnull=True) | Q(pk__gt=F("round__round_policy__filled_to")))
    & (Q(consensus__isnull=True) | Q(consensus__still_needed__gt=0))
    & Q(queue_item__isnull=True, retracted_at__isnull=True)
)
"""What `fill_queue` will look at and may take."""


def waits_for_judges(examples: QuerySet[Example]) -> Q:
    """Return the condition that one of these examples is in the queue, or will be.

    Examples that fooled no model and have not been considered for the queue are sampled here: one
    query for their rounds, and one more if there are any.
    """
    unseen = examples.filter(_NOT_LOOKED_AT, round__state__in=JUDGED_STATES)
    safe = unseen.filter(outcome=Example.Outcome.NOT_FOOLED)
    rounds = list(Round.objects.filter(pk__in=safe.values("round")).select_related("task"))
    # The draw needs the site's secret, so Python makes it and not the database.
    ids = [pk for _round, pk in drawn(safe, rounds)] if rounds else []
    condition = (
        Q(queue_item__still_needed__gt=0)
        | _NOT_LOOKED_AT & ~Q(outcome=Example.Outcome.NOT_FOOLED)
        | Q(pk__in=ids)
    )
    return condition & Q(round__state__in=JUDGED_STATES)


def drawn(examples: QuerySet[Example], rounds: Iterable[Round]) -> Iterator[tuple[int, int]]:
    """Yield the round and id of each sampled example that has not been considered for the queue."""
    share = {round.pk: round.task.config.validation.judge_not_fooled for round in rounds}
    rows = examples.filter(_NOT_LOOKED_AT).values_list("round", "pk", "uuid", "outcome")
    for round, pk, uuid, outcome in rows.iterator():
        if is_judged(uuid, outcome, share[round], settings.SECRET_KEY):
            yield round, pk
