"""Find out whether the site has work left for a person, by offering it to them."""

from collections.abc import Callable

from annotation import selectors as writing
from annotation.care.services import get_care
from annotation.context_picking.services import assign
from annotation.open_round import find_round_to_write
from annotation.rules.care import Rest
from core.accounts.models import Annotator
from core.errors import Refused
from dynabench.campaigns.models import Place
from dynabench.campaigns.rules.pay import DoneWork
from leaderboard.arena.battles.selectors import draw_pair, find_open_battle
from leaderboard.arena.battles.turn_services import check_battle_cap
from tasks.models import Task
from validation.judging.services import open_session


def offer_next_work(place: Place, done_work: DoneWork) -> bool:
    """Offer the person unfinished work, and return whether there was any.

    Leases the next example to judge, creates an assignment to write about, or tries to
    draw a pair to compare. It takes the same locks as the page for that work. False if the
    person has reached the task's daily limit.
    """
    assert place.annotator
    task = place.campaign.task
    if get_care(place.annotator, task).rest == Rest.DAY:
        # The task lets nobody work for longer in one day.
        return False
    return any(WORK_CHECKS[kind](place.annotator, task) for kind in done_work.unfinished_kinds)


def _offer_example_to_judge(person: Annotator, task: Task) -> bool:
    """Return whether an example is left for the person to judge, and lease it to them."""
    # A judge who is paused for a break has work: it goes on after the break.
    session = open_session(validator=person, task=task)
    return session.is_paused or session.lease is not None


def _offer_assignment(person: Annotator, task: Task) -> bool:
    """Return whether the person may write another example, and assign it to them."""
    round = find_round_to_write(task, person)
    if round is None:
        return False
    try:
        assignment = assign(annotator=person, round=round)
    except Refused:
        return False
    # An assignment whose tries are used up offers nothing.
    if not writing.may_submit_example(assignment):
        return False
    usage = writing.count_usage(assignment)
    has_reached_day_limit = usage.today_count >= task.config.limits.tries_per_day
    return not has_reached_day_limit and writing.count_left_in_round(round, usage.round_count) != 0


def _offer_battle(person: Annotator, task: Task) -> bool:
    """Return whether the person has an open battle or may begin one."""
    if find_open_battle(person, task):
        return True
    try:
        check_battle_cap(person, task)
        draw_pair(task)
    except Refused:
        return False
    return True


WORK_CHECKS: dict[str, Callable[[Annotator, Task], bool]] = {
    "write": _offer_assignment,
    "judge": _offer_example_to_judge,
    "arena": _offer_battle,
}
