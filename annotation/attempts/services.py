"""Writes about assignments, attempts and examples. The locks are listed in docs/locking.md."""

import random
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation import selectors
from annotation.aids.challenges import next_challenge
from annotation.aids.record import support_of
from annotation.attempts.heartbeats import FIRST_HOLD
from annotation.models import Assignment, Attempt, Example, GatePass, TargetOutput, TextKey
from annotation.open_round import not_open
from annotation.rules.near_duplicates import are_alike, band_keys, written_text
from annotation.rules.outcome import Ensemble, Outcome, TargetVerdict, judge, resolve
from dynabench.accounts.models import Annotator
from tasks.config.schema import TaskConfig
from tasks.contexts.files import context_digest
from tasks.models import Context, Round, RoundTarget, Task
from tasks.rounds.states import close_if_due
from tasks.targets.connect import version_of
from tasks.targets.endpoints.base import Prediction

State = Attempt.State


class Refused(Exception):
    """A write that the rules forbid; `status` is the HTTP status that says why, `code` a word."""

    status = 403
    code = "refused"

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.details = details


class RoundClosed(Refused):
    """The round does not take examples now."""

    status = 410
    code = "round_closed"


class NoContext(Refused):
    """Nothing to write about is left."""

    status = 200
    code = "no_context"


class Stale(Refused):
    """The form belongs to an assignment or a goal that was left."""

    status = 409
    code = "stale"


class CapReached(Refused):
    """Enough for this context, for today or in this round."""

    status = 429
    code = "cap"


class Duplicate(Refused):
    """The annotator wrote this text here before; details: `example`."""

    status = 422
    code = "duplicate"


class Unfinished(Refused):
    """The task has a field that does not work yet."""

    code = "unfinished"


class ForPeople(Refused):
    """The task lets people do this, and no program."""

    code = "programs"


class _Replaced(Exception):
    """The round has another target than the one that was asked."""


class _NoLongerAsking(Exception):
    """The attempt was failed or asked anew while the targets answered; undoes the transaction."""


def pass_gate(*, annotator: Annotator, task: Task) -> None:
    """Note that the annotator accepts the task's content warning; no lock."""
    GatePass.objects.get_or_create(annotator=annotator, task=task)


def check_can_be_asked(config: TaskConfig) -> None:
    """Raises Unfinished where a stored configuration asks for what no page can take."""
    if part := config.unfinished_input:
        said = _("This task asks for “%(title)s” (%(type)s), which does not work yet.")
        raise Unfinished(said % {"title": part.title, "type": part.type})


def assign(
    *, annotator: Annotator, round: Round, fresh: bool = False, minimal_edit: bool = False
) -> Assignment:
    """The annotator's assignment in the round: the current one, or with `fresh` a new one.

    Hands out the least used context and the least used goal. Locks the round, so two people who
    come at once get different contexts. Raises RoundClosed, NoContext, Unfinished.
    """
    check_can_be_asked(round.task.config)
    current = selectors.current_assignment(annotator, round)
    if current and not fresh:
        return current
    with transaction.atomic():
        locked = _open_round(round.pk)
        current = selectors.current_assignment(annotator, locked)
        if current and not fresh:
            return current
        if current:
            current.left_at = timezone.now()
            current.save(update_fields=["left_at"])
        if minimal_edit:
            return _assign_edit(annotator, locked)
        return Assignment.objects.create(
            annotator=annotator,
            round=locked,
            context=_next_context(locked, current),
            goal=_next_goal(locked),
            challenge=next_challenge(locked),
        )


def _open_round(pk: int) -> Round:
    """The locked round. Raises RoundClosed unless it is open."""
    round = Round.objects.select_for_update(of=("self",)).select_related("task").get(pk=pk)
    if round.state != Round.State.OPEN:
        raise RoundClosed(not_open(round), round=round)
    return round


def _next_context(round: Round, left: Assignment | None) -> Context:
    candidates = list(selectors.least_used_contexts(round)[:2])
    if not candidates:
        said = _("Nothing is left to write about in round %(number)d.")
        raise NoContext(said % {"number": round.number})
    if left and len(candidates) == 2 and candidates[0].pk == left.context_id:
        return candidates[1]
    return candidates[0]


def _next_goal(round: Round, after: str = "") -> str:
    """The goal that was handed out least, by chance among equals; never `after` if there is one."""
    choices = [value for value in round.task.config.goal_choices if value != after]
    if not choices:
        return after
    uses = selectors.goal_uses(round)
    fewest = min(uses.get(value, 0) for value in choices)
    return random.choice([value for value in choices if uses.get(value, 0) == fewest])


def _assign_edit(annotator: Annotator, round: Round) -> Assignment:
    parent = selectors.parent_candidates(annotator, round).select_related("context").first()
    if parent is None:
        raise NoContext(_("Nobody else has written an example here yet that you could change."))
    return Assignment.objects.create(
        annotator=annotator,
        round=round,
        context=parent.context,
        goal=_next_goal(round, after=parent.goal),
        parent=parent,
        challenge=next_challenge(round),
    )


def change_goal(*, assignment: Assignment) -> Assignment:
    """Draw another goal for the same context. Locks the round, as handing out does."""
    with transaction.atomic():
        round = _open_round(assignment.round_id)
        assignment.goal = _next_goal(round, after=assignment.goal)
        assignment.save(update_fields=["goal"])
    return assignment


def save_draft(*, assignment: Assignment, inputs: Mapping[str, Any]) -> datetime:
    """Keep what was typed so far; the last save wins.

    Who was writing when a round closed is known by `draft_saved_at`, which stays as it is then.
    """
    now = timezone.now()
    assignment.draft = dict(inputs)
    if assignment.round.state != Round.State.CLOSED:
        assignment.draft_saved_at = now
    assignment.save(update_fields=["draft", "draft_saved_at"])
    return now


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
    """The attempt with this key, and whether the caller is the one who must ask the targets.

    A text that is nearly the same as an own one on the same context counts as an edit of it; on
    another context it is refused. Locks the annotator, so that caps hold for two tabs. A repeated
    key returns the first attempt; a failed one may be asked again. A round whose end has come is
    closed first. Raises RoundClosed, Stale, CapReached, Duplicate, ForPeople.
    """
    if by_program:
        check_programs_write(assignment.round.task)
    if assignment.round.is_past_end:
        assignment.round = close_if_due(round=assignment.round)
    with transaction.atomic():
        Annotator.objects.select_for_update(of=("self",)).values_list("pk").get(pk=annotator.pk)
        used = selectors.used(assignment, context_digest(dict(inputs)), key)
        attempt = Attempt.objects.get(pk=used.attempt) if used.attempt else None
        if attempt and attempt.state != State.FAILED and not attempt.is_lost:
            return attempt, False
        text = written_text(assignment.round.task.config, inputs)
        _check_may_write(assignment, used, text)
        own, other = selectors.resembling(assignment, text)
        if own and own.context_id != assignment.context_id:
            raise _written_before(own)
        asked = {
            "assignment": assignment,
            "inputs": dict(inputs),
            "parent": parent or own,
            "resembles": None if assignment.parent_id else other,  # whose text is to be changed
            "typing": typing,
            "challenge": assignment.challenge if takes_challenge else None,
            "support": None if by_program else support_of(assignment, text),
            "by_program": by_program,
            "state": State.ASKING,
            "failure": "",
            "asked_at": timezone.now(),
            "held_until": timezone.now() + FIRST_HOLD,
        }
        if attempt is None:
            return Attempt.objects.create(annotator=annotator, key=key, **asked), True
        return _asked_anew(attempt, asked), True


def _asked_anew(attempt: Attempt, asked: Mapping[str, Any]) -> Attempt:
    Attempt.objects.filter(pk=attempt.pk).update(**asked)
    attempt = Attempt.objects.get(pk=attempt.pk)
    attempt.assignment = asked["assignment"]
    return attempt


def _written_before(own: Example) -> Duplicate:
    said = _("You wrote this on %(day)s. Try a different idea.")
    return Duplicate(said % {"day": date_format(own.created_at, "j M")}, example=own)


def check_programs_write(task: Task) -> None:
    """Raises ForPeople where the configuration does not let programs write."""
    if not task.config.programs.write:
        raise ForPeople(
            "Only people write in this task: its configuration says `programs: {write: false}`."
        )


def _check_may_write(assignment: Assignment, used: selectors.Used, text: str) -> None:
    round, limits = assignment.round, assignment.round.task.config.limits
    check_can_be_asked(round.task.config)
    if not selectors.may_send(assignment):  # `finish_attempt` looks again, under the lock
        raise RoundClosed(not_open(round), round=round)
    if assignment.left_at is not None:
        raise Stale(_("You have begun another example since you opened this page."))
    here, today, standing, twin, sending = selectors.tries(assignment, used)
    if any(are_alike(text, other) for other in sending):
        raise Duplicate(_("You are sending this text from another window."))
    if twin:
        said = _("You sent this text before. Change it to try again.")
        raise Duplicate(said, example=Example.objects.get(pk=twin))
    if here >= limits.tries_per_context:
        said = ngettext(
            "You have used your %(number)d try here.",
            "You have used your %(number)d tries here.",
            limits.tries_per_context,
        )
        has_more = round.task.config.gives != "nothing"
        go_on = _("Take another text.") if has_more else _("You can judge what others wrote.")
        raise CapReached(f"{said % {'number': limits.tries_per_context}} {go_on}")
    if today >= limits.tries_per_day:
        said = _("You have reached today's %(number)d tries (reset at 00:00 UTC).")
        raise CapReached(said % {"number": limits.tries_per_day})
    if selectors.left_in_round(round, standing) == 0:
        said = _(
            "You have written %(share)s of this round, the most for one person. "
            "Thank you! You can judge what others wrote."
        )
        raise CapReached(said % {"share": f"{limits.share_of_round:.0%}"})


def finish_attempt(
    *, attempt: Attempt, targets: Sequence[RoundTarget], predictions: Sequence[Prediction]
) -> Example | None:
    """Judge what the targets answered and store the example, once.

    `predictions` are in the order of `targets`; both empty for a round without targets. Locks the
    round, so that no example enters a closed one, and closes it when the example fills its budget.
    Who was writing when the round closed may store one more, in time. Returns None when the attempt
    is no longer asking, or could not be stored (its `failure` says why).
    """
    outcome = judge(
        expected=attempt.inputs,
        outputs=[prediction.output for prediction in predictions],
        rule=attempt.assignment.round.task.config.verdict,
        ensemble=cast(Ensemble, attempt.assignment.round.rule),
    )
    versions = [
        version_of(entry.target, prediction.fingerprint)
        for entry, prediction in zip(targets, predictions, strict=True)
    ]
    try:
        with transaction.atomic():
            round = _round_that_takes(attempt)
            _check_asked(round, targets)
            example = _store_example(attempt, outcome)
            _store_outputs(example, outcome, targets, versions, predictions)
            if not _still_asking(attempt).update(state=State.DONE, example=example):
                raise _NoLongerAsking
            if attempt.assignment.draft:
                assignment = Assignment.objects.filter(pk=attempt.assignment_id)
                assignment.update(draft={}, draft_saved_at=None)
            close_if_due(round=round)
    except _NoLongerAsking:
        return None
    except RoundClosed:
        fail_attempt(attempt=attempt, reason="closed")
        return None
    except _Replaced:
        fail_attempt(attempt=attempt, reason="replaced")
        return None
    except IntegrityError:  # example_one_text: another tab was first with the same text
        fail_attempt(attempt=attempt, reason="duplicate")
        return None
    return example


def _round_that_takes(attempt: Attempt) -> Round:
    """The locked round. Raises RoundClosed unless it is open, or closed and the person's to finish.

    After the closing it takes one example of each person, whose assignment ends with that.
    """
    known = attempt.assignment.round
    round = Round.objects.select_for_update(of=("self",)).get(pk=known.pk)
    round.task = known.task
    if round.state == Round.State.OPEN:
        return round
    mine = Assignment.objects.filter(
        annotator=attempt.annotator_id, round=round, left_at__isnull=True
    )
    if not (round.is_being_written and mine.update(left_at=timezone.now())):
        raise RoundClosed(not_open(round), round=round)
    return round


def _check_asked(round: Round, targets: Sequence[RoundTarget]) -> None:
    """Raises _Replaced unless those asked are still the round's targets; its lock is held."""
    now = RoundTarget.objects.filter(round=round).values_list("pk", "target_id")
    if set(now) != {(entry.pk, entry.target_id) for entry in targets}:
        raise _Replaced


def _store_outputs(
    example: Example,
    outcome: Outcome,
    targets: Sequence[RoundTarget],
    versions: Sequence[int],
    predictions: Sequence[Prediction],
) -> None:
    outputs = TargetOutput.objects.bulk_create(
        TargetOutput(
            example=example,
            target=entry.target,
            version_id=version,
            position=place,
            output=dict(prediction.output),
            prob=dict(prediction.prob) if prediction.prob is not None else None,
            seconds=prediction.seconds,
            fooled=verdict.fooled,
            score=verdict.score,
        )
        for place, (entry, version, prediction, verdict) in enumerate(
            zip(targets, versions, predictions, outcome.per_target, strict=True)
        )
    )
    # The page shows them next, and need not read them.
    example._prefetched_objects_cache = {"target_outputs": outputs}  # type: ignore[attr-defined]


def _store_example(attempt: Attempt, outcome: Outcome) -> Example:
    assignment = attempt.assignment
    example = Example.objects.create(
        uuid=attempt.uuid,
        round=assignment.round,
        context=assignment.context,
        annotator=attempt.annotator,
        parent=attempt.parent or assignment.parent,
        resembles=attempt.resembles,
        typing=attempt.typing,
        challenge=attempt.challenge,
        support=attempt.support,
        by_program=attempt.by_program,
        goal=assignment.goal,
        inputs=attempt.inputs,
        digest=context_digest(attempt.inputs),
        outcome=outcome.status,
        shown_at=assignment.assigned_at,
    )
    text = written_text(assignment.round.task.config, attempt.inputs)
    TextKey.objects.bulk_create(
        TextKey(example_id=example.pk, round_id=example.round_id, key=key)
        for key in band_keys(text)
    )
    return example


def fail_attempt(*, attempt: Attempt, reason: str) -> None:
    """Note that the targets gave no usable answer; nothing counts, and the text is the draft.

    By conditional update.
    """
    if _still_asking(attempt).update(state=State.FAILED, failure=reason):
        save_draft(assignment=attempt.assignment, inputs=attempt.inputs)


def _still_asking(attempt: Attempt) -> QuerySet[Attempt]:
    """The attempt's row, while this very call is the one that everybody waits for."""
    return Attempt.objects.filter(pk=attempt.pk, state=State.ASKING, asked_at=attempt.asked_at)


def expire_attempt(*, attempt: Attempt) -> Attempt:
    """Fail an attempt that nobody holds any more or that is too old, and read it again."""
    if attempt.is_lost:
        fail_attempt(attempt=attempt, reason="lost")
    attempt.refresh_from_db()
    return attempt


def answer_undecided(*, example: Example, model_right: bool) -> Example:
    """The author says whether the model's answer is acceptable; only the first answer counts.

    Locks the example. Raises Refused when nothing is to be decided.
    """
    with transaction.atomic():
        locked = Example.objects.select_for_update(of=("self",)).get(pk=example.pk)
        if locked.outcome != Example.Outcome.UNDECIDED:
            raise Refused(_("This was decided before."))
        if selectors.is_judged(locked):  # what the votes mean must not change under them
            raise Refused(_("Others have judged this meanwhile, so your answer comes too late."))
        verdicts = tuple(TargetVerdict(o.fooled, o.score) for o in locked.target_outputs.all())
        locked.outcome = resolve(Outcome(None, verdicts, "undecided"), model_right).status
        locked.decided_by = Example.DecidedBy.AUTHOR
        locked.save(update_fields=["outcome", "decided_by"])
        locked.target_outputs.filter(fooled__isnull=True).update(fooled=not model_right)
    return locked


def explain(*, example: Example, metadata: Mapping[str, Any]) -> None:
    """Keep the author's answers to the questions after the verdict; the last save wins."""
    example.metadata = dict(metadata)
    example.save(update_fields=["metadata"])


def retract_example(*, example: Example) -> Example:
    """Take an example back; twice is once. Locks the example, as voting does.

    Raises Refused when somebody has judged it.
    """
    with transaction.atomic():
        locked = Example.objects.select_for_update(of=("self",)).get(pk=example.pk)
        if locked.retracted_at is None:
            if selectors.is_judged(locked):
                raise Refused(
                    _("Somebody has judged this example. Ask the task owner to withdraw it.")
                )
            locked.retracted_at = timezone.now()
            locked.save(update_fields=["retracted_at"])
    return locked
