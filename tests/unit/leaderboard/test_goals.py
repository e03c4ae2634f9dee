"""Weekly goals, weeks in a row, and time spent."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.people.goals import (
    MAX_ROW_WEEKS,
    WEEK,
    choose_team_goal,
    count_weeks_reached,
    find_goal,
    find_monday,
    sum_active_seconds,
)

NOW = date(2026, 11, 16)
dates = st.dates(date(2020, 1, 1), date(2030, 1, 1))


def weeks(*values):
    """By week, the last value for this week."""
    return {NOW - WEEK * n: value for n, value in enumerate(reversed(values))}


@given(dates)
def test_a_week_begins_on_monday(day):
    assert find_monday(day).weekday() == 0
    assert timedelta(0) <= day - find_monday(day) < WEEK


def test_a_sunday_belongs_to_the_monday_before():
    assert find_monday(date(2026, 11, 22)) == find_monday(NOW) == NOW


def test_a_goal_holds_until_the_next():
    goals = {NOW - 2 * WEEK: 5, NOW: 0}
    assert find_goal(goals, NOW - 3 * WEEK) is None
    assert find_goal(goals, NOW - WEEK) == 5
    assert find_goal(goals, NOW + WEEK) == 0


@pytest.mark.parametrize(
    ("done", "goals", "reached"),
    [
        (weeks(5, 5, 5), weeks(5, 5, 5), 3),
        (weeks(5, 5, 2), weeks(5, 5, 5), 2),  # this week is not over
        (weeks(5, 2, 5), weeks(5, 5, 5), 2),  # one missed week of a month is free
        (weeks(5, 2, 2, 5), weeks(5, 5, 5, 5), 1),  # 2 and 9 November
        (weeks(5, 2, 5, 5, 2, 5), weeks(5, 5, 5, 5, 5, 5), 4),  # 19 October and 9 November
        (weeks(5, 0, 5), weeks(5, 0, 5), 2),  # a pause loses nothing
        (weeks(5, 0, 0), weeks(5, 0, 0), 1),
        (weeks(9, 9, 9), weeks(5), 1),  # a goal counts from its week on
        (weeks(9, 9), {}, 0),  # ten is the goal of those who set none
        (weeks(10, 9, 12), {}, 2),
        (weeks(10, 10, 10, 5), weeks(5), 4),
        ({}, weeks(5, 5), 0),
        (weeks(*[5] * 40), weeks(*[5] * 40), MAX_ROW_WEEKS),
    ],
)
def test_weeks_in_a_row(done, goals, reached):
    assert count_weeks_reached(done, goals, NOW) == reached


@given(st.lists(st.integers(0, 9), min_size=1, max_size=9), st.integers(0, 9))
def test_doing_more_never_shortens_the_row(done, more):
    goals = dict.fromkeys(weeks(*done), 5)
    before = count_weeks_reached(weeks(*done), goals, NOW)
    assert count_weeks_reached(weeks(*done[:-1], done[-1] + more), goals, NOW) >= before


def test_time_is_the_sum_of_short_gaps():
    start = datetime(2026, 11, 16, 9, tzinfo=UTC)
    moments = [start + timedelta(minutes=m) for m in (20, 0, 10, 60, 75, 91)]
    assert sum_active_seconds(moments) == (10 + 10 + 15) * 60
    assert sum_active_seconds([]) == sum_active_seconds([start]) == 0


def test_a_team_aims_at_its_best_week():
    assert choose_team_goal([]) == choose_team_goal([3, 4]) == 10
    assert choose_team_goal([12, 40, 3]) == 40
