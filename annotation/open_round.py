"""The round of a task in which a person writes now."""

from collections.abc import Callable

from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation import selectors
from annotation.questions import find_study_rounds, has_study_at_work
from annotation.refusals import NotAllowed
from core.accounts.models import Annotator
from tasks.models import Round, Task
from tasks.rounds.states import close_round_if_due

LIVE_STATES = (Round.State.OPEN, Round.State.PAUSED)


def find_live_round(task: Task) -> Round | None:
    """Return the task's open or paused round, or None.

    A round whose end has passed is closed first.
    """
    return next((round for round in _find_rounds(task) if round.state in LIVE_STATES), None)


def is_open_now(task: Task) -> bool:
    """Return whether a round of the task takes new examples now."""
    round = find_live_round(task)
    return round is not None and round.state == Round.State.OPEN


def find_round_to_write(task: Task, annotator: Annotator) -> Round | None:
    """Return the round in which the person may write now, or None.

    A closed round in which they may still finish a text has priority over the live one. Rounds that
    the person's study did not choose are left out.
    """
    rounds = _find_rounds(task)
    if rounds:
        is_offered = build_offer_check(annotator, task)
        rounds = [round for round in rounds if is_offered(round.pk)]
    for round in rounds:
        # A closed round goes first, because the time to finish in it is short.
        if round.is_being_written:
            current = selectors.find_current_assignment(annotator, round)
            if current and selectors.may_submit_example(current):
                return round
    # A task has one live round at most.
    return next((round for round in rounds if round.state in LIVE_STATES), None)


def find_round_to_begin(task: Task, annotator: Annotator) -> Round | None:
    """Return the live round; None if there is none, or if the person's study chose other rounds."""
    round = find_live_round(task)
    return round if round and build_offer_check(annotator, task)(round.pk) else None


def may_work_now(annotator: Annotator, task: Task) -> bool:
    """Return whether the person may work in the task now.

    Panel participants may do so only while they are working in a study of the task. Makes one query
    for them, and none for other people.
    """
    if annotator.user is None or not annotator.user.is_panel_participant:
        return True
    # Only accounts of a panel cost this query.
    return has_study_at_work(annotator, task)


def check_may_work_now(annotator: Annotator, task: Task) -> None:
    """Check that the person may work in the task now. Raises NotAllowed."""
    if not may_work_now(annotator, task):
        raise NotAllowed(
            _("You can work in this task only during your study. Open the study's page first."),
            code="study",
        )


def build_offer_check(annotator: Annotator, task: Task) -> Callable[[int], bool]:
    """Return a function that tells whether a round, given by id, is offered to the person.

    In a study, only its chosen rounds are offered. Panel participants are offered none
    while they are not working in a study.
    """
    if not may_work_now(annotator, task):
        return lambda _round: False
    chosen_round_ids = find_study_rounds(annotator, task)
    return lambda round: not chosen_round_ids or round in chosen_round_ids


def describe_closed_round(round: Round) -> str:
    """Return the message that says why the round accepts no examples."""
    messages = {
        Round.State.DRAFT: _("Round %(number)d is still a draft."),
        Round.State.READY: _("Round %(number)d isn't open yet."),
        Round.State.PAUSED: _("Round %(number)d is paused."),
        Round.State.CLOSED: _("Round %(number)d is closed."),
        Round.State.RELEASED: _("Round %(number)d is released."),
    }
    return messages[Round.State(round.state)] % {"number": round.number}


def _find_rounds(task: Task) -> list[Round]:
    """Return the live round and recently closed ones in which texts may be finished.

    Closes a live round whose end has passed, and locks it then. The round stays in the list. One
    query, and more if a round is closed.
    """
    may_be_finished = Q(state=Round.State.CLOSED, writing_until__gt=timezone.now())
    rounds = task.rounds.filter(Q(state__in=LIVE_STATES) | may_be_finished)
    return [close_round_if_due(round=round) if round.is_past_end else round for round in rounds]
