"""The next step in a round's life, for people who may take that step."""

from typing import NamedTuple

from django.urls import reverse
from django.utils.translation import gettext as _

from tasks.models import Round
from tasks.permissions import Person, can_edit, can_own, can_read
from tasks.rounds.steps import build_step
from tasks.selectors import PLANNED_STATES

State = Round.State


class NextStep(NamedTuple):
    """The next thing to do with a round, and the URL of its page.

    is_closing: whether the step closes the round. That is rarely why a person opens a page.
    """

    words: str
    url: str
    is_closing: bool = False


def find_next_step(user: Person, round: Round, rounds: list[Round]) -> NextStep | None:
    """Return the next step in the round's life, or None.

    None if nothing follows, or if the person may not take the step. Also None before any round was
    opened, because the launch list then shows what to do. rounds: all rounds of the task. No query.
    """
    task = round.task
    # Releasing shows labels, so a blind owner is not led there.
    if round.state == State.CLOSED and can_own(user, task) and can_read(user, task):
        words = _("Release round %(number)s…") % {"number": round.number}
        return NextStep(words, reverse("evaluation:release", args=[task.code, round.number]))
    if not can_edit(user, task):
        return None
    # The first round of all has its own list of what is missing.
    if round.state in PLANNED_STATES and any(
        task_round.state not in PLANNED_STATES for task_round in rounds
    ):
        return _build_step(round, State.OPEN)
    if round.state == State.OPEN:
        return _build_step(round, State.CLOSED)
    is_last = round.number == max(task_round.number for task_round in rounds)
    if round.state == State.RELEASED and is_last and not task.config.has_rows_to_judge:
        return NextStep(_("Plan next round"), reverse("own:round-create", args=[task.code]))
    return None


def _build_step(round: Round, state: Round.State) -> NextStep:
    change = build_step(state, round)
    url = reverse("own:round-change", args=[round.task.code, round.number, change.action])
    return NextStep(f"{change.button}…", url, is_closing=state == State.CLOSED)
