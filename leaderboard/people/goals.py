"""Pure rules about a person's weekly goals, weeks in a row and active time."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from itertools import pairwise

WEEK = timedelta(days=7)
PAUSE_SECONDS = 15 * 60
DEFAULT_GOAL = 10
"""The weekly goal of people who set none."""
MAX_ROW_WEEKS = 26
"""The longest streak of weeks that is counted."""


def find_monday(day: date) -> date:
    """Return the Monday of the day's week.

    >>> find_monday(date(2026, 11, 21))
    datetime.date(2026, 11, 16)
    """
    return day - timedelta(days=day.weekday())


def find_goal(goals: Mapping[date, int], week: date) -> int | None:
    """Return the goal valid in a week: the latest one set by then; None before the first."""
    latest = max((begins for begins in goals if begins <= week), default=None)
    return None if latest is None else goals[latest]


def count_weeks_reached(
    work_by_week: Mapping[date, int], goals: Mapping[date, int], this_week: date
) -> int:
    """Count how many weeks in a row, up to now, the goal was reached.

    This week counts once its goal is reached and never breaks the streak. A paused week (goal 0) is
    skipped, and so is one missed week in each calendar month (by its Monday). `work_by_week`
    counts the work of each week, `goals` has the goals by the week from which they are valid;
    before the first one DEFAULT_GOAL is valid.
    """
    count, week = 0, this_week
    free_pauses: set[tuple[int, int]] = set()
    for _ in range(MAX_ROW_WEEKS):
        goal = find_goal(goals, week)
        if goal is None:
            goal = DEFAULT_GOAL
        is_missed = bool(goal) and work_by_week.get(week, 0) < goal
        month = (week.year, week.month)
        if is_missed and week != this_week and month in free_pauses:
            break
        if is_missed and week != this_week:
            free_pauses.add(month)
        elif goal and not is_missed:
            count += 1
        week -= WEEK
    return count


def sum_active_seconds(moments: Iterable[datetime]) -> float:
    """Sum the gaps between moments of activity, leaving out gaps of more than 15 minutes."""
    seconds = 0.0
    for earlier, later in pairwise(sorted(moments)):
        gap = (later - earlier).total_seconds()
        if gap <= PAUSE_SECONDS:  # a longer gap was a pause
            seconds += gap
    return seconds


def choose_team_goal(earlier_weeks: Sequence[int]) -> int:
    """Return the team's weekly goal: the best of the earlier weeks, at least ten."""
    # A team without earlier weeks also gets a goal.
    return max([10, *earlier_weeks])
