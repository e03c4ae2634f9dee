"""Automatic checks: three outcomes, and only evidence counts against anybody."""

from hypothesis import given
from hypothesis import strategies as st

from validation.consensus.gold_check import GOLD_BOUND, LEAST_GOLD, Check, gold_check
from validation.rates.rates import wilson


@given(st.integers(0, LEAST_GOLD - 1).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_few_answers_never_count_against_anybody(case):
    assert gold_check(*case) is Check.UNKNOWN


@given(st.integers(LEAST_GOLD, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_bound_decides(case):
    failed = wilson(*case)[0] < GOLD_BOUND
    assert gold_check(*case) is (Check.FAIL if failed else Check.PASS)


def test_too_few_answers_tell_nothing():
    assert gold_check(0, LEAST_GOLD - 1) is Check.UNKNOWN


def test_where_the_bound_lies():
    assert gold_check(8, 8) is Check.PASS
    assert gold_check(7, 8) is Check.FAIL
    assert gold_check(8, 9) is Check.PASS
