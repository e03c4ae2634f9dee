"""Writes of judging: leases of places in the queue, skips and votes. Locks: docs/locking.md."""

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
from annotation.open_round import build_offer_check, check_may_work_now
from annotation.refusals import CapReached, NotAllowed, ProgramsRefused
from annotation.shown_services import note_shown_examples
from annotation.submitted_work import check_not_submitted
from core.accounts.models import Annotator
from core.data.prepared import PreparedRead, Slot
from core.data.prepared_insert import PreparedInsert
from core.data.sql import change_rows, fetch_first_row
from core.errors import Refused
from core.text.words import compose
from tasks.config.criteria import Judgement
from tasks.models import Round, Task
from tasks.rounds.states import close_round_if_due
from validation.consensus.consensus import Vote
from validation.consensus.sampling import compute_order_key
from validation.decisions.awaited import JUDGED_ROUND_STATES
from validation.decisions.consensus_rows import (
    derive_consensus,
    is_decided_since,
    lock_example,
)
from validation.judging import blind, gold, gold_pause, pace, queue, vote_caps
from validation.judging.assignments import (
    PartFinder,
    RoundPart,
    build_part_finder,
    build_whole_round_finder,
)
from validation.judging.queue import FreePlace, LatestLease
from validation.judging.queue_services import fill_queue
from validation.judging.steps import check_steps
from validation.judging.vote_columns import (
    build_vote_columns,
    check_fits_criteria,
    find_equal_answer,
)
from validation.models import GoldAnswer, JudgeLease, QueueItem, Skip, Validation

# After this time others can get an example that a person has left unanswered.
LEASE_TIME = timedelta(minutes=15)
MAX_PASSES = 20
"""The most examples of a task that a person may skip, or answer and undo, in a day."""
SCANS_PER_RESTART = 32
"""On average, one in this many scans of the queue starts again at its front."""
# The number of expired leases that one request frees; later requests free the others.
CHUNK_EXAMPLES = 500
ShownWay = ShownExample.Way
# Includes ended leases, because a late answer may still count.
LOCKED_LEASE = PreparedRead(
    lambda: JudgeLease.objects.filter(validator=Slot("validator"), example=Slot("example"))
)
# In the order of the index `lease_expired`.
EXPIRED_LEASES = PreparedRead(
    lambda: JudgeLease.objects.filter(
        takes_place=True, until__lte=Slot("now", DateTimeField())
    ).order_by("until")[:CHUNK_EXAMPLES]
)
JUDGED_EXAMPLE = PreparedRead(
    lambda: Example.objects.select_related("context", "round").filter(pk=Slot("example"))
)
# In SQL, because each vote runs them (core/data/sql.py).
NEW_LEASE_SQL = """
INSERT INTO validation_judgelease (example_id, validator_id, leased_at, until, takes_place, is_gold)
VALUES (%(example)s, %(validator)s, %(leased_at)s, %(until)s, true, false)
ON CONFLICT (example_id, validator_id) DO NOTHING
RETURNING id
"""
# `AND takes_place`: if a vote and an expiry end one lease, only one frees its place.
END_LEASE_SQL = """
UPDATE validation_judgelease SET takes_place = false, until = %(now)s
WHERE id = %(lease)s AND takes_place
"""
# A difference, not a value: leases and votes change the same item at the same time.
FREE_PLACES_SQL = (
    "UPDATE validation_queueitem SET free = free + %(places)s WHERE example_id = %(example)s"
)
VOTES_OF_EXAMPLE = PreparedRead(lambda: Validation.objects.filter(example=Slot("example")))
NEW_VOTE = PreparedInsert(Validation)


class NotAssigned(NotAllowed):
    """Raised when the example was never leased to this validator."""

    code = "not_handed_out"


class TooLate(Refused):
    """Raised when the example no longer needs a vote from this validator."""

    code = "too_late"


@dataclass(frozen=True)
class JudgeSession:
    """A validator's judging session in a task, with the example that they are judging, if any."""

    task: Task
    validator: Annotator
    lease: JudgeLease | None
    gold: Sequence[GoldAnswer]  # the validator's answers to gold items so far
    find_part: PartFinder  # finds what assignments give them
    is_paused: bool = False  # until the validator reads a refresher


def open_session(*, validator: Annotator, task: Task, is_checked: bool = False) -> JudgeSession:
    """Return the validator's session, after leasing their current example or the next one.

    Nothing is leased if the validator must read a refresher or may not judge. is_checked: the same
    request has already checked that the validator may judge.
    """
    latest_lease = queue.find_latest_lease(validator, task)
    find_part = _build_finder(validator, task, latest_lease)
    answers = (
        ()
        if latest_lease and latest_lease.has_no_gold
        else gold_pause.list_gold_answers(validator, task)
    )
    # Before leasing, because a lease would take a place while the person reads.
    if gold_pause.is_judging_paused(answers):
        return JudgeSession(task, validator, None, answers, find_part, is_paused=True)
    lease = None
    if is_checked or blind.may_judge(validator, task):
        lease = _lease_next(validator, task, latest_lease, find_part)
    return JudgeSession(task, validator, lease, answers, find_part)


def _build_finder(validator: Annotator, task: Task, latest_lease: LatestLease | None) -> PartFinder:
    """Return a function that finds the part of a round that is open to the validator.

    Makes no query if the latest lease shows that the task has no assignments to judge.
    """
    return (
        build_whole_round_finder(validator)
        if latest_lease and latest_lease.has_no_assignment
        else build_part_finder(validator, task)
    )


# The queue


def lease_next(*, validator: Annotator, task: Task) -> JudgeLease | None:
    """Lease the validator's current example again, or the next one for 15 minutes.

    Avoids the author of the last example unless there is no other. Locks the queue item that it
    takes, and skips items that others are taking. If the validator's assignment sets a number of
    examples to judge, locks the validator first.

    None if there is nothing to judge, or if the validator may not judge. Also None if they have
    reached their vote cap or their assignment's number of examples.
    """
    if not blind.may_judge(validator, task):
        return None
    latest_lease = queue.find_latest_lease(validator, task)
    return _lease_next(validator, task, latest_lease, _build_finder(validator, task, latest_lease))


def _lease_next(
    validator: Annotator, task: Task, latest_lease: LatestLease | None, find_part: PartFinder
) -> JudgeLease | None:
    # A reload or a second tab shows the same example and takes no further place.
    if latest_lease and latest_lease.is_current:
        rows = JudgeLease.objects.select_related("example__context", "example__round")
        return rows.get(pk=latest_lease.lease)
    is_offered = (
        _offer_every_round
        if latest_lease and latest_lease.has_no_study
        else build_offer_check(validator, task)
    )
    # It belongs to a study that ended, or to a round that the study did not choose.
    if latest_lease and not is_offered(latest_lease.round):
        latest_lease = None
    # The draw depends on the last example, so that a reload gives the same result.
    if latest_lease and gold.is_gold_turn(validator, latest_lease.uuid):
        with transaction.atomic():
            # Gold counts for an assignment like votes; otherwise the numbers would reveal it.
            if find_part(latest_lease.round).has_room() and (
                lease := gold.lease_gold(
                    validator, task, latest_lease=latest_lease, duration=LEASE_TIME
                )
            ):
                return lease
    if latest_lease and (
        lease := _lease_behind_latest(find_part(latest_lease.round), task, latest_lease)
    ):
        return lease
    return _lease_from_front(validator, task, latest_lease, find_part, is_offered)


def _offer_every_round(_round: int) -> bool:
    """Return True, because people outside of studies are offered every round."""
    return True


def _lease_behind_latest(
    round_part: RoundPart, task: Task, latest_lease: LatestLease
) -> JudgeLease | None:
    """Lease the next place after the last one, so that the scan skips what was judged before.

    At random it sometimes returns None, so that places that returned to the front are found.
    """
    # One in 32 examples, chosen by its id, restarts the scan at the front.
    is_restart = latest_lease.uuid.int % SCANS_PER_RESTART == 0
    if latest_lease.round_state not in JUDGED_ROUND_STATES or is_restart:
        return None
    if not vote_caps.has_probably_votes_left(round_part.validator, task, latest_lease):
        return None
    return _lease_free_place(
        round_part,
        latest_lease.author,
        start=compute_order_key(latest_lease.uuid, settings.SECRET_KEY),
    )


def _lease_from_front(
    validator: Annotator,
    task: Task,
    latest_lease: LatestLease | None,
    find_part: PartFinder,
    is_offered: Callable[[int], bool],
) -> JudgeLease | None:
    """Lease the first free place in any round, the oldest round first."""
    # Places of people who left. This is often enough, because scans start at the front.
    free_expired_places()
    avoided_author = latest_lease.author if latest_lease else None

    def select_open_rounds(rounds: Sequence[Round]) -> Iterator[Round]:
        for round in rounds:
            if is_offered(round.pk) and vote_caps.has_votes_left(validator, task, round.pk):
                yield round

    # Queued examples come first, so that rounds are finished one by one.
    for round in select_open_rounds(queue.list_rounds_with_places(task)):
        if lease := _lease_free_place(find_part(round.pk), avoided_author):
            return lease
    # Further examples are queued only if the queue is empty for this person.
    for round in select_open_rounds(queue.list_rounds_to_fill(task)):
        if fill_queue(round=round) and (
            lease := _lease_free_place(find_part(round.pk), avoided_author)
        ):
            return lease
    # Last, the places skipped above: by the last author, or being taken by others.
    for round in select_open_rounds(queue.list_rounds_with_places(task)):
        if lease := _lease_remaining_place(find_part(round.pk)):
            return lease
    return None


def _lease_free_place(
    round_part: RoundPart, avoided_author: int | None, start: int = 0
) -> JudgeLease | None:
    """Lease the first free place that nobody else is taking at the same moment."""
    with transaction.atomic():
        # Checked in this transaction, which locks the person until the lease is stored.
        if not round_part.has_room():
            return None
        for first, last in round_part.spans:
            # The scan continues after the last example, within the assignment's places.
            span = max(first, start), last
            place = queue.find_next_place(
                round_part.round,
                round_part.validator,
                avoided_author or 0,
                span,
                round_part.reserved_spans,
                should_lock=True,
            )
            if place:
                return _store_lease(place, round_part.validator)
    return None


def _lease_remaining_place(round_part: RoundPart) -> JudgeLease | None:
    """Lease a place by any author, waiting for others who are taking it at the same moment.

    One item is locked at a time. A scan that waits would keep its earlier locks, and two such scans
    would wait for each other.
    """
    for span in round_part.spans:
        # The place may be taken by the time its item is locked; then search again.
        while place := queue.find_next_place(
            round_part.round, round_part.validator, 0, span, round_part.reserved_spans
        ):
            with transaction.atomic():
                if not round_part.has_room():
                    return None
                if _is_still_free(place, round_part):
                    return _store_lease(place, round_part.validator)
    return None


def _is_still_free(place: FreePlace, round_part: RoundPart) -> bool:
    """Lock a place's item; return whether the place is still free and not reserved for others."""
    items = QueueItem.objects.filter(pk=place.example, still_needed__gt=0, free__gt=0)
    # It was found without a lock, so others may have taken it since.
    if not items.select_for_update(of=("self",)).first():
        return False
    key_range = place.key, place.key
    # After another lease, only places reserved for members may be left.
    return not round_part.reserved_spans or bool(
        queue.find_next_place(
            round_part.round, round_part.validator, 0, key_range, round_part.reserved_spans
        )
    )


def _store_lease(place: FreePlace, validator: Annotator) -> JudgeLease:
    """Lease a place to the validator. Call it with the queue item locked."""
    now = timezone.now()
    example = JUDGED_EXAMPLE.get(example=place.example)
    lease_times = {"leased_at": now, "until": now + LEASE_TIME}
    # Reuses the person's ended lease, because the database allows one per example.
    if place.lease:
        lease_id: int | None = place.lease
        ended_lease = JudgeLease.objects.filter(pk=place.lease, takes_place=False)
        # Only if it takes no place, so that only one of two tabs takes and counts it.
        is_new = bool(ended_lease.update(takes_place=True, **lease_times))
    else:
        ids = {"example": place.example, "validator": validator.pk}
        (lease_id,) = fetch_first_row(NEW_LEASE_SQL, **ids, **lease_times) or (None,)
        is_new = lease_id is not None
    if not is_new:  # another tab of the same person was first
        lease = LOCKED_LEASE.get(validator=validator.pk, example=place.example)
        lease.example = example
        return lease
    # The caller has locked the item, so nobody else takes this place.
    _free_places(place.example, -1)
    return JudgeLease(pk=lease_id, example=example, validator=validator, **lease_times)


def free_expired_places() -> None:
    """Free the places of expired leases.

    No lock: a conditional update of each lease ensures that its place is freed once.
    """
    now = timezone.now()
    for lease in EXPIRED_LEASES.fetch_rows(now=now):
        expired_rows = JudgeLease.objects.filter(pk=lease.pk, takes_place=True, until__lte=now)
        # Lease and item change together. One transaction per lease, so that locks are short.
        with transaction.atomic():
            # Only the first update finds the row, so the place is freed once.
            _free_places(lease.example_id, expired_rows.update(takes_place=False))


def _end_lease(lease: JudgeLease) -> int:
    """End a lease; return 1 if it took a place that the caller must free, else 0."""
    now = timezone.now()
    if change_rows(END_LEASE_SQL, lease=lease.pk, now=now):
        return 1
    # Leases of gold and expired leases take no place, so they only end.
    JudgeLease.objects.filter(pk=lease.pk).update(until=now)
    return 0


def _free_places(example_id: int, item_count: int) -> None:
    """Add free places to an example; a negative number removes them."""
    if item_count:
        change_rows(FREE_PLACES_SQL, example=example_id, places=item_count)


def skip_example(*, validator: Annotator, example: Example) -> None:
    """Skip an example permanently and free its place.

    No lock: a unique constraint and one update. Many tabs cannot exceed the cap, because the next
    example is leased only afterwards. Raises NotAllowed, NotAssigned, TooSoon, CapReached.
    """
    check_may_work_now(validator, example.round.task)
    lease = _get_lease(validator, example)
    pace.check_was_seen(lease.leased_at)
    _check_may_pass(validator, example.round.task)
    with transaction.atomic():
        # If a second tab skips it too, it adds no row, and frees no place.
        Skip.objects.bulk_create(
            [Skip(example=example, validator=validator)], ignore_conflicts=True
        )
        # The lease before the item, in the usual order (docs/locking.md, “Order”).
        _free_places(lease.example_id, _end_lease(lease))


def _check_may_pass(validator: Annotator, task: Task) -> None:
    """Raise CapReached after too many skips today.

    Without a cap, a few accounts of one person could skip to an example of their choice.
    """
    if queue.count_passes_with_deleted_accounts(validator, task) >= MAX_PASSES:
        message = _(
            "You've skipped or undone %(number)d examples of this task today, which is "
            "the maximum. Judge this one. You can answer “Unclear”."
        )
        raise CapReached(message % {"number": MAX_PASSES})


def _get_lease(validator: Annotator, example: Example) -> JudgeLease:
    """Return the validator's lease of the example. Raises NotAssigned."""
    lease = LOCKED_LEASE.first(validator=validator.pk, example=example.pk)
    if lease is None:
        raise NotAssigned(_("This example isn't assigned to you to judge."))
    return lease


# Votes


def cast_validation(
    *,
    validator: Annotator,
    example: Example,
    vote: Vote,
    judgements: Sequence[Judgement] | None = None,
    flag_reason: str = "",
    comment: str = "",
    metadata: Mapping[str, Any] | None = None,
    by_program: bool = False,
) -> Validation | GoldAnswer:
    """Store a vote and the decision of all votes; then close the round if its budget is full.

    judgements: of the criteria of an example that has some, from which the vote follows. A repeated
    vote returns the stored one, because the response to the first request may have been lost. For a
    gold item only the answer is stored.
    Locks the example; for gold also the validator, whose other answers determine whether this one
    can be undone. Raises NotAssigned, TooSoon, TooLate, CapReached, ProgramsRefused, NotBlind,
    AlreadyShown, NotAllowed, Invalid.
    """
    blind.check_may_judge(validator, example.round.task)
    check_fits_criteria(example, vote, judgements)
    if by_program:
        check_programs_may_judge(example.round.task)
    lease = _get_lease(validator, example)
    with transaction.atomic():
        locked_example = lock_example(example)
        columns = build_vote_columns(validator, vote, lease) | {
            "judgements": judgements and list(judgements),
            "words": blind.count_words_shown(example.round.task.config, example),
            "flag_reason": flag_reason,
            "comment": compose(comment),
            "metadata": dict(metadata or {}),
            "by_program": by_program,
        }
        check_steps(example, vote, columns["metadata"])
        if lease.is_gold:
            # Otherwise a refresher could reveal the correct answer before this one is stored.
            gold_pause.lock_answers(validator)
            answers = gold.list_own_answers(locked_example, validator)
            if (earlier_answer := find_equal_answer(answers, columns)) is not None:
                return earlier_answer
            _check_may_vote(locked_example, validator, lease, answers)
            _end_lease(lease)
            return gold.store_gold_answer(example=locked_example, **columns)
        # Read under the lock, so that a vote cast just before is included.
        votes = VOTES_OF_EXAMPLE.fetch_rows(example=locked_example.pk)
        if (earlier_answer := find_equal_answer(votes, columns)) is not None:
            return earlier_answer
        _check_may_vote(locked_example, validator, lease, votes)
        new_vote = Validation(
            example=locked_example, author_id=locked_example.annotator_id, **columns
        )
        NEW_VOTE.insert(new_vote)
        # The queue item last, in the usual order (docs/locking.md, “Order”).
        derive_consensus(locked_example, [*votes, new_vote], freed_places=_end_lease(lease))
    close_round_if_due(round=locked_example.round)  # in its own transaction: it locks the round
    return new_vote


def check_programs_may_judge(task: Task) -> None:
    """Raise ProgramsRefused if the configuration doesn't let programs judge."""
    if not task.config.programs.judge:
        raise ProgramsRefused(
            "Only people judge in this task. Its owners may write `programs: {judge: true}` into "
            "its configuration."
        )


def _check_may_vote(
    example: Example,
    validator: Annotator,
    lease: Any,
    votes: Sequence[Validation] | Sequence[GoldAnswer],
) -> None:
    # The constraint `validation_not_own` refuses it too, but without a reason.
    if example.annotator_id == validator.pk:
        raise NotAllowed(_("You wrote this example, so you can't judge it."))
    # The example may have been shown elsewhere after it was leased.
    if queue.was_shown(example, validator):
        raise blind.AlreadyShown(
            _("You've already seen this example's answer, so you can't judge it.")
        )
    if example.retracted_at is not None:
        raise TooLate(_("The author has withdrawn this example. Continue with the next one."))
    if example.round.state not in JUDGED_ROUND_STATES:
        raise TooLate(_("The round was released while you judged. Your earlier answers count."))
    # An equal vote was already returned before this check, so this one differs.
    if any(vote.validator_id == validator.pk for vote in votes):
        raise TooLate(_("You've already judged this example. Your first answer counts."))
    pace.check_was_seen(lease.leased_at)
    # A late answer still counts while the example needs votes and no cap is reached.
    if lease.until <= timezone.now():
        if not QueueItem.objects.filter(pk=example.pk, still_needed__gt=0).exists():
            raise TooLate(_("Your 15 minutes ran out, and others have decided this example."))
        if not vote_caps.has_votes_left(validator, example.round.task, example.round_id):
            raise CapReached(
                _("You've given the maximum number of votes for one person in this round.")
            )
        if not build_part_finder(validator, example.round.task)(example.round_id).has_room():
            raise CapReached(_("You've judged all the examples assigned to you."))


def undo_validation(*, validator: Annotator, validation: Validation | GoldAnswer) -> Example:
    """Undo one's own vote within ten minutes, and lease the example again.

    If the vote decided the example, others judge it instead, because the public numbers may have
    revealed the author's label. Refused once the correct answer was partly revealed, or a study's
    work was submitted.

    Locks the person's places in studies and the example; for gold also the validator. Takes
    a place again unless others have taken the remaining ones. Raises TooLate, NotAssigned,
    NotBlind, CapReached, Submitted.
    """
    example, task = validation.example, validation.example.round.task
    blind.check_may_judge(validator, task)
    lease = _get_lease(validator, example)
    # An undone vote counts as a skip; otherwise undoing would circumvent the cap.
    _check_may_pass(validator, task)
    now = timezone.now()
    with transaction.atomic():
        # Before the example's lock: places of studies are always locked first.
        check_not_submitted(validator, task, validation.created_at)
        locked_example = lock_example(example)
        if lease.is_gold:
            gold_pause.lock_answers(validator)
        if blind.is_final(validation, task):
            raise TooLate(_("You've seen the right answer, so you can't change yours."))
        own_vote = type(validation).objects.filter(
            pk=validation.pk, validator=validator, created_at__gt=now - queue.UNDO_TIME
        )
        # Checked before the vote is deleted, which may also undo the decision.
        has_decided = not lease.is_gold and is_decided_since(locked_example, validation.created_at)
        # Nothing was deleted: another tab was first, or the ten minutes are over.
        if not own_vote.delete()[0]:
            raise TooLate(_("You can undo an answer only for ten minutes, so this one is final."))
        if not lease.is_gold:
            derive_consensus(locked_example, list(locked_example.validations.all()))
        if has_decided:
            # So that the queue never gives it to this person again.
            note_shown_examples(
                annotator=validator, examples=[locked_example.pk], way=ShownWay.NUMBERS
            )
            JudgeLease.objects.filter(pk=lease.pk).update(undone_at=now)
            return locked_example
        # Only a free place: one that others have taken since stays theirs.
        taken_count = QueueItem.objects.filter(pk=locked_example.pk, free__gt=0).update(
            free=F("free") - 1
        )
        JudgeLease.objects.filter(pk=lease.pk).update(
            takes_place=bool(taken_count), leased_at=now, until=now + LEASE_TIME, undone_at=now
        )
    return locked_example
