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
    compute_rest,
)

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def after(seconds):
    return NOON + timedelta(seconds=seconds)


def test_a_browser_reports_and_the_answer_adds_nothing():
    seen = (
        ReadingRecord()
        .record_shown(NOON)
        .record_report(after(15), 15)
        .record_report(after(16), 15)
        .record_report(after(60), 999)
    )
    assert seen.seconds == 15 + 1 + MAX_REPORT_SECONDS
    assert seen.record_answer(after(90)).seconds == seen.seconds


def test_without_a_browser_s_word_the_time_to_the_answer_counts_up_to_a_cap():
    assert ReadingRecord().record_shown(NOON).record_answer(after(40)).seconds == 40
    assert (
        ReadingRecord().record_shown(NOON).record_answer(after(4000)).seconds
        == MAX_UNREPORTED_SECONDS
    )
    assert ReadingRecord().record_answer(NOON).seconds == 0


def test_a_row_ends_with_a_break_and_time_with_the_day():
    seen = ReadingRecord().record_shown(NOON).record_answer(after(9)).record_answer(after(20))
    assert (seen.in_a_row, seen.seconds) == (2, 20)
    assert seen.advance_to(after(20) + BREAK_TIME).in_a_row == 0
    assert seen.advance_to(NOON + timedelta(days=1)).seconds == 0


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["record_shown", "record_report", "record_answer"]), st.integers(0, 400)
        )
    )
)
def test_no_more_is_counted_than_has_passed(events):
    now, seen = NOON, ReadingRecord()
    for name, passed in events:
        now += timedelta(seconds=passed)
        seen = (
            seen.record_report(now, 10**6) if name == "record_report" else getattr(seen, name)(now)
        )
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
    limits = Limits(60, 4).restrict_to(Limits(10))
    assert limits == Limits(10, 4)
    assert compute_rest(limits, seconds, in_a_row, is_answering=sends) is rest
    assert compute_rest(Limits(), 10**6, 10**6) is Rest.NONE
