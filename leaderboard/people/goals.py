"""Weekly goals, points of a week and time spent: plain rules about what one person did."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from itertools import pairwise

WEEK = timedelta(days=7)
PAUSE_SECONDS = 15 * 60


def monday(day: date) -> date:
    """Return the first day of the day's week.

    >>> monday(date(2026, 11, 21))
    datetime.date(2026, 11, 16)
    """
    return day - timedelta(days=day.weekday())


def goal_in(goals: Mapping[date, int], week: date) -> int | None:
    """Return the goal of a week: the latest that was set until then; None before the first."""
    latest = max((begins for begins in goals if begins <= week), default=None)
    return None if latest is None else goals[latest]


def weeks_reached(done: Mapping[date, int], goals: Mapping[date, int], this_week: date) -> int:
    """Count how many weeks in a row the goal was reached, until now.

    This week counts once it is reached and never breaks the row; a paused week (goal 0) is skipped.
    `done` counts what was done in each week, `goals` has the goals by the week they began in.
    """
    count, week = 0, this_week
    # Back week by week, until one was missed or there was no goal yet.
    while (goal := goal_in(goals, week)) is not None:
        if goal and done.get(week, 0) >= goal:
            count += 1
        elif goal and week != this_week:
            break
        week -= WEEK
    return count


def active_seconds(moments: Iterable[datetime]) -> float:
    """Time spent, from the moments of which something is known: gaps up to 15 minutes, summed."""
    seconds = 0.0
    for earlier, later in pairwise(sorted(moments)):
        gap = (later - earlier).total_seconds()
        if gap <= PAUSE_SECONDS:  # a longer one was a pause
            seconds += gap
    return seconds


def team_goal(earlier_weeks: Sequence[int]) -> int:
    """Return what a team aims at: the best of the weeks before, at least ten."""
    # A team without earlier weeks has something to reach, too.
    return max([10, *earlier_weeks])
