"""Shares of a queue cover each place so often as they should, and how an assignment stands."""

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.members.assignments.rules import (
    POSITION_COUNT,
    AssignmentProgress,
    compute_spans,
    find_excess,
    find_reminder,
)

PLACE = st.integers(0, POSITION_COUNT - 1)


def owners(laid, place):
    """Who has the place, and how often."""
    return [n for n, mine in enumerate(laid) for first, last in mine if first <= place <= last]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(1, 4), PLACE)
def test_each_place_has_as_many_different_owners_as_the_overlap_says(weights, overlap, place):
    shares = [weight / sum(weights) for weight in weights]
    if find_excess(shares, overlap):
        assert max(shares) * overlap > 1
        return
    mine = owners(compute_spans(shares, overlap), place)
    assert len(mine) == len(set(mine)) == overlap


@given(PLACE)
def test_what_nobody_has_a_share_of_is_nobodys(place):
    laid = compute_spans([0.2, 0.3], 1)
    assert len(owners(laid, place)) == (place < POSITION_COUNT // 2)
    sizes = [sum(last - first + 1 for first, last in mine) / POSITION_COUNT for mine in laid]
    assert sizes == pytest.approx([0.2, 0.3])


def test_shares_by_hand():
    half, last = POSITION_COUNT // 2, POSITION_COUNT - 1
    assert compute_spans([0.5, 0.5], 1) == [[(0, half - 1)], [(half, last)]]
    assert compute_spans([0.5, 0.5], 2) == [[(0, last)], [(0, last)]]
    seam = compute_spans([0.25, 0.5, 0.25], 2)
    assert seam == [[(0, half - 1)], [(half, last), (0, half - 1)], [(half, last)]]
    assert compute_spans([0.25], 1) == [[(0, POSITION_COUNT // 4 - 1)]]


def test_what_cannot_stand_together():
    assert find_excess([0.5, 0.6], 1) == "sum"
    assert find_excess([0.6, 0.4], 2) == "overlap"
    assert find_excess([1 / 3] * 3, 3) == ""
    assert find_excess([], 1) == ""


def test_how_an_assignment_stands():
    day, after = date(2026, 12, 4), date(2026, 12, 5)
    assert AssignmentProgress(3, 5, day).get_state(day) == "open"
    assert AssignmentProgress(3, 5, day).get_state(after) == "late"
    assert AssignmentProgress(3, 5, None).get_state(after) == "open"
    assert AssignmentProgress(5, 5, day).get_state(after) == "done"
    assert AssignmentProgress(3, 5, day, is_over=True).get_state(after) == "over"
    assert AssignmentProgress(0, 0, day).get_state(day) == "open"
    assert AssignmentProgress(3, None, None).get_state(day) == "open"


def test_what_is_told_of_an_assignment_and_since_when():
    set_at, day = datetime(2026, 12, 1, 9, tzinfo=UTC), date(2026, 12, 4)

    def at(day, hour=12):
        return datetime(2026, 12, day, hour, tzinfo=UTC)

    assert find_reminder(set_at, None, at(9)) == ("assigned", set_at)
    assert find_reminder(set_at, day, at(2)) == ("assigned", set_at)
    assert find_reminder(set_at, day, at(3)) == ("due", at(3, 0))
    assert find_reminder(set_at, day, at(5)) == ("overdue", at(5, 0))
    assert find_reminder(at(4), day, at(4)) == ("due", at(4))
