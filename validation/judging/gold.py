"""Gold items: examples with a known answer, mixed in with the others. Locks: docs/locking.md.

A validator never learns which items are gold. Answers to gold items are not votes. What follows
from wrong answers is in `validation/judging/gold_pause.py`.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import DateTimeField, Exists, OuterRef, QuerySet
from django.utils import timezone
from django.utils.translation import gettext

from annotation.models import Example, ShownExample
from annotation.refusals import NotAllowed
from core.accounts.models import Annotator, User
from core.accounts.services import log
from core.data.prepared import PreparedRead, Slot
from core.errors import Refused
from core.text.words import compose
from tasks.models import Task
from validation.consensus.sampling import draw_number
from validation.decisions.awaited import JUDGED_ROUND_STATES
from validation.decisions.consensus_rows import derive_consensus_of_all, lock_example
from validation.judging.queue import LatestLease
from validation.models import Consensus, Gold, GoldAnswer, JudgeLease, QueueItem, Verdict

GOLD_INTERVAL = 12
"""On average, one in this many items that a validator gets is gold."""


def _select_unseen_gold() -> QuerySet[Gold]:
    """Select the task's gold items that a validator has not seen, here or elsewhere."""
    example_column, validator = OuterRef("example"), Slot("validator")
    # An answer ends the lease, so an ended lease was answered or has expired.
    expired_leases = JudgeLease.objects.filter(
        example=example_column, validator=validator, until__lte=Slot("now", DateTimeField())
    )
    unseen = Gold.objects.filter(
        ~Exists(expired_leases),
        ~Exists(ShownExample.objects.filter(example=example_column, annotator=validator)),
        example__round__task=Slot("task"),
        example__round__state__in=JUDGED_ROUND_STATES,
        example__retracted_at__isnull=True,
    )
    by_others = unseen.exclude(example__annotator=validator)
    # The queue also avoids the last author, and gold must look the same.
    return by_others.exclude(example__annotator=Slot("avoided_author"))


UNSEEN_GOLD = PreparedRead(_select_unseen_gold)


class GoldError(Refused):
    """Raised when an example cannot be gold, or is not gold."""

    code = "no_gold"


def mark_gold(*, example: Example, owner: User, explanation: str = "") -> Gold:
    """Make a decided example a gold item; its decision is the correct answer.

    Removes it from the queue. If it is gold already, only the explanation changes. Locks the
    example. Raises GoldError if it is withdrawn, undecided, or decided as “cannot tell”.
    """
    explanation = compose(explanation)
    with transaction.atomic():
        # Locked as for a vote, so that the decision cannot change until gold is stored.
        locked_example = lock_example(example)
        consensus = Consensus.objects.filter(
            pk=locked_example.pk, state=Consensus.State.DECIDED
        ).first()
        # “Cannot tell” is a decision, but makes no answer right or wrong.
        if (
            consensus is None
            or consensus.verdict == Verdict.CANNOT_TELL
            or locked_example.retracted_at
        ):
            raise GoldError(gettext("Only a clearly decided example can be gold. Decide it first."))
        gold, is_new = Gold.objects.get_or_create(
            example=locked_example,
            defaults={
                "label": consensus.label,
                "verdict": consensus.verdict,
                "explanation": explanation,
                "made_by": owner,
            },
        )
        if is_new:
            # Answers to gold are not votes, so the queue does not need it.
            QueueItem.objects.filter(pk=locked_example.pk).delete()
            log(owner, "gold.marked", locked_example)
        # Nothing is logged if nothing changed, such as after a double click.
        elif gold.explanation != explanation:
            gold.explanation = explanation
            gold.save(update_fields=["explanation"])
            log(owner, "gold.explained", locked_example)
    return gold


def unmark_gold(*, example: Example, owner: User) -> None:
    """Make a gold item an ordinary example and delete the answers to it.

    Locks the example. Raises GoldError if it is not gold.
    """
    with transaction.atomic():
        locked_example = lock_example(example)
        if not Gold.objects.filter(pk=locked_example.pk).delete()[0]:
            raise GoldError(gettext("This example is no longer a gold item."))
        # With a remaining lease, the next vote would count as an answer to gold.
        JudgeLease.objects.filter(example=locked_example, is_gold=True).delete()
        # It returns to the queue if its votes do not decide under the current policy.
        derive_consensus_of_all([locked_example])
        log(owner, "gold.unmarked", locked_example)


def is_gold_turn(validator: Annotator, last_uuid: UUID) -> bool:
    """Return whether a gold item follows this example, which happens about every twelfth time."""
    # Includes the site's secret, so that nobody can compute which items are gold.
    return draw_number(f"turn {validator.pk} {last_uuid}", settings.SECRET_KEY) % GOLD_INTERVAL == 0


def lease_gold(
    validator: Annotator, task: Task, *, latest_lease: LatestLease, duration: timedelta
) -> JudgeLease | None:
    """Lease a gold item that the validator has not seen; None if there is none.

    Call only if `is_gold_turn` returns True. Takes no lock: the choice depends on the previous item
    and on a secret, so two tabs get the same item.
    """
    # Another tab's simultaneous lease is not visible yet, so both choose the same item.
    unseen_items = UNSEEN_GOLD.fetch_rows(
        task=task.pk,
        validator=validator.pk,
        avoided_author=latest_lease.author or 0,
        now=timezone.now(),
    )
    # Each validator gets them in a different order, so that nobody can warn others.
    chosen_id = min(
        (item.pk for item in unseen_items),
        key=lambda item_id: draw_number(f"{validator.pk} {item_id}", settings.SECRET_KEY),
        default=0,
    )
    if not chosen_id:
        return None
    lease_times = {"leased_at": timezone.now(), "until": timezone.now() + duration}
    # One row per example and person, so two tabs share one lease.
    lease, _ = JudgeLease.objects.get_or_create(
        example_id=chosen_id,
        validator=validator,
        defaults={"takes_place": False, "is_gold": True, **lease_times},
    )
    lease.example = Example.objects.select_related("context", "round__task").get(pk=chosen_id)
    return lease


def list_own_answers(example: Example, validator: Annotator) -> Sequence[GoldAnswer]:
    """Return the validator's answer to this gold item, or an empty sequence."""
    return list(GoldAnswer.objects.filter(gold=example.pk, validator=validator))


def store_gold_answer(
    *, example: Example, validator: Annotator, **answer_values: Any
) -> GoldAnswer:
    """Store the answer to a locked gold item. Raises NotAllowed if it is no longer gold."""
    # A reviewer may have unmarked it since it was leased.
    gold = Gold.objects.filter(pk=example.pk).first()
    if gold is None:
        raise NotAllowed(
            gettext("This example no longer needs judging. Continue with the next one.")
        )
    gold.example = example
    is_correct = (gold.label, gold.verdict) == (answer_values["label"], answer_values["verdict"])
    return GoldAnswer.objects.create(
        gold=gold, validator=validator, is_correct=is_correct, **answer_values
    )
