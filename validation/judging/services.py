"""Writes about judging: places in the queue, votes. Locks: docs/locking.md."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import DateTimeField, F
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.models import Example, ShownExample
from annotation.open_round import check_at_work, get_offer_check
from annotation.refusals import CapReached, NotAllowed, ProgramsRefused
from annotation.shown_services import note_shown_examples
from annotation.submitted_work import check_not_submitted
from core.accounts.models import Annotator
from core.data.prepared import PreparedRead, Slot
from core.data.prepared_insert import PreparedInsert
from core.data.sql import change_rows, first_row
from core.errors import Refused
from core.text.words import composed
from tasks.models import Round, Task
from tasks.rounds.states import close_if_due
from validation.consensus.consensus import Vote
from validation.consensus.gold_check import Check
from validation.consensus.sampling import order_key
from validation.decisions.awaited import JUDGED_STATES
from validation.decisions.consensus_rows import (
    derive_consensus,
    is_decided_since,
    lock_example,
)
from validation.judging import blind, gold, pace, queue, vote_caps
from validation.judging.assignments import Part, Parts, parts_of, whole_rounds
from validation.judging.queue import LatestLease, Place
from validation.judging.queue_services import fill_queue
from validation.models import GoldAnswer, JudgeLease, QueueItem, Skip, Validation

# After this time others can get the example of a person who went away.
LEASE_TIME = timedelta(minutes=15)
PASSES = 20
"""Most examples of a task that a person may skip, or answer and take back, in a day."""
WALKS = 32
"""One in so many walks through the queue starts again at its front."""
# Expired leases that one request returns; the next requests take the rest.
CHUNK = 500
Way = ShownExample.Way
# Ended leases too: an answer that comes late may still count.
LEASE = PreparedRead(
    lambda: JudgeLease.objects.filter(validator=Slot("validator"), example=Slot("example"))
)
# In the order of the index `lease_expired`.
EXPIRED = PreparedRead(
    lambda: JudgeLease.objects.filter(
        takes_place=True, until__lte=Slot("now", DateTimeField())
    ).order_by("until")[:CHUNK]
)
JUDGED = PreparedRead(
    lambda: Example.objects.select_related("context", "round").filter(pk=Slot("example"))
)
# In SQL, as each vote needs them (core/data/sql.py).
NEW_LEASE = """
INSERT INTO validation_judgelease (example_id, validator_id, leased_at, until, takes_place, is_gold)
VALUES (%(example)s, %(validator)s, %(leased_at)s, %(until)s, true, false)
ON CONFLICT (example_id, validator_id) DO NOTHING
RETURNING id
"""
# `AND takes_place`: where a vote and an expiry end one lease, only one frees its place.
LEFT_PLACE = """
UPDATE validation_judgelease SET takes_place = false, until = %(now)s
WHERE id = %(lease)s AND takes_place
"""
# A difference, not a value: leases and votes change the same item at the same time.
FREED = "UPDATE validation_queueitem SET free = free + %(places)s WHERE example_id = %(example)s"
VOTES = PreparedRead(lambda: Validation.objects.filter(example=Slot("example")))
NEW_VOTE = PreparedInsert(Validation)


class NotHandedOut(NotAllowed):
    """Raised when the example was never leased to this validator."""

    code = "not_handed_out"


class TooLate(Refused):
    """Raised when the example no longer needs a vote from this validator."""

    code = "too_late"


@dataclass(frozen=True)
class JudgeSession:
    """A validator in a task, with the example that they are judging, if any."""

    task: Task
    validator: Annotator
    lease: JudgeLease | None
    gold: Sequence[GoldAnswer]  # their answers to gold items so far
    parts: Parts  # what assignments give them
    is_paused: bool = False  # for a refresher


def open_session(*, validator: Annotator, task: Task, is_checked: bool = False) -> JudgeSession:
    """Lease the current example or the next one, unless the validator must read a refresher.

    is_checked: the same request has already checked that the validator may judge.
    """
    latest_lease = queue.latest_lease(validator, task)
    parts = _parts(validator, task, latest_lease)
    answers = (
        () if latest_lease and latest_lease.has_no_gold else gold.gold_answers(validator, task)
    )
    # Before a lease, which would take a place while the person reads.
    if gold.check(answers) is Check.FAIL:
        return JudgeSession(task, validator, None, answers, parts, is_paused=True)
    lease = None
    if is_checked or blind.may_judge(validator, task):
        lease = _lease_next(validator, task, latest_lease, parts)
    return JudgeSession(task, validator, lease, answers, parts)


def _parts(validator: Annotator, task: Task, latest_lease: LatestLease | None) -> Parts:
    """Return the parts that assignments give the validator; no query if their lease has none."""
    return (
        whole_rounds(validator)
        if latest_lease and latest_lease.has_no_assignment
        else parts_of(validator, task)
    )


# The queue


def lease_next(*, validator: Annotator, task: Task) -> JudgeLease | None:
    """Lease the validator's current example again, or the next one for 15 minutes.

    Avoids the author of the last example unless there is no other. Locks the queue item that it
    takes, and skips items that others are taking. For an assignment with a number, locks the
    validator first. None if there is nothing to judge, if the validator may not judge, or if they
    have reached their vote cap or their assignment's number.
    """
    if not blind.may_judge(validator, task):
        return None
    latest = queue.latest_lease(validator, task)
    return _lease_next(validator, task, latest, _parts(validator, task, latest))


def _lease_next(
    validator: Annotator, task: Task, latest_lease: LatestLease | None, round_parts: Parts
) -> JudgeLease | None:
    # A reload or a second tab shows the same example and takes no further place.
    if latest_lease and latest_lease.is_current:
        rows = JudgeLease.objects.select_related("example__context", "example__round")
        return rows.get(pk=latest_lease.lease)
    is_offered = (
        _offer_every_round
        if latest_lease and latest_lease.has_no_study
        else get_offer_check(validator, task)
    )
    # Of a study that ended, or of a round that it did not choose.
    if latest_lease and not is_offered(latest_lease.round):
        latest_lease = None
    # The draw depends on the last example, so that a reload draws the same.
    if latest_lease and gold.is_turn(validator, latest_lease.uuid):
        with transaction.atomic():
            # Gold counts for an assignment as votes do: else the numbers would tell what is gold.
            if round_parts(latest_lease.round).has_room() and (
                lease := gold.lease_gold(
                    validator, task, latest_lease=latest_lease, lasts=LEASE_TIME
                )
            ):
                return lease
    if latest_lease and (lease := _go_on(round_parts(latest_lease.round), task, latest_lease)):
        return lease
    return _start_at_front(validator, task, latest_lease, round_parts, is_offered)


def _offer_every_round(_round: int) -> bool:
    """Return True: people who take part in no study are offered every round."""
    return True


def _go_on(round_part: Part, task: Task, latest_lease: LatestLease) -> JudgeLease | None:
    """Lease the next place after the last one, so that the scan skips what was judged before.

    At random it sometimes returns None, so that places that returned to the front are found.
    """
    # One of 32 examples, by its id, sends the walk back to the front.
    if latest_lease.round_state not in JUDGED_STATES or latest_lease.uuid.int % WALKS == 0:
        return None
    if not vote_caps.may_go_on(round_part.validator, task, latest_lease):
        return None
    return _take_next(
        round_part, latest_lease.author, start=order_key(latest_lease.uuid, settings.SECRET_KEY)
    )


def _start_at_front(
    validator: Annotator,
    task: Task,
    latest_lease: LatestLease | None,
    round_parts: Parts,
    is_offered: Callable[[int], bool],
) -> JudgeLease | None:
    """Lease the first free place in any round, the oldest round first."""
    # Places of people who went away; often enough here, as each walk begins at the front.
    return_expired()
    avoid = latest_lease.author if latest_lease else None

    def open_to(rounds: Sequence[Round]) -> Iterator[Round]:
        own_rounds = [round for round in rounds if is_offered(round.pk)]
        return (round for round in own_rounds if vote_caps.may_judge(validator, task, round.pk))

    # What waits in the queue comes first, so that rounds are finished one by one.
    for round in open_to(queue.rounds_with_places(task)):
        if lease := _take_next(round_parts(round.pk), avoid):
            return lease
    # What nobody has looked at yet is queued only when the queue is empty for this person.
    for round in open_to(queue.rounds_to_fill(task)):
        if fill_queue(round=round) and (lease := _take_next(round_parts(round.pk), avoid)):
            return lease
    # Last, what was passed by: by the author just judged, or being taken by others.
    for round in open_to(queue.rounds_with_places(task)):
        if lease := _take_last(round_parts(round.pk)):
            return lease
    return None


def _take_next(round_part: Part, avoid: int | None, start: int = 0) -> JudgeLease | None:
    """Lease the first free place that nobody else is taking at the same moment."""
    with transaction.atomic():
        # In this transaction, which keeps the person locked until the lease is stored.
        if not round_part.has_room():
            return None
        for first, last in round_part.spans:
            # The walk goes on behind the last example, within the places that an assignment has.
            span = max(first, start), last
            place = queue.next_place(
                round_part.round, round_part.validator, avoid or 0, span, round_part.kept, lock=True
            )
            if place:
                return _lease(place, round_part.validator)
    return None


def _take_last(round_part: Part) -> JudgeLease | None:
    """Lease a place by any author, waiting for others who are taking it at the same moment.

    One item is locked at a time. A scan that waits would keep its earlier locks, and two such scans
    would wait for each other.
    """
    for span in round_part.spans:
        # The place may be gone once its item is locked; then the walk looks again.
        while place := queue.next_place(
            round_part.round, round_part.validator, 0, span, round_part.kept
        ):
            with transaction.atomic():
                if not round_part.has_room():
                    return None
                if _is_free(place, round_part):
                    return _lease(place, round_part.validator)
    return None


def _is_free(place: Place, round_part: Part) -> bool:
    """Lock a place's item; return whether the place is still free and not reserved for others."""
    same = QueueItem.objects.filter(pk=place.example, still_needed__gt=0, free__gt=0)
    # It was found without a lock; others may have taken it since.
    if not same.select_for_update(of=("self",)).first():
        return False
    key_range = place.key, place.key
    # Another lease may have left only places that are kept for members.
    return not round_part.kept or bool(
        queue.next_place(round_part.round, round_part.validator, 0, key_range, round_part.kept)
    )


def _lease(place: Place, validator: Annotator) -> JudgeLease:
    """Lease a place of its locked item to the validator."""
    now = timezone.now()
    example = JUDGED.get(example=place.example)
    times = {"leased_at": now, "until": now + LEASE_TIME}
    # The person's ended lease is used again: the database allows one for an example.
    if place.lease:
        lease_id: int | None = place.lease
        left = JudgeLease.objects.filter(pk=place.lease, takes_place=False)
        # Only if it takes no place: of two tabs one gets the place, and counts it.
        is_given = bool(left.update(takes_place=True, **times))
    else:
        ids = {"example": place.example, "validator": validator.pk}
        (lease_id,) = first_row(NEW_LEASE, **ids, **times) or (None,)
        is_given = lease_id is not None
    if not is_given:  # another tab of the same person was first
        lease = LEASE.get(validator=validator.pk, example=place.example)
        lease.example = example
        return lease
    # The caller has locked the item, so nobody else takes this place.
    _free(place.example, -1)
    return JudgeLease(pk=lease_id, example=example, validator=validator, **times)


def return_expired() -> None:
    """Free the places of expired leases.

    No lock: a conditional update of each lease ensures that its place is freed once.
    """
    now = timezone.now()
    for lease in EXPIRED.rows(now=now):
        expired_rows = JudgeLease.objects.filter(pk=lease.pk, takes_place=True, until__lte=now)
        # Lease and item change together; one transaction each keeps no item locked.
        with transaction.atomic():
            # The update finds one row for whoever is first, so a place is freed once.
            _free(lease.example_id, expired_rows.update(takes_place=False))


def _end_lease(lease: JudgeLease) -> int:
    """End a lease; return 1 if it took a place that the caller must free, else 0."""
    now = timezone.now()
    if change_rows(LEFT_PLACE, lease=lease.pk, now=now):
        return 1
    # Gold and expired leases take no place, so they only end.
    JudgeLease.objects.filter(pk=lease.pk).update(until=now)
    return 0


def _free(example_id: int, places: int) -> None:
    """Add free places to an example; a negative number removes them."""
    if places:
        change_rows(FREED, example=example_id, places=places)


def skip_example(*, validator: Annotator, example: Example) -> None:
    """Skip an example permanently and free its place.

    No lock: a unique constraint and one update. Many tabs cannot exceed the cap, because the next
    example is leased only afterwards. Raises NotAllowed, NotHandedOut, TooSoon, CapReached.
    """
    check_at_work(validator, example.round.task)
    lease = _lease_of(validator, example)
    pace.check_was_seen(lease.leased_at)
    _check_may_pass(validator, example.round.task)
    with transaction.atomic():
        # A second tab that skips it too adds no row, and its lease is no longer there to leave.
        Skip.objects.bulk_create(
            [Skip(example=example, validator=validator)], ignore_conflicts=True
        )
        # The lease before the item, as everywhere (docs/locking.md, “Order”).
        _free(lease.example_id, _end_lease(lease))


def _check_may_pass(validator: Annotator, task: Task) -> None:
    """Raise CapReached after too many skips today.

    Without a cap, a few accounts of one person could skip to an example of their choice.
    """
    if queue.passed_today(validator, task) >= PASSES:
        message = _(
            "You have skipped or taken back %(number)d examples of this task today, which is the "
            "most. Judge this one; “Unclear” is an answer too."
        )
        raise CapReached(message % {"number": PASSES})


def _lease_of(validator: Annotator, example: Example) -> JudgeLease:
    """Return the validator's lease of the example. Raises NotHandedOut."""
    lease = LEASE.first(validator=validator.pk, example=example.pk)
    if lease is None:
        raise NotHandedOut(_("This example was not given to you to judge."))
    return lease


# Votes


def cast_validation(
    *,
    validator: Annotator,
    example: Example,
    vote: Vote,
    flag_reason: str = "",
    comment: str = "",
    metadata: Mapping[str, Any] | None = None,
    by_program: bool = False,
) -> Validation | GoldAnswer:
    """Store a vote and the decision of all votes; then close the round if its budget is full.

    A repeated vote returns the stored one, because the response to the first request may have been
    lost. For a gold item only the answer is stored.

    Locks the example, as retracting it does; for gold also the validator, whose other answers
    determine whether this one can be undone. Raises NotHandedOut, TooSoon, TooLate, CapReached,
    ForPeople, NotBlind, AlreadyShown, NotAllowed.
    """
    blind.check_may_judge(validator, example.round.task)
    if by_program:
        check_programs_judge(example.round.task)
    lease = _lease_of(validator, example)
    with transaction.atomic():
        locked_example = lock_example(example)
        columns = _build_vote_fields(validator, vote, lease) | {
            "words": blind.words_shown(example.round.task.config, example),
            "flag_reason": flag_reason,
            "comment": composed(comment),
            "metadata": dict(metadata or {}),
            "by_program": by_program,
        }
        if lease.is_gold:
            # Else a refresher could reveal the right answer before this one is stored.
            gold.lock_answers(validator)
            answers = gold.answers_to(locked_example, validator)
            if (before := _find_equal_answer(answers, columns)) is not None:
                return before
            _check_may_vote(locked_example, validator, lease, answers)
            _end_lease(lease)
            return gold.store_answer(example=locked_example, **columns)
        # Read under the lock: a vote that came just before is among them.
        votes = VOTES.rows(example=locked_example.pk)
        if (before := _find_equal_answer(votes, columns)) is not None:
            return before
        _check_may_vote(locked_example, validator, lease, votes)
        cast = Validation(example=locked_example, author_id=locked_example.annotator_id, **columns)
        NEW_VOTE.insert(cast)
        # The item of the queue last, as everywhere (docs/locking.md, “Order”).
        derive_consensus(locked_example, [*votes, cast], freed_places=_end_lease(lease))
    close_if_due(round=locked_example.round)  # after the example is free: it locks the round
    return cast


def check_programs_judge(task: Task) -> None:
    """Raise ForPeople if the configuration does not let programs judge."""
    if not task.config.programs.judge:
        raise ProgramsRefused(
            "Only people judge in this task. Its owners may write `programs: {judge: true}` into "
            "its configuration."
        )


def _build_vote_fields(validator: Annotator, vote: Vote, lease: JudgeLease) -> dict[str, Any]:
    """Return the fields that votes and answers to gold items have in common."""
    now = timezone.now()
    return {
        "validator": validator,
        "label": vote.label or "",
        "verdict": vote.verdict or "",
        "seconds": (now - lease.leased_at).total_seconds(),
        "created_at": now,
    }


def _find_equal_answer(
    answers: Sequence[Validation] | Sequence[GoldAnswer], values: Mapping[str, Any]
) -> Validation | GoldAnswer | None:
    """Return the validator's earlier equal answer, if there is one."""
    # The times of a request and of its repetition differ, so they are not compared.
    same = ("validator_id", "label", "verdict", "flag_reason", "comment")
    columns = {**values, "validator_id": values["validator"].pk}
    return next((a for a in answers if all(getattr(a, n) == columns[n] for n in same)), None)


def _check_may_vote(
    example: Example,
    validator: Annotator,
    lease: Any,
    votes: Sequence[Validation] | Sequence[GoldAnswer],
) -> None:
    # The constraint `validation_not_own` refuses it too, but cannot say why.
    if example.annotator_id == validator.pk:
        raise NotAllowed(_("You wrote this example. Others judge it."))
    # It may have been shown elsewhere after it was leased.
    if queue.was_shown(example, validator):
        raise blind.AlreadyShown(
            _("You have already seen this example with its answer, so others judge it.")
        )
    if example.retracted_at is not None:
        raise TooLate(_("The author has taken this example back. Nothing is lost for you."))
    if example.round.state not in JUDGED_STATES:
        raise TooLate(_("The round was released while you judged. Nothing is lost for you."))
    # An equal vote has been answered before this check, so this one differs.
    if any(vote.validator_id == validator.pk for vote in votes):
        raise TooLate(_("You have judged this example already. Your first answer counts."))
    pace.check_was_seen(lease.leased_at)
    # An answer that comes late still counts while the example needs votes and no cap is reached.
    if lease.until <= timezone.now():
        if not QueueItem.objects.filter(pk=example.pk, still_needed__gt=0).exists():
            raise TooLate(_("Others have decided this example since your 15 minutes ran out."))
        if not vote_caps.may_judge(validator, example.round.task, example.round_id):
            raise CapReached(_("You have given all votes that one person may give in this round."))
        if not parts_of(validator, example.round.task)(example.round_id).has_room():
            raise CapReached(_("You have judged as many as you were asked for."))


def undo_validation(*, validator: Annotator, validation: Validation | GoldAnswer) -> Example:
    """Undo one's own vote within ten minutes, and lease the example again.

    If the vote decided the example, others judge it instead, because the public numbers may have
    revealed the author's label. Refused once the correct answer was partly revealed, or a study's
    work was submitted.

    Locks the person's places in studies, the example, and as `cast_validation` the validator. Takes
    a place again unless others have taken the remaining ones. Raises TooLate, NotHandedOut,
    NotBlind, CapReached, Submitted.
    """
    example, task = validation.example, validation.example.round.task
    blind.check_may_judge(validator, task)
    lease = _lease_of(validator, example)
    # An undone vote counts as a skip: else undoing would be a way round the cap.
    _check_may_pass(validator, task)
    now = timezone.now()
    with transaction.atomic():
        # Before the example's lock, as everywhere where a place of a study is locked.
        check_not_submitted(validator, task, validation.created_at)
        locked_example = lock_example(example)
        if lease.is_gold:
            gold.lock_answers(validator)
        if blind.is_final(validation, task):
            raise TooLate(_("What is right was shown to you, so your answer stays."))
        recent = type(validation).objects.filter(
            pk=validation.pk, validator=validator, created_at__gt=now - queue.UNDO_TIME
        )
        # Asked before the vote is deleted, which may take the decision with it.
        has_decided = not lease.is_gold and is_decided_since(locked_example, validation.created_at)
        # No row: another tab was first, or the ten minutes are over.
        if not recent.delete()[0]:
            raise TooLate(_("An answer can be taken back for ten minutes."))
        if not lease.is_gold:
            derive_consensus(locked_example, list(locked_example.validations.all()))
        if has_decided:
            # So the queue never gives it to this person again.
            note_shown_examples(annotator=validator, examples=[locked_example.pk], way=Way.NUMBERS)
            JudgeLease.objects.filter(pk=lease.pk).update(undone_at=now)
            return locked_example
        # A place that others took since is not taken from them.
        place = QueueItem.objects.filter(pk=locked_example.pk, free__gt=0).update(
            free=F("free") - 1
        )
        JudgeLease.objects.filter(pk=lease.pk).update(
            takes_place=bool(place), leased_at=now, until=now + LEASE_TIME, undone_at=now
        )
    return locked_example


def answer_afterwards(
    *,
    validation: Validation | GoldAnswer,
    reveal: Mapping[str, str],
    metadata: Mapping[str, Any],
) -> None:
    """Store the validator's answers given after the author's label was shown; the last save wins.

    The vote itself is unchanged.
    """
    validation.reveal = reveal.get("reveal", "")
    validation.reveal_choice = reveal.get("reveal_choice", "")
    validation.reveal_comment = composed(reveal.get("reveal_comment", ""))
    validation.metadata = {**validation.metadata, **metadata}
    # Only these columns: the vote that counts is not written again.
    validation.save(update_fields=["reveal", "reveal_choice", "reveal_comment", "metadata"])
