"""Writes to attempts and examples, from the submitted text to the stored row and beyond.

1. `begin_attempt` stores what a person submits, unless a rule refuses it.
2. `ask_targets` asks the round's targets, without a transaction.
3. `finish_attempt` stores the example with their answers, or `fail_attempt` stores the reason why
   there is none. This runs in the request that asked, or in a thread if the answers come too late.
4. The author decides an undecided verdict, or explains or retracts the example.

The locks are listed in docs/locking.md.
"""

import logging
import threading
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, cast

from django.db import IntegrityError, connection, transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation import selectors
from annotation.attempts.conversation_services import (
    add_opening_turns,
    check_answered,
    find_stored_answer,
)
from annotation.attempts.heartbeats import FIRST_LEASE_TIME, get_lease_renewer
from annotation.attempts.live_targets import (
    Answers,
    ask_live_targets,
    build_model_inputs,
    get_failure_code,
    list_payers,
    record_spending,
    record_target_failure,
    wait_for_answers,
)
from annotation.attempts.own_copies import check_not_own_copy
from annotation.attempts.support_record import describe_program_support, describe_support
from annotation.context_picking import assignments
from annotation.context_picking.services import check_supported_inputs, save_draft
from annotation.models import (
    Assignment,
    Attempt,
    Conversation,
    Example,
    TargetOutput,
    TextKey,
)
from annotation.moderation import mark_retracted
from annotation.open_round import check_may_work_now, describe_closed_round
from annotation.refusals import (
    CapReached,
    DuplicateExample,
    NotAllowed,
    ProgramsRefused,
    RoundClosed,
    StaleForm,
)
from annotation.rules.near_duplicates import (
    are_alike,
    compute_band_keys,
    get_compared_text,
    get_written_text,
)
from annotation.rules.writing_conditions import record_signs
from annotation.submitted_work import check_may_retract
from annotation.verdict.outcome import (
    Ensemble,
    Outcome,
    judge_outputs,
)
from core.accounts.models import Annotator
from core.data.prepared import PreparedRead, Slot
from core.numbers import format_percent
from core.telemetry.tracing import open_span
from tasks.contexts.files import hash_context
from tasks.contexts.media.services import keep_media, list_digests
from tasks.models import Round, RoundTarget, Task
from tasks.rounds.states import close_round_if_due
from tasks.selectors import list_targets
from tasks.targets.connect import get_version_id
from tasks.targets.endpoints.base import EndpointError, Prediction

logger = logging.getLogger(__name__)
State = Attempt.State
# Locks; for transactions only.
# Only the lock is needed, so no column but the id is read.
AUTHOR_LOCK = PreparedRead(
    lambda: Annotator.objects.select_for_update(of=("self",)).only("pk").filter(pk=Slot("pk"))
)
ROUND_LOCK = PreparedRead(
    lambda: Round.objects.select_for_update(of=("self",)).filter(pk=Slot("pk"))
)
ROUND_TARGETS = PreparedRead(lambda: RoundTarget.objects.filter(round=Slot("round")))


class _NotStored(Exception):
    """Raised to roll back the storing of an example.

    Its message is the attempt's failure; empty if the attempt has already ended.
    """


def begin_attempt(
    *,
    annotator: Annotator,
    assignment: Assignment,
    key: uuid.UUID,
    inputs: Mapping[str, Any],
    parent: Example | None = None,
    typing: Mapping[str, float] | None = None,
    takes_challenge: bool = False,
    by_program: bool = False,
) -> tuple[Attempt, bool]:
    """Return the attempt with this key, and whether the caller must ask the targets.

    1. Close a round whose end has passed.
    2. Lock the annotator, so that caps also hold across two tabs.
    3. For a repeated key, return the first attempt. If it failed, the caller asks again.
    4. Check that the person may submit this text. A near duplicate of their own text on the same
       context counts as an edit of it; on another context it is refused.

    Raises RoundClosed, StaleForm, CapReached, DuplicateExample, ProgramsRefused, NotAllowed,
    Invalid.
    """
    if by_program:
        check_programs_write(assignment.round.task)
    # Outside the transaction: one that holds an annotator never takes a round.
    if assignment.round.is_past_end:
        assignment.round = close_round_if_due(round=assignment.round)
    with transaction.atomic():
        # Of two tabs the second waits here, and then counts the first one's attempt.
        AUTHOR_LOCK.get(pk=annotator.pk)
        usage = selectors.count_usage(assignment, hash_context(dict(inputs)), key)
        attempt = Attempt.objects.get(pk=usage.attempt) if usage.attempt else None
        # A double click: the first request asks, and this one shows the same attempt.
        if attempt and attempt.state != State.FAILED and not attempt.is_lost:
            return attempt, False
        text = get_written_text(assignment.round.task.config, inputs)
        _check_may_write(annotator, assignment, usage, inputs)
        own_copy, other_copy = check_not_own_copy(assignment, inputs)
        # `asked_at` tells this asking from an earlier one, `held_until` covers the page's wait.
        values = {
            "assignment": assignment,
            "inputs": dict(inputs),
            "parent": parent or own_copy,
            # Whose text is to be changed.
            "resembles": None if assignment.parent_id else other_copy,
            "typing": typing,
            "challenge": assignment.challenge if takes_challenge else None,
            "support": describe_program_support(assignment)
            if by_program
            else describe_support(assignment, text),
            "by_program": by_program,
            "state": State.ASKING,
            "failure": "",
            "asked_at": timezone.now(),
            "held_until": timezone.now() + FIRST_LEASE_TIME,
        }
        if attempt is None:
            return Attempt.objects.create(annotator=annotator, key=key, **values), True
        return _restart_attempt(attempt, values), True


def _retain_media(assignment: Assignment, inputs: Mapping[str, Any], *, is_used: bool) -> None:
    """Store the files in the inputs for another day or, if `is_used`, permanently.

    Raises Invalid if a file no longer exists.
    """
    keep_media(task=assignment.round.task, digests=list_digests(inputs.values()), is_used=is_used)


def _restart_attempt(attempt: Attempt, values: Mapping[str, Any]) -> Attempt:
    # The author's lock is held, so no second tab asks again at the same time.
    Attempt.objects.filter(pk=attempt.pk).update(**values)
    attempt = Attempt.objects.get(pk=attempt.pk)
    # The caller's has its round and task, which would be read again.
    attempt.assignment = values["assignment"]
    return attempt


def check_programs_write(task: Task) -> None:
    """Check that programs may write in the task. Raises ProgramsRefused."""
    if not task.config.programs.write:
        raise ProgramsRefused(
            "Only people write in this task: its configuration says `programs: {write: false}`."
        )


def _check_may_write(
    annotator: Annotator,
    assignment: Assignment,
    usage: selectors.UsageCounts,
    inputs: Mapping[str, Any],
) -> None:
    round, limits = assignment.round, assignment.round.task.config.limits
    check_may_work_now(annotator, round.task)
    check_supported_inputs(round.task.config)
    if not selectors.may_submit_example(assignment):  # `finish_attempt` looks again, under the lock
        raise RoundClosed(describe_closed_round(round))
    # The form is of an assignment that another tab has left.
    if assignment.left_at is not None:
        raise StaleForm(
            _(
                "You've started another example since you opened this page. Reload it to "
                "continue there."
            )
        )
    usage, submitted_texts = selectors.add_submitting_texts(assignment, usage)
    text = get_compared_text(round.task.config, inputs)
    # Two tabs could otherwise store two near copies, as neither finds the other's row yet.
    if any(are_alike(text, other) for other in submitted_texts):
        raise DuplicateExample(
            _(
                "You're already sending this text from another window. Wait for the "
                "model's answer there."
            )
        )
    # The constraint example_one_text would refuse it too, but only after the targets are asked.
    if usage.same_text_id:
        message = _("You've already sent this text. Change it to try again.")
        raise DuplicateExample(message, Example.objects.get(pk=usage.same_text_id))
    _check_turns_match(assignment, inputs)
    # An example that was sent back is replaced, so it takes no further share.
    if assignment.mends is None or not selectors.is_sent_back(assignment.mends):
        _check_caps(assignment, usage, len(submitted_texts))
    if usage.today_count >= limits.tries_per_day:
        message = _("You've used today's %(number)d tries. The limit resets at 00:00 UTC.")
        raise CapReached(message % {"number": limits.tries_per_day})
    # The files must last until the targets have answered; Invalid is raised where one is gone.
    _retain_media(assignment, inputs, is_used=False)


def _check_caps(
    assignment: Assignment, usage: selectors.UsageCounts, submitting_count: int
) -> None:
    """Check the caps per context, assignment and round. Raises CapReached.

    submitting_count: number of other texts that are being submitted.
    """
    round, limits = assignment.round, assignment.round.task.config.limits
    if usage.context_count >= limits.tries_per_context:
        message = ngettext(
            "You've used your %(number)d try on this text.",
            "You've used your %(number)d tries on this text.",
            limits.tries_per_context,
        )
        has_more = round.task.config.context_role != "nothing"
        advice = (
            _("Choose another text.") if has_more else _("You can judge other people's examples.")
        )
        raise CapReached(f"{message % {'number': limits.tries_per_context}} {advice}")
    if assignments.is_work_done(assignment, submitting_count):
        raise CapReached(_("You've written all the examples assigned to you. Thank you!"))
    if selectors.count_left_in_round(round, usage.round_count) == 0:
        message = _(
            "You've written %(share)s of this round's examples, the maximum for one person. "
            "Thank you! You can judge other people's examples."
        )
        raise CapReached(message % {"share": format_percent(limits.share_of_round, 0)})


def _check_turns_match(assignment: Assignment, inputs: Mapping[str, Any]) -> None:
    """Check that the inputs match the server's conversation, with an answer. Raises StaleForm."""
    if talk := assignment.round.task.config.talk:
        check_answered(assignment)
        find_stored_answer(assignment, inputs[talk.name], list_targets(assignment.round))


# Ask


def ask_targets(attempt: Attempt) -> Attempt:
    """Ask the targets and store their answers; return the attempt as it is after the wait.

    A conversation already contains its answer. If the wait ends first, a pool thread stores
    the answers later. No transaction is open while the targets are asked.
    """
    assignment = attempt.assignment
    entries = list_targets(assignment.round)
    # A round without targets collects examples too; their outcome is no_model.
    if not entries:
        return _finish_with_predictions(attempt, [], [])
    if talk := assignment.round.task.config.talk:
        try:
            prediction = find_stored_answer(assignment, attempt.inputs[talk.name], entries)
        except StaleForm:  # another window went on since the attempt began
            fail_attempt(attempt=attempt, reason="changed")
            attempt.refresh_from_db()
            return attempt
        return _finish_with_predictions(attempt, entries, [prediction])
    inputs = build_model_inputs(assignment.round, assignment.context.fields, attempt.inputs)
    try:
        pending_answers = ask_live_targets(entries, inputs)
    except EndpointError as error:
        return _store_error(attempt, entries, error)
    if wait_for_answers(pending_answers):
        return _finish_or_fail(attempt, entries, pending_answers)
    # Before the answers are stored, which empties the draft.
    save_draft(assignment=assignment, inputs=attempt.inputs)
    _finish_or_fail_later(attempt, entries, pending_answers)
    return attempt


def _finish_or_fail(
    attempt: Attempt, entries: Sequence[RoundTarget], pending_answers: Answers
) -> Attempt:
    # Also calls without a usable answer cost their payer.
    record_spending(list_payers(entries), pending_answers)
    if error := pending_answers.exception():
        return _store_error(attempt, entries, error)
    try:
        return _finish_with_predictions(attempt, entries, pending_answers.result())
    except Exception:  # nobody shall wait for an attempt that will never be stored
        fail_attempt(attempt=attempt, reason="rubbish")
        raise


def _finish_or_fail_later(
    attempt: Attempt, entries: Sequence[RoundTarget], pending_answers: Answers
) -> None:
    asking_thread_id = threading.get_ident()
    # Until then this process renews the attempt, so that no page takes it for lost.
    get_lease_renewer().start_renewing(attempt.pk)

    def finish_or_fail(_done: object) -> None:
        try:
            _finish_or_fail(attempt, entries, pending_answers)
        except Exception:
            logger.exception("attempt %s could not be stored", attempt.uuid)
            raise
        finally:
            get_lease_renewer().stop_renewing(attempt.pk)
            # A thread of the pool has a connection of its own, which no request closes. If the
            # answers were there already, this runs in the asking thread, whose request needs it.
            if threading.get_ident() != asking_thread_id:
                connection.close()

    pending_answers.add_done_callback(finish_or_fail)


def _finish_with_predictions(
    attempt: Attempt, entries: Sequence[RoundTarget], predictions: Sequence[Prediction]
) -> Attempt:
    example = finish_attempt(attempt=attempt, targets=entries, predictions=predictions)
    if example is None:  # it ended elsewhere or was refused; its row has the state and the reason
        attempt.refresh_from_db()
    else:
        attempt.state, attempt.example = State.DONE, example
    return attempt


def _store_error(attempt: Attempt, entries: Sequence[RoundTarget], error: BaseException) -> Attempt:
    reason = get_failure_code(error)
    logger.warning("attempt %s: %s: %s", attempt.uuid, reason, error)
    record_target_failure(error, [entry.target for entry in entries])
    fail_attempt(attempt=attempt, reason=reason)
    attempt.refresh_from_db()
    return attempt


# Store


@open_span("store example")
def finish_attempt(
    *, attempt: Attempt, targets: Sequence[RoundTarget], predictions: Sequence[Prediction]
) -> Example | None:
    """Judge the targets' answers and store the example, at most once.

    predictions: in the order of `targets`; both are empty for a round without targets.
    Locks the round, so that no example enters a closed one, and closes the round if the
    example exhausts its budget. Authors who were writing when the round closed may store
    one more. Returns None if the attempt is no longer in progress or could not be stored
    (its `failure` says why).
    """
    inputs = add_opening_turns(attempt.assignment, attempt.inputs)
    outcome = judge_answers(attempt.assignment.round, inputs, predictions)
    # Outside the transaction, because a new version costs a call to the target.
    versions = [
        get_version_id(entry.target, prediction.fingerprint)
        for entry, prediction in zip(targets, predictions, strict=True)
    ]
    try:
        with transaction.atomic():
            # 1. Lock, in the order of docs/locking.md, and check again what may have changed.
            replaced_example = _lock_replaced_example(attempt.assignment)
            round = _lock_accepting_round(attempt)
            _check_same_targets(round, targets)
            # 2. Store the example and the answers.
            example = _store_example(attempt, inputs, outcome)
            outputs = build_outputs(example, targets, predictions, outcome)
            for output, version in zip(outputs, versions, strict=True):
                output.version_id = version
            TargetOutput.objects.bulk_create(outputs)
            # Undone if it was failed or asked again in the meantime, so that it is stored once.
            # 3. End the attempt.
            if not _select_asking_row(attempt).update(state=State.DONE, example=example):
                raise _NotStored
            if round.task.config.talk:  # the next example is another conversation
                Conversation.objects.filter(assignment=attempt.assignment_id).delete()
            # 4. Tidy up: a draft that stays would fill the next form with this text.
            if attempt.assignment.draft:
                assignment = Assignment.objects.filter(pk=attempt.assignment_id)
                assignment.update(draft={}, draft_saved_at=None)
            if replaced_example:
                mark_retracted(replaced_example)
            # The example may have been the last one of the round's budget.
            close_round_if_due(round=round)
    except _NotStored as failure:
        if reason := str(failure):
            fail_attempt(attempt=attempt, reason=reason)
        return None
    except IntegrityError:  # example_one_text: another tab was first with the same text
        fail_attempt(attempt=attempt, reason="duplicate")
        return None
    # The page shows them next, and need not read them.
    example._prefetched_objects_cache = {"target_outputs": outputs}  # type: ignore[attr-defined]
    return example


def _lock_accepting_round(attempt: Attempt) -> Round:
    """Lock the round and return it.

    Raises _NotStored unless it is open, or closed but the person may still finish. A closed
    round accepts one example per person, which ends their assignment.
    """
    unlocked_round = attempt.assignment.round
    round = ROUND_LOCK.get(pk=unlocked_round.pk)
    # Known already; through the locked row it would be read once more.
    round.task = unlocked_round.task
    if round.state == Round.State.OPEN:
        return round
    own_assignment = Assignment.objects.filter(
        annotator=attempt.annotator_id, round=round, left_at__isnull=True
    )
    # The assignment ends with this update, so a second example of the person finds none.
    if not (round.is_being_written and own_assignment.update(left_at=timezone.now())):
        raise _NotStored("closed")
    return round


def _lock_replaced_example(assignment: Assignment) -> Example | None:
    """Lock the example that the new one replaces, and return it.

    Call it before the round is locked, because votes lock in this order. A request that has locked
    the round can still store a similar text that refers to the example. Returns None if no example
    is replaced, or if it is no longer sent back.
    """
    if assignment.mends_id is None:
        return None
    rows = Example.objects.select_for_update(of=("self",), no_key=True)
    locked_example = rows.get(pk=assignment.mends_id)
    locked_example.round = assignment.round
    return locked_example if selectors.is_sent_back(locked_example) else None


def _check_same_targets(round: Round, targets: Sequence[RoundTarget]) -> None:
    """Check that the round still has the targets that were asked. Raises _NotStored.

    Call it with the round locked.
    """
    current_targets = {
        (entry.pk, entry.target_id) for entry in ROUND_TARGETS.fetch_rows(round=round.pk)
    }
    if current_targets != {(entry.pk, entry.target_id) for entry in targets}:
        raise _NotStored("replaced")


def judge_answers(
    round: Round, inputs: Mapping[str, Any], predictions: Sequence[Prediction]
) -> Outcome:
    """Return the verdict on an example under the rules of its round. Stores nothing."""
    return judge_outputs(
        expected=inputs,
        outputs=[prediction.output for prediction in predictions],
        rule=round.task.config.verdict,
        ensemble=cast(Ensemble, round.rule),
        language=round.task.config.language,
    )


def build_outputs(
    example: Example,
    targets: Sequence[RoundTarget],
    predictions: Sequence[Prediction],
    outcome: Outcome,
) -> list[TargetOutput]:
    """Return unsaved rows of the targets' answers in order, without the targets' versions."""
    return [
        TargetOutput(
            example=example,
            target=entry.target,
            position=index,
            output=dict(prediction.output),
            prob=None if prediction.prob is None else dict(prediction.prob),
            seconds=prediction.seconds,
            fooled=verdict.fooled,
            score=verdict.score,
        )
        for index, (entry, prediction, verdict) in enumerate(
            zip(targets, predictions, outcome.target_verdicts, strict=True)
        )
    ]


def _store_example(attempt: Attempt, inputs: Mapping[str, Any], outcome: Outcome) -> Example:
    assignment, config = attempt.assignment, attempt.assignment.round.task.config
    example = Example.objects.create(
        uuid=attempt.uuid,
        round=assignment.round,
        context=assignment.context,
        # Of the assignment, which is deleted some time after the round.
        context_probability=assignment.context_probability,
        context_choices=assignment.context_choices,
        annotator=attempt.annotator,
        # What the author chose to edit goes before what they were asked to replace or to change.
        parent=attempt.parent or assignment.mends or assignment.parent,
        resembles=attempt.resembles,
        typing=attempt.typing,
        # Programs don't see the page, so no condition holds for them.
        signs=None
        if attempt.by_program
        else record_signs(
            assignment.writing_condition, get_written_text(config, inputs), assignment.pk
        ),
        challenge=attempt.challenge,
        support=attempt.support,
        by_program=attempt.by_program,
        goal=assignment.goal,
        config_number=assignment.round.task.config_number,
        inputs=dict(inputs),
        # Of what was sent, without a system message: `begin_attempt` looks for this digest.
        digest=hash_context(attempt.inputs),
        outcome=outcome.status,
        decided_by=Example.DecidedBy.AUTHOR if config.is_decided_by_author else "rule",
        shown_at=assignment.assigned_at,
    )
    _retain_media(assignment, attempt.inputs, is_used=True)
    text = get_compared_text(config, attempt.inputs)
    columns = {"example_id": example.pk, "round_id": example.round_id}
    TextKey.objects.bulk_create(TextKey(**columns, key=key) for key in compute_band_keys(text))
    return example


def fail_attempt(*, attempt: Attempt, reason: str) -> None:
    """Mark an attempt as failed and make its text the draft; it does not count as a try.

    An attempt that has ended is unchanged.
    """
    # Without a lock: of a late answer and a sweeper only the first finds it still asking.
    if _select_asking_row(attempt).update(state=State.FAILED, failure=reason):
        save_draft(assignment=attempt.assignment, inputs=attempt.inputs)


def _select_asking_row(attempt: Attempt) -> QuerySet[Attempt]:
    """Select the attempt's row, unless it has ended or was asked again."""
    # `asked_at` tells an attempt from a later one with the same key.
    return Attempt.objects.filter(pk=attempt.pk, state=State.ASKING, asked_at=attempt.asked_at)


def expire_attempt(*, attempt: Attempt) -> Attempt:
    """Mark a lost attempt as failed, and return it reloaded."""
    if attempt.is_lost:
        fail_attempt(attempt=attempt, reason="lost")
    attempt.refresh_from_db()
    return attempt


# Afterwards


def store_explanation(*, example: Example, metadata: Mapping[str, Any]) -> None:
    """Store the author's answers to the questions after the verdict; the last save wins."""
    example.metadata = dict(metadata)
    example.save(update_fields=["metadata"])


@transaction.atomic
def retract_example(*, example: Example) -> Example:
    """Retract an example; idempotent.

    Locks the author's places in studies, then the example. Raises NotAllowed if anybody has judged
    it, and WorkSubmitted if it was submitted in a study.
    """
    check_may_retract(example)
    locked_example = Example.objects.select_for_update(of=("self",)).get(pk=example.pk)
    if locked_example.retracted_at is None and selectors.is_judged(locked_example):
        raise NotAllowed(
            _("Someone has already judged this example. Ask the task owner to withdraw it.")
        )
    if locked_example.retracted_at is None:
        mark_retracted(locked_example)
    return locked_example
