"""The states of a round: open, pause, close and release it."""

from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from core.accounts.models import User
from core.accounts.services import log
from core.periodic import register_minutely
from tasks.budgets import find_reached_limit
from tasks.contexts.files import hash_context
from tasks.contexts.services import store_contexts
from tasks.models import Round, TargetModel
from tasks.questions import find_writers, get_used_budget, is_rehearsed
from tasks.rounds.loop import RoundError, check_unchanged, list_targets_in_loop
from tasks.selectors import count_late_writers, find_grace_end
from tasks.targets.ask_before_opening import SilentTargets, ask_targets
from tasks.targets.sample_judges import find_sample_judge

State = Round.State
NEXT_STATES: dict[str, tuple[str, ...]] = {
    State.DRAFT: (State.READY, State.OPEN),
    State.READY: (State.DRAFT, State.OPEN),
    State.OPEN: (State.PAUSED, State.CLOSED),
    State.PAUSED: (State.OPEN, State.CLOSED),
    State.CLOSED: (State.OPEN, State.RELEASED),
    State.RELEASED: (),
}
LIMIT_REACHED_MESSAGES = {
    "date": gettext_noop("The round's end date has passed. Choose a later date first."),
    "collected": gettext_noop("The round has reached its maximum tries. Raise the maximum first."),
    "fooling": gettext_noop("The round has reached its maximum catches. Raise the maximum first."),
    "money": gettext_noop("The round's budget is spent. Raise the budget first."),
}


class TargetsLoading(RoundError):
    """Raised if a round cannot open yet because its targets are still loading."""

    code = "loading"


def set_round_state(
    *,
    round: Round,
    state: str,
    actor: User | None,
    reason: str = "",
    waiting_since: datetime | None = None,
) -> Round:
    """Move a round along NEXT_STATES; return it. Locks the round.

    The targets of a round to open are called first, before any lock, so call it outside
    transactions. People who are writing when it closes have 15 minutes to finish (`writing_until`).
    People who have not written since an earlier closing get only what is left of its time. reason:
    stored in the log. waiting_since: open the round only if it has waited for its targets since
    then.

    Raises RoundError if the step does not exist. A round to open must have a context, budget left
    and targets that answer (TargetsLoading while they are loading), and no other round of the task
    may be live. In a round to release, nobody may still be writing.
    """
    log_details: dict[str, Any] = {"reason": reason} if reason else {}
    targets: list[TargetModel] = []
    if state == State.OPEN:
        # 1. Ask the targets, before any lock: they may take many seconds.
        targets, log_details["targets"] = _ask_targets_of_round(round)
    # 2. Take the step under the lock, and check again what may have changed since.
    return _change_state(round, state, actor, log_details, targets, waiting_since)


def _check_step(round: Round, state: str) -> None:
    if state not in NEXT_STATES[round.state]:
        states = {"before": _(round.state), "after": _(state)}
        raise RoundError(_("You can't change a round from %(before)s to %(after)s.") % states)


def _ask_targets_of_round(round: Round) -> tuple[list[TargetModel], dict[str, str]]:
    """Return the targets of a round that may open, and the version of each that answered, by name.

    Raises RoundError.
    """
    current_round = Round.objects.select_related("task").get(pk=round.pk)
    _check_step(current_round, State.OPEN)
    with transaction.atomic():
        _check_can_open(current_round)  # said before anybody waits for a target
    targets = list_targets_in_loop(current_round)
    try:
        return targets, ask_targets(targets, current_round)
    except SilentTargets as error:
        raise (TargetsLoading if error.is_loading else RoundError)(str(error)) from None


@transaction.atomic
def _change_state(
    round: Round,
    state: str,
    actor: User | None,
    log_details: dict[str, Any],
    targets: list[TargetModel],
    waiting_since: datetime | None,
) -> Round:
    """Change the round's state and log it. Locks the round.

    targets: the targets as loaded when they were contacted; the change is refused if they have been
    edited since.
    """
    locked_round = Round.objects.select_for_update(of=("self",)).get(pk=round.pk)
    _check_step(locked_round, state)
    # A closed round becomes a test set, and a released one a dataset.
    if state in Round.FINISHED_STATES and is_rehearsed(locked_round.task):
        raise RoundError(_("Only simulated people wrote here. Delete the pilot instead."))
    # The round was waiting for its targets, and somebody cancelled that, or began it again.
    if waiting_since not in (None, locked_round.opening_since):
        raise RoundError(_("Opening the round was cancelled."))
    changes: dict[str, Any] = {"state": state, "opening_since": None, "opening_note": ""}
    if state == State.OPEN:
        _check_can_open(locked_round)
        # Another owner changed the loop while the targets were asked.
        if {target.pk for target in targets} != {
            target.pk for target in list_targets_in_loop(locked_round)
        }:
            raise RoundError(_("The round's models changed at the same time. Open it again."))
        check_unchanged(targets)
        # A round that is opened again keeps the time of its first opening.
        changes |= {"opened_at": locked_round.opened_at or timezone.now(), "writing_until": None}
    elif state == State.CLOSED:
        now = timezone.now()
        # For the log: how many people were in the middle of an example.
        log_details["writing"] = find_writers(locked_round, now).count()
        changes |= {"closed_at": now, "writing_until": find_grace_end(locked_round, now)}
    elif state == State.RELEASED and (writer_count := count_late_writers(locked_round)):
        raise RoundError(describe_wait(locked_round, writer_count))
    for name, value in changes.items():
        setattr(locked_round, name, value)
    try:
        with transaction.atomic():
            # In a savepoint, since on PostgreSQL a failed write would end the whole transaction.
            locked_round.save(update_fields=list(changes))
    except IntegrityError:  # round_one_live
        raise RoundError(
            _("Another round was opened at the same time. Close that round first.")
        ) from None
    log(actor, f"round.{state}", locked_round, **log_details)
    return locked_round


def describe_wait(round: Round, writer_count: int) -> str:
    """Return a message that says how long a closed round waits for people who are writing."""
    return ngettext(
        "%(people)d person is still writing and has until %(time)s UTC to "
        "finish. You can release the round then, or as soon as they finish.",
        "%(people)d people are still writing and have until %(time)s UTC to "
        "finish. You can release the round then, or as soon as they finish.",
        writer_count,
    ) % {"people": writer_count, "time": f"{round.writing_until:%H:%M}"}


def reopen_released_round(*, round: Round, actor: User | None) -> Round:
    """Move a released round back to closed. The caller locks the round and deletes the release."""
    round.state = State.CLOSED
    round.save(update_fields=["state"])
    log(actor, "round.release_undone", round)
    return round


def close_round_if_due(*, round: Round) -> Round:
    """Close an open round whose end has passed or whose budget is reached; return its current row.

    Locks the round if it closes it. Counts nothing without a budget. Called whenever a budget may
    have been reached: after an example, after a vote, and by requests after the end.
    """
    if round.state != State.OPEN:
        return round
    # Without a lock: most calls find nothing to do. Whoever closes the round checks its state
    # again.
    reason = find_reached_limit(round.budget, get_used_budget(round), timezone.now())
    if reason is None:
        return round
    try:
        return set_round_state(round=round, state=State.CLOSED, actor=None, reason=reason)
    except RoundError:  # another was first
        return Round.objects.get(pk=round.pk)


def _check_can_open(round: Round) -> None:
    if round.task.config.kind == "arena":
        raise RoundError(_("Arenas don't have rounds. Import comparisons instead."))
    if round.task.config.talk and round.round_targets.count() != 1:
        raise RoundError(
            _("In conversations, people talk to one model. Choose exactly one model for the round.")
        )
    # With several answers nobody would know which one a criterion is judged for.
    if round.task.config.verdict.type == "criteria" and round.round_targets.count() != 1:
        raise RoundError(
            _("Criteria apply to the answer of one model. Choose exactly one model for the round.")
        )
    # Otherwise people would judge everything, and nobody would notice.
    sample = round.task.config.validation.sample
    if sample and find_sample_judge(round) is None:
        message = _(
            "The configuration names the judge model %(name)s. Add this model to the task, but "
            "not to the round’s models to fool."
        )
        raise RoundError(message % {"name": sample.judge})
    # Said here in words. The constraint `round_one_live` holds against two openings at once.
    other_rounds = round.task.rounds.exclude(pk=round.pk)
    live_round = other_rounds.filter(state__in=[State.OPEN, State.PAUSED]).first()
    if live_round:
        message = _("Round %(number)d is still open. Close it first.")
        raise RoundError(message % {"number": live_round.number})
    if not round.task.config.context:  # one empty context a round; an import has it retired
        empty_contexts = round.contexts.filter(digest=hash_context({}))
        if not empty_contexts.update(is_retired=False):
            store_contexts(round=round, rows=[{}], file_name="(no contexts)")
    if not round.contexts.filter(is_retired=False).exists():
        raise RoundError(_("The round has no texts. Import some first."))
    if reason := find_reached_limit(round.budget, get_used_budget(round), timezone.now()):
        raise RoundError(
            " ".join((_("The round would close immediately."), _(LIMIT_REACHED_MESSAGES[reason])))
        )


@register_minutely(
    counts="rounds closed",
    why="A round ends on its day or with its budget, even if nobody opens a page.",
)
def close_due_rounds() -> int:
    """Close open rounds whose end has passed or whose budget is reached; return how many."""
    closed_count = 0
    for round in Round.objects.filter(state=Round.State.OPEN).select_related("task"):
        if close_round_if_due(round=round).state == Round.State.CLOSED:
            closed_count += 1
    return closed_count
