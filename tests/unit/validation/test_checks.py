"""Automatic checks: three outcomes, and only evidence counts against anybody."""

from hypothesis import given
from hypothesis import strategies as st

from validation.consensus.gold_check import (
    MIN_GOLD_ANSWERS,
    MIN_GOLD_SHARE,
    Check,
    assess_gold_answers,
)
from validation.rates.rates import compute_wilson_interval


@given(
    st.integers(0, MIN_GOLD_ANSWERS - 1).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
)
def test_few_answers_never_count_against_anybody(case):
    assert assess_gold_answers(*case) is Check.UNKNOWN


@given(
    st.integers(MIN_GOLD_ANSWERS, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
)
def test_the_bound_decides(case):
    failed = compute_wilson_interval(*case)[0] < MIN_GOLD_SHARE
    assert assess_gold_answers(*case) is (Check.FAIL if failed else Check.PASS)


def test_too_few_answers_tell_nothing():
    assert assess_gold_answers(0, MIN_GOLD_ANSWERS - 1) is Check.UNKNOWN


def test_where_the_bound_lies():
    assert assess_gold_answers(8, 8) is Check.PASS
    assert assess_gold_answers(7, 8) is Check.FAIL
    assert assess_gold_answers(8, 9) is Check.PASS
