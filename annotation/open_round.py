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
from tasks.rounds.states import close_if_due

LIVE_STATES = (Round.State.OPEN, Round.State.PAUSED)


def find_live_round(task: Task) -> Round | None:
    """Return the task's open or paused round, or None.

    A round whose end has passed is closed first.
    """
    return next((round for round in _find_rounds(task) if round.state in LIVE_STATES), None)


def find_round_to_write(task: Task, annotator: Annotator) -> Round | None:
    """Return a closed round in which the person may still finish a text, else the live one."""
    rounds = _find_rounds(task)
    if rounds:
        is_offered = get_offer_check(annotator, task)
        rounds = [round for round in rounds if is_offered(round.pk)]
    for round in rounds:
        # A closed round goes first, because the time to finish in it is short.
        if round.is_being_written:
            current = selectors.find_current_assignment(annotator, round)
            if current and selectors.may_send(current):
                return round
    return next((round for round in rounds if round.state in LIVE_STATES), None)


def find_round_to_begin(task: Task, annotator: Annotator) -> Round | None:
    """Return the live round, or None if the person's study chose other rounds."""
    round = find_live_round(task)
    return round if round and get_offer_check(annotator, task)(round.pk) else None


def is_at_work(annotator: Annotator, task: Task) -> bool:
    """Return whether the person may work in the task now.

    Panel participants may only while they work in a study of the task. One query for them,
    none for other people.
    """
    if annotator.user is None or not annotator.user.is_of_panel:
        return True
    # Only accounts of a panel cost this query.
    return has_study_at_work(annotator, task)


def check_at_work(annotator: Annotator, task: Task) -> None:
    """Check that the person may work in the task now. Raises NotAllowed."""
    if not is_at_work(annotator, task):
        raise NotAllowed(_("No study asks you to work here now."), code="study")


def get_offer_check(annotator: Annotator, task: Task) -> Callable[[int], bool]:
    """Return a function that tells whether a round, given by id, is offered to the person.

    In a study, only its chosen rounds are offered. Panel participants are offered none
    while they are not working in a study.
    """
    if not is_at_work(annotator, task):
        return lambda _round: False
    chosen = find_study_rounds(annotator, task)
    return lambda round: not chosen or round in chosen


def describe_closed_round(round: Round) -> str:
    """Return the message that a round in its state accepts no examples."""
    words = {
        Round.State.DRAFT: _("Round %(number)d is draft."),
        Round.State.READY: _("Round %(number)d is ready."),
        Round.State.PAUSED: _("Round %(number)d is paused."),
        Round.State.CLOSED: _("Round %(number)d is closed."),
        Round.State.RELEASED: _("Round %(number)d is released."),
    }
    return words[Round.State(round.state)] % {"number": round.number}


def _find_rounds(task: Task) -> list[Round]:
    """Return the live round and recently closed ones in which texts may be finished.

    One query, more if a round's end has passed.
    """
    finishing = Q(state=Round.State.CLOSED, writing_until__gt=timezone.now())
    rounds = task.rounds.filter(Q(state__in=LIVE_STATES) | finishing)
    return [close_if_due(round=round) if round.is_past_end else round for round in rounds]
