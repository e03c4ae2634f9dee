"""Goals, badges and agreement of one person, for the page about their own work."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from core.accounts.models import Annotator
from leaderboard.people.activity import Week, read_goals, sum_work_by_week
from leaderboard.people.badges import Badge, list_badges
from leaderboard.people.goals import count_weeks_reached, find_goal, find_monday
from tasks.models import Task
from validation.rates.agreement import Reliability
from validation.rates.rates import Undefined
from validation.rewards.points import vote_points

CAREFUL_ITEMS, CAREFUL_KAPPA = 30, 0.6


@dataclass(frozen=True)
class Game:
    """A person's weekly goal, progress and badges.

    goal: None if never set; 0 for a pause.
    """

    goal: int | None
    done: int
    weeks: int
    badges: Sequence[Badge]

    @property
    def share(self) -> int:
        """Return the progress towards the goal, in percent."""
        if not self.goal:
            return 0
        return min(100, 100 * self.done // self.goal)

    @property
    def next_badge(self) -> Badge | None:
        """Return the badge closest to being earned, or None if all are earned."""
        missing = [badge for badge in self.badges if not badge.is_earned]
        return max(missing, key=lambda badge: badge.reached / badge.needed, default=None)


def build_game(
    me: Annotator,
    tasks: Sequence[Task],
    weeks: Mapping[tuple[date, int], Week],
    agreement: Mapping[int, Reliability],
) -> Game:
    """Return the person's game over those of `tasks` that are not sensitive."""
    # Nobody is rewarded for work on texts that hurt.
    mild_tasks = {task.pk: task for task in tasks if not task.is_sensitive}
    this_week, goals = find_monday(datetime.now(UTC).date()), read_goals(me)
    work_by_week = sum_work_by_week(weeks, mild_tasks)
    has_careful_task = False
    for task_pk, reliability in agreement.items():
        if task_pk in mild_tasks and is_careful(reliability):
            has_careful_task = True
    return Game(
        goal=find_goal(goals, this_week),
        done=work_by_week.get(this_week, 0),
        weeks=count_weeks_reached(work_by_week, goals, this_week),
        badges=list_badges(me, list(mild_tasks.values()), has_careful_task),
    )


def get_kappa(agreement: Reliability) -> float | None:
    """Return chance-corrected agreement; None if chance explains all agreement."""
    if isinstance(agreement.kappa, Undefined):
        return None
    return agreement.kappa


def is_careful(agreement: Reliability) -> bool:
    """Return whether a person has judged enough, with kappa above 0.6 (Landis and Koch 1977)."""
    return agreement.items >= CAREFUL_ITEMS and (get_kappa(agreement) or 0) > CAREFUL_KAPPA


@dataclass(frozen=True)
class JudgedTask:
    """A person's judgements in a task, compared with others'.

    points: earned per judgement.
    """

    task: Task
    agreement: Reliability
    kappa: float | None
    points: float


def list_judged_tasks(
    tasks: Sequence[Task], agreement: Mapping[int, Reliability]
) -> list[JudgedTask]:
    """Return a row for each task in which the person has judged enough."""
    lines = []
    for task in tasks:
        reliability = agreement.get(task.pk)
        if reliability:
            kappa = get_kappa(reliability)
            lines.append(JudgedTask(task, reliability, kappa, vote_points(kappa)))
    return lines
