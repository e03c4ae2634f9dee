"""The examples that others are asked to judge: those in the queue, and those still to enter it."""

from collections.abc import Iterable, Iterator

from django.conf import settings
from django.db.models import F, Q, QuerySet

from annotation.models import Example
from tasks.models import Round
from validation.consensus.sampling import is_judged

# In paused and closed rounds, only writing has stopped.
JUDGED_ROUND_STATES = [Round.State.OPEN, Round.State.PAUSED, Round.State.CLOSED]
_NOT_JUDGED_CONDITION = (
    (Q(round__round_policy__isnull=True) | Q(pk__gt=F("round__round_policy__filled_to")))
    & (Q(consensus__isnull=True) | Q(consensus__still_needed__gt=0))
    & Q(queue_item__isnull=True, retracted_at__isnull=True)
)
"""The condition for examples that `fill_queue` has not considered yet and may queue."""


def build_waiting_condition(examples: QuerySet[Example]) -> Q:
    """Return the condition that one of these examples is in the queue, or will be.

    Draws the share of examples to judge among those that fooled no model and have not been
    considered for the queue. Makes one query for their rounds, and one more if there are any.
    """
    unqueued_examples = examples.filter(_NOT_JUDGED_CONDITION, round__state__in=JUDGED_ROUND_STATES)
    not_fooled_examples = unqueued_examples.filter(outcome=Example.Outcome.NOT_FOOLED)
    rounds = list(
        Round.objects.filter(pk__in=not_fooled_examples.values("round")).select_related("task")
    )
    # The draw needs the site's secret, so Python makes it instead of the database.
    example_ids = (
        [example_id for _round, example_id in iterate_drawn_examples(not_fooled_examples, rounds)]
        if rounds
        else []
    )
    condition = (
        Q(queue_item__still_needed__gt=0)
        | _NOT_JUDGED_CONDITION & ~Q(outcome=Example.Outcome.NOT_FOOLED)
        | Q(pk__in=example_ids)
    )
    return condition & Q(round__state__in=JUDGED_ROUND_STATES)


def iterate_drawn_examples(
    examples: QuerySet[Example], rounds: Iterable[Round]
) -> Iterator[tuple[int, int]]:
    """Yield the round and id of each sampled example that has not been considered for the queue."""
    share = {round.pk: round.task.config.validation.judge_not_fooled for round in rounds}
    rows = examples.filter(_NOT_JUDGED_CONDITION).values_list("round", "pk", "uuid", "outcome")
    for round, example_id, uuid, outcome in rows.iterator():
        if is_judged(uuid, outcome, share[round], settings.SECRET_KEY):
            yield round, example_id
