"""Descriptions of the changes of a round's state, for the owners' pages and the admin."""

from typing import NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from tasks.models import Round
from tasks.rounds.states import NEXT_STATES

State = Round.State


class Step(NamedTuple):
    """A change of a round's state.

    action: its name in URLs. button: the button's label, in which `%(number)d` stands for the
    round's number. effect: a description.
    """

    action: str
    button: str
    effect: str


# A round is released with its dataset, on another page.
STEPS = {
    State.DRAFT: Step(
        "draft",
        gettext_noop("Return round %(number)d to draft"),
        gettext_noop("The task's page no longer says that the round opens soon."),
    ),
    State.READY: Step(
        "ready",
        gettext_noop("Mark round %(number)d as ready"),
        gettext_noop("Setup is complete, but people can't write yet."),
    ),
    State.OPEN: Step(
        "open",
        gettext_noop("Open round %(number)d"),
        gettext_noop("People can write. You can no longer change the rule, models and fields."),
    ),
    State.PAUSED: Step(
        "pause",
        gettext_noop("Pause round %(number)d"),
        gettext_noop("Writing stops until you open it again. Drafts are kept."),
    ),
    # The owners' page says the same with numbers (`dynabench.manage.round_cards.describe_closing`).
    State.CLOSED: Step(
        "close",
        gettext_noop("Close round %(number)d"),
        gettext_noop("People who are writing get up to 15 minutes to finish. Judging continues."),
    ),
}


def find_state(action: str) -> Round.State | None:
    """Return the state that an action in a URL leads to, or None."""
    for state, step in STEPS.items():
        if step.action == action:
            return state
    return None


def build_step(state: Round.State, round: Round) -> Step:
    """Return the translated step to a state, with the round's number in its button."""
    step = STEPS[state]
    return Step(step.action, _(step.button) % {"number": round.number}, _(step.effect))


def list_next_steps(round: Round) -> dict[Round.State, Step]:
    """Return the possible steps of the round, by the state to which each leads."""
    return {
        State(state): build_step(State(state), round)
        for state in NEXT_STATES[round.state]
        if state in STEPS
    }
