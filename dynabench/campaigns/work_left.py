"""Finds out whether the site has work left for somebody, by offering it to them."""

from collections.abc import Callable

from annotation import selectors as writing
from annotation.care.services import get_care
from annotation.context_picking.services import assign
from annotation.open_round import find_round_to_write
from annotation.rules.care import Rest
from core.accounts.models import Annotator
from core.errors import Refused
from dynabench.campaigns.models import Place
from dynabench.campaigns.selectors import DoneWork
from leaderboard.arena.battles.selectors import draw_pair, find_open_battle
from leaderboard.arena.battles.turn_services import check_cap
from tasks.models import Task
from validation.judging.services import open_session


def offer_next_work(place: Place, done_work: DoneWork) -> bool:
    """Offer the person unfinished work, and return whether there was any.

    Leases the next example to judge, creates an assignment to write about, or draws a pair
    to compare, as the page for that work does; takes the same locks. False if the person
    has reached the task's daily limit.
    """
    assert place.annotator
    task = place.campaign.task
    if get_care(place.annotator, task).rest == Rest.DAY:
        # The task lets nobody work for longer in one day.
        return False
    unfinished_kinds = [name for name, n in done_work.parts if n < done_work.each]
    return any(WORK_CHECKS[name](place.annotator, task) for name in unfinished_kinds)


def _may_judge(person: Annotator, task: Task) -> bool:
    """Return whether an example is left for the person to judge, and lease it to them."""
    # A judge who is paused for a break has work: it goes on after the break.
    session = open_session(validator=person, task=task)
    return session.is_paused or session.lease is not None


def _may_write(person: Annotator, task: Task) -> bool:
    """Return whether the person may write another example, and assign it to them."""
    round = find_round_to_write(task, person)
    if round is None:
        return False
    try:
        assignment = assign(annotator=person, round=round)
    except Refused:
        return False
    # An assignment whose tries are used up offers nothing.
    if not writing.may_send(assignment):
        return False
    used = writing.count_usage(assignment)
    is_tired = used.today >= task.config.limits.tries_per_day
    return not is_tired and writing.count_left_in_round(round, used.in_round) != 0


def _may_compare(person: Annotator, task: Task) -> bool:
    """Return whether the person has an open battle or may begin one."""
    if find_open_battle(person, task):
        return True
    try:
        check_cap(person, task)
        draw_pair(task)
    except Refused:
        return False
    return True


WORK_CHECKS: dict[str, Callable[[Annotator, Task], bool]] = {
    "write": _may_write,
    "judge": _may_judge,
    "arena": _may_compare,
}
