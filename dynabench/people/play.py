"""A person's goals, badges and agreement with others, for the page about their own work."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from core.accounts.models import Annotator
from leaderboard.people.activity import WeekWork, read_goals, sum_work_by_week
from leaderboard.people.badges import Badge, list_badges
from leaderboard.people.goals import DEFAULT_GOAL, count_weeks_reached, find_goal, find_monday
from tasks.models import Task
from validation.rates.agreement import Reliability
from validation.rates.rates import Undefined
from validation.rewards.points import compute_vote_points

MIN_CAREFUL_ITEMS, MIN_CAREFUL_KAPPA = 30, 0.6


@dataclass(frozen=True)
class Game:
    """A person's weekly goal, progress and badges.

    goal: examples and judgements per week, 0 for a pause. is_default: whether the person has set no
    goal. work_count: the examples and judgements of this week. week_streak: how many weeks in a row
    the goal was reached.
    """

    goal: int
    is_default: bool
    work_count: int
    week_streak: int
    badges: Sequence[Badge]

    @property
    def share(self) -> int:
        """Return the progress towards the goal, in percent, at most 100; 0 during a pause."""
        if not self.goal:
            return 0
        return min(100, 100 * self.work_count // self.goal)

    @property
    def earned_badges(self) -> list[Badge]:
        """Return the badges that are earned."""
        return [badge for badge in self.badges if badge.is_earned]

    @property
    def next_badge(self) -> Badge | None:
        """Return the badge with the most progress of those still to earn; None if all are."""
        missing_badges = [badge for badge in self.badges if not badge.is_earned]
        # Of equal ones the first, since the list begins with the easiest.
        return max(missing_badges, key=lambda badge: badge.percent, default=None)

    @property
    def later_badges(self) -> list[Badge]:
        """Return the badges to earn after the next one."""
        following = self.next_badge
        return [badge for badge in self.badges if not badge.is_earned and badge != following]


def build_game(
    annotator: Annotator,
    tasks: Sequence[Task],
    weeks: Mapping[tuple[date, int], WeekWork],
    agreement: Mapping[int, Reliability],
) -> Game:
    """Return the person's game, computed over the tasks that are not sensitive.

    weeks: the person's work by (Monday, task id). agreement: their agreement by task id.
    """
    # Nobody is rewarded for work on texts that hurt.
    non_sensitive_tasks = {task.pk: task for task in tasks if not task.is_sensitive}
    this_week, goals = find_monday(datetime.now(UTC).date()), read_goals(annotator)
    work_by_week = sum_work_by_week(weeks, non_sensitive_tasks)
    has_careful_task = False
    for task_pk, reliability in agreement.items():
        if task_pk in non_sensitive_tasks and is_careful(reliability):
            has_careful_task = True
    own_goal = find_goal(goals, this_week)
    return Game(
        goal=DEFAULT_GOAL if own_goal is None else own_goal,
        is_default=own_goal is None,
        work_count=work_by_week.get(this_week, 0),
        week_streak=count_weeks_reached(work_by_week, goals, this_week),
        badges=list_badges(annotator, list(non_sensitive_tasks.values()), has_careful_task),
    )


def get_kappa(agreement: Reliability) -> float | None:
    """Return the agreement corrected for chance; None if chance explains all agreement."""
    if isinstance(agreement.kappa, Undefined):
        return None
    return agreement.kappa


def is_careful(agreement: Reliability) -> bool:
    """Return whether a person judged enough items with a kappa above 0.6 (Landis and Koch 1977)."""
    return agreement.items >= MIN_CAREFUL_ITEMS and (get_kappa(agreement) or 0) > MIN_CAREFUL_KAPPA


@dataclass(frozen=True)
class JudgedTask:
    """A person's judgements in a task, compared with others'.

    kappa: the agreement corrected for chance, or None. points: the points per judgement.
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
            lines.append(JudgedTask(task, reliability, kappa, compute_vote_points(kappa)))
    return lines
