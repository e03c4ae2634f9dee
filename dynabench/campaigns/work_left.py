"""Whether the site has something left to do for somebody who takes part."""

from collections.abc import Callable

from annotation import selectors as writing
from annotation.assignments.services import assign
from annotation.care.services import care_of
from annotation.open_round import round_to_write
from annotation.rules.care import Rest
from core.accounts.models import Annotator
from core.errors import Refused
from dynabench.campaigns.models import Place
from dynabench.campaigns.selectors import Done
from leaderboard.arena.battles.selectors import draw_pair, open_battle
from leaderboard.arena.battles.turn_services import check_cap
from tasks.models import Task
from validation.judging.services import open_session


def is_work_left(place: Place, done: Done) -> bool:
    """Whether the person can go on now with something that they have not done enough of.

    They are handed what comes next, as by the page on which they would do it: the next example to
    judge, a passage to write about.
    """
    assert place.annotator
    task = place.campaign.task
    if care_of(place.annotator, task).rest == Rest.DAY:
        return False
    left = [name for name, n in done.parts if n < done.each]
    return any(HAS[name](place.annotator, task) for name in left)


def _may_judge(person: Annotator, task: Task) -> bool:
    session = open_session(validator=person, task=task)
    return session.is_paused or session.lease is not None


def _may_write(person: Annotator, task: Task) -> bool:
    round = round_to_write(task, person)
    if round is None:
        return False
    try:
        assignment = assign(annotator=person, round=round)
    except Refused:
        return False
    if not writing.may_send(assignment):
        return False
    used = writing.used(assignment)
    is_tired = used.today >= task.config.limits.tries_per_day
    return not is_tired and writing.left_in_round(round, used.in_round) != 0


def _may_compare(person: Annotator, task: Task) -> bool:
    if open_battle(person, task):
        return True
    try:
        check_cap(person, task)
        draw_pair(task)
    except Refused:
        return False
    return True


HAS: dict[str, Callable[[Annotator, Task], bool]] = {
    "write": _may_write,
    "judge": _may_judge,
    "arena": _may_compare,
}
