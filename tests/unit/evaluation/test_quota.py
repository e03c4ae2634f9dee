"""The quota: no day submits too much, and the time that is told is the right one."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.submissions.quota import (
    QUOTA_WINDOW,
    Caps,
    Charge,
    Quota,
    QuotaEntry,
    choose_charge,
    compute_quota,
)

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
CAPS = Caps(accepted=3, refused=10)
ago = st.integers(0, 60).map(lambda hours: NOW - timedelta(hours=hours))
entries = st.lists(st.builds(QuotaEntry, ago, st.sampled_from(Charge)), max_size=30)


def entry(charge, hours=1):
    return QuotaEntry(NOW - timedelta(hours=hours), charge)


@pytest.mark.parametrize(
    ("state", "outcome", "was_started", "runs", "charge"),
    [
        ("queued", "", False, [], "pending"),
        ("running", "", True, [], "pending"),
        ("lost", "", True, [], "free"),
        ("failed", "infrastructure", True, [], "free"),
        ("failed", "rejected", True, [], "refused"),
        ("failed", "model_error", True, [], "refused"),
        ("cancelled", "cancelled", False, [], "free"),
        ("cancelled", "cancelled", True, [], "accepted"),
        ("done", "ok", True, [], "accepted"),
        ("done", "ok", True, [("lost", "")], "free"),
        ("done", "ok", True, [("done", "infrastructure"), ("failed", "oom")], "free"),
        ("done", "ok", True, [("lost", ""), ("done", "ok")], "accepted"),
        ("done", "ok", True, [("lost", ""), ("queued", "")], "accepted"),
        ("done", "ok", True, [("failed", "oom")], "accepted"),
    ],
)
def test_what_a_submission_counts_as(state, outcome, was_started, runs, charge):
    assert choose_charge(state, outcome, was_started, runs) == charge


def test_three_are_free_at_first_and_each_takes_one():
    assert compute_quota([], CAPS, NOW) == Quota(3)
    assert compute_quota([entry("accepted")], CAPS, NOW) == Quota(2)
    assert compute_quota([entry("free")] * 9, CAPS, NOW) == Quota(3)


def test_the_next_one_is_free_a_day_after_the_first():
    full = [entry("accepted", hours) for hours in (2, 20, 5)]
    assert compute_quota(full, CAPS, NOW) == Quota(0, NOW + timedelta(hours=4))
    assert compute_quota(full, CAPS, NOW + timedelta(hours=4)).left == 1


def test_refused_ones_have_a_cap_of_their_own():
    refused = [entry("refused", hours) for hours in range(1, 10)]
    assert compute_quota(refused, CAPS, NOW).left == 1
    assert compute_quota([*refused, entry("pending")], CAPS, NOW) == Quota(
        0, NOW + timedelta(hours=15)
    )
    assert compute_quota([*refused, entry("refused", 10)], CAPS, NOW).left == 0


def test_where_nothing_may_be_handed_in_no_time_is_told():
    assert compute_quota([], Caps(0, 10), NOW) == Quota(0, None)


@given(entries)
def test_whatever_becomes_of_pending_ones_no_cap_is_passed(found):
    left = compute_quota(found, CAPS, NOW).left
    recent = [one for one in found if one.submitted_at > NOW - QUOTA_WINDOW]
    count = [one.charge for one in recent].count
    assert 0 <= left <= CAPS.accepted
    if left:
        assert count(Charge.ACCEPTED) + count(Charge.PENDING) + left <= CAPS.accepted
        assert count(Charge.REFUSED) + count(Charge.PENDING) + left <= CAPS.refused


@given(entries)
def test_at_the_time_that_is_told_one_may_be_handed_in_and_not_before(found):
    quota = compute_quota(found, CAPS, NOW)
    if quota.left:
        assert quota.free_at is None
    else:
        assert NOW < quota.free_at <= NOW + QUOTA_WINDOW
        assert compute_quota(found, CAPS, quota.free_at).left
        before = quota.free_at - timedelta(seconds=1)
        assert not compute_quota(found, CAPS, before).left
