"""Gold items: examples whose answer is known, met among the others. Locks: docs/locking.md.

A validator never learns which items are gold. Their answers are no votes.
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
from core.text.words import composed
from tasks.models import Task
from validation.consensus.gold_check import Check, gold_check
from validation.consensus.sampling import draw
from validation.decisions.awaited import JUDGED_STATES
from validation.decisions.consensus_rows import derive_all, lock_example
from validation.judging.queue import LatestLease
from validation.models import Consensus, Gold, GoldAnswer, JudgeLease, QueueItem, Verdict

GOLD_INTERVAL = 12
"""One of so many items that a validator is given is gold, by chance."""


def _select_unseen() -> QuerySet[Gold]:
    """Select the task's gold items that a validator has not seen, here or elsewhere."""
    example_ref, validator = OuterRef("example"), Slot("validator")
    # An answer ends the lease, so an ended one was answered or has run out.
    expired_leases = JudgeLease.objects.filter(
        example=example_ref, validator=validator, until__lte=Slot("now", DateTimeField())
    )
    unseen = Gold.objects.filter(
        ~Exists(expired_leases),
        ~Exists(ShownExample.objects.filter(example=example_ref, annotator=validator)),
        example__round__task=Slot("task"),
        example__round__state__in=JUDGED_STATES,
        example__retracted_at__isnull=True,
    )
    others = unseen.exclude(example__annotator=validator)
    # The queue avoids the author of the last example too; gold must look alike.
    return others.exclude(example__annotator=Slot("avoid"))


UNSEEN = PreparedRead(_select_unseen)


class NoGold(Refused):
    """Raised when an example cannot be gold, or is not gold."""

    code = "no_gold"


def mark_gold(*, example: Example, owner: User, explanation: str = "") -> Gold:
    """Make a decided example a gold item; its decision is the correct answer.

    Removes it from the queue. If it is gold already, only the explanation changes. Locks the
    example. Raises NoGold if it is undecided or withdrawn.
    """
    explanation = composed(explanation)
    with transaction.atomic():
        # As a vote does, so that the decision stays what it is until gold is stored.
        locked_example = lock_example(example)
        consensus = Consensus.objects.filter(
            pk=locked_example.pk, state=Consensus.State.DECIDED
        ).first()
        # “Cannot tell” is a decision, but tells no answer right or wrong.
        if (
            consensus is None
            or consensus.verdict == Verdict.CANNOT_TELL
            or locked_example.retracted_at
        ):
            raise NoGold(
                gettext("Only an example with a clear decision can be gold. Decide it first.")
            )
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
            # Answers to gold are no votes, so the queue has no use for it.
            QueueItem.objects.filter(pk=locked_example.pk).delete()
            log(owner, "gold.marked", locked_example)
        elif gold.explanation != explanation:
            gold.explanation = explanation
            gold.save(update_fields=["explanation"])
            log(owner, "gold.explained", locked_example)
    return gold


def unmark_gold(*, example: Example, owner: User) -> None:
    """Make a gold item an ordinary example and delete the answers to it.

    Locks the example. Raises NoGold if it is not gold.
    """
    with transaction.atomic():
        locked_example = lock_example(example)
        if not Gold.objects.filter(pk=locked_example.pk).delete()[0]:
            raise NoGold(gettext("This example is not gold."))
        # A lease that stayed would treat the next vote as an answer to gold.
        JudgeLease.objects.filter(example=locked_example, is_gold=True).delete()
        # It returns to the queue where its votes do not decide by the policy of now.
        derive_all([locked_example])
        log(owner, "gold.unmarked", locked_example)


def is_turn(validator: Annotator, last_uuid: UUID) -> bool:
    """Return whether a gold item follows that example; this is so about every twelfth time."""
    # With the site's secret, so that nobody can compute which items are gold.
    return draw(f"turn {validator.pk} {last_uuid}", settings.SECRET_KEY) % GOLD_INTERVAL == 0


def lease_gold(
    validator: Annotator, task: Task, *, latest_lease: LatestLease, lasts: timedelta
) -> JudgeLease | None:
    """Lease a gold item that the validator has not seen; None if there is none.

    Call only if `is_turn` returns True. Takes no lock: the choice depends on the item before and on
    a secret, so two tabs get the same item.
    """
    # A lease that another tab takes at this instant is not visible yet: both choose the same item.
    unseen = UNSEEN.rows(
        task=task.pk, validator=validator.pk, avoid=latest_lease.author or 0, now=timezone.now()
    )
    # Each validator meets them in another order, so that nobody can warn others.
    chosen_id = min(
        (item.pk for item in unseen),
        key=lambda pk: draw(f"{validator.pk} {pk}", settings.SECRET_KEY),
        default=0,
    )
    if not chosen_id:
        return None
    times = {"leased_at": timezone.now(), "until": timezone.now() + lasts}
    # One row for an example and a person, so two tabs share one lease.
    lease, _ = JudgeLease.objects.get_or_create(
        example_id=chosen_id,
        validator=validator,
        defaults={"takes_place": False, "is_gold": True, **times},
    )
    lease.example = Example.objects.select_related("context", "round__task").get(pk=chosen_id)
    return lease


def gold_answers(validator: Annotator, task: Task) -> Sequence[GoldAnswer]:
    """Return the validator's answers to the task's gold items, oldest first. Two queries."""
    own_answers = GoldAnswer.objects.filter(validator=validator)
    if not own_answers.exists():  # most people in most tasks, on each page
        return []
    return list(own_answers.filter(gold__example__round__task=task).order_by("created_at", "pk"))


def answers_to(example: Example, validator: Annotator) -> Sequence[GoldAnswer]:
    """Return the validator's answer to this gold item, or an empty sequence."""
    return list(GoldAnswer.objects.filter(gold=example.pk, validator=validator))


def check(answers: Sequence[GoldAnswer]) -> Check:
    """Check by the answers since the last refresher whether a validator judges carefully."""
    counted = [answer.is_correct for answer in answers if answer.counts]
    return gold_check(sum(counted), len(counted))


def lock_answers(validator: Annotator) -> None:
    """Lock the validator's answers: no other is stored or undone until the transaction ends."""
    # No key: rows that point at the person, such as votes, may still be inserted.
    Annotator.objects.select_for_update(no_key=True).values_list("pk").get(pk=validator.pk)


def is_revealed(answer: GoldAnswer, task: Task) -> bool:
    """Return whether a refresher shows the correct answer, or has shown it before."""
    answers = gold_answers(answer.validator, task)
    # An answer that counts no more was in a refresher that has been read.
    is_counted = any(counted.pk == answer.pk and counted.counts for counted in answers)
    return not is_counted or check(answers) is Check.FAIL


def store_answer(*, example: Example, validator: Annotator, **answer_values: Any) -> GoldAnswer:
    """Store the answer to a locked gold item. Raises NotAllowed if it is no longer gold."""
    # A reviewer may have unmarked it since it was leased.
    gold = Gold.objects.filter(pk=example.pk).first()
    if gold is None:
        raise NotAllowed(gettext("This example is no longer judged. Nothing is lost for you."))
    gold.example = example
    right = (gold.label, gold.verdict) == (answer_values["label"], answer_values["verdict"])
    return GoldAnswer.objects.create(
        gold=gold, validator=validator, is_correct=right, **answer_values
    )


def finish_refresher(*, validator: Annotator, task: Task) -> None:
    """Record that the validator has read the refresher, so that only later answers count.

    One update, no lock.
    """
    own_answers = GoldAnswer.objects.filter(validator=validator, gold__example__round__task=task)
    if check(list(own_answers)) is Check.FAIL:
        # They stay as history; only later ones decide whether the person may go on.
        own_answers.update(counts=False)
