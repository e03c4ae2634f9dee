"""Time with harmful texts: counted by the clock here, whatever a browser says."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.rules.care import (
    BREAK_TIME,
    MAX_REPORT_SECONDS,
    MAX_UNREPORTED_SECONDS,
    Limits,
    ReadingRecord,
    Rest,
    rest_of,
)

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def after(seconds):
    return NOON + timedelta(seconds=seconds)


def test_a_browser_reports_and_the_answer_adds_nothing():
    seen = ReadingRecord().shown(NOON).told(after(15), 15).told(after(16), 15).told(after(60), 999)
    assert seen.seconds == 15 + 1 + MAX_REPORT_SECONDS
    assert seen.answered(after(90)).seconds == seen.seconds


def test_without_a_browser_s_word_the_time_to_the_answer_counts_up_to_a_cap():
    assert ReadingRecord().shown(NOON).answered(after(40)).seconds == 40
    assert ReadingRecord().shown(NOON).answered(after(4000)).seconds == MAX_UNREPORTED_SECONDS
    assert ReadingRecord().answered(NOON).seconds == 0


def test_a_row_ends_with_a_break_and_time_with_the_day():
    seen = ReadingRecord().shown(NOON).answered(after(9)).answered(after(20))
    assert (seen.in_a_row, seen.seconds) == (2, 20)
    assert seen.on(after(20) + BREAK_TIME).in_a_row == 0
    assert seen.on(NOON + timedelta(days=1)).seconds == 0


@given(st.lists(st.tuples(st.sampled_from(["shown", "told", "answered"]), st.integers(0, 400))))
def test_no_more_is_counted_than_has_passed(events):
    now, seen = NOON, ReadingRecord()
    for name, passed in events:
        now += timedelta(seconds=passed)
        seen = seen.told(now, 10**6) if name == "told" else getattr(seen, name)(now)
    assert 0 <= seen.seconds <= (now - NOON).total_seconds()


@pytest.mark.parametrize(
    ("seconds", "in_a_row", "sends", "rest"),
    [
        (0, 0, False, Rest.NONE),
        (450, 0, False, Rest.OFFER),
        (0, 3, False, Rest.OFFER),
        (600, 0, False, Rest.DAY),
        (600, 0, True, Rest.OFFER),
        (900, 0, True, Rest.DAY),
        (0, 4, True, Rest.BREAK),
    ],
)
def test_a_break_is_offered_then_required(seconds, in_a_row, sends, rest):
    limits = Limits(60, 4).within(Limits(10))
    assert limits == Limits(10, 4)
    assert rest_of(limits, seconds, in_a_row, sends=sends) is rest
    assert rest_of(Limits(), 10**6, 10**6) is Rest.NONE
