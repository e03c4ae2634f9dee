"""Which round of a task a person writes in now."""

from collections.abc import Callable

from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation import selectors
from dynabench.accounts.models import Annotator
from tasks.models import Round, Task
from tasks.rounds.states import close_if_due

LIVE = (Round.State.OPEN, Round.State.PAUSED)


def live_round(task: Task) -> Round | None:
    """The open or paused round, which is closed here when its end has come."""
    return next((round for round in _rounds(task) if round.state in LIVE), None)


def round_to_write(task: Task, annotator: Annotator) -> Round | None:
    """The closed round in which the person may still finish what they were writing; else live."""
    rounds = _rounds(task)
    if rounds:
        is_offered = offered(annotator, task)
        rounds = [round for round in rounds if is_offered(round.pk)]
    for round in rounds:
        if round.is_being_written:
            current = selectors.current_assignment(annotator, round)
            if current and selectors.may_send(current):
                return round
    return next((round for round in rounds if round.state in LIVE), None)


def offered(annotator: Annotator, task: Task) -> Callable[[int], bool]:
    """Whether a round, by its id, is offered to the person: in a study, those that it chose."""
    going = Q(campaigns__all_places__annotator=annotator)
    going &= Q(campaigns__all_places__state__in=("testing", "working", "lapsed"))
    asked = set(task.rounds.filter(going).values_list("pk", flat=True))
    return lambda round: not asked or round in asked


def not_open(round: Round) -> str:
    """The message that a round takes nothing in its state."""
    words = {
        Round.State.DRAFT: _("Round %(number)d is draft."),
        Round.State.READY: _("Round %(number)d is ready."),
        Round.State.PAUSED: _("Round %(number)d is paused."),
        Round.State.CLOSED: _("Round %(number)d is closed."),
        Round.State.RELEASED: _("Round %(number)d is released."),
    }
    return words[Round.State(round.state)] % {"number": round.number}


def _rounds(task: Task) -> list[Round]:
    """The live round and those that closed lately; one query unless a round's end has come."""
    finishing = Q(state=Round.State.CLOSED, writing_until__gt=timezone.now())
    rounds = task.rounds.filter(Q(state__in=LIVE) | finishing)
    return [close_if_due(round=round) if round.is_past_end else round for round in rounds]
