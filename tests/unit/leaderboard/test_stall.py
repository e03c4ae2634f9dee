"""Whether rounds still improve the target."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.rounds.progress import Progress, compare_rounds
from validation.rates.rates import compute_rate


def progress(counts, noises=()):
    vmers = [count and compute_rate(*count) for count in counts]
    return [step.progress for step in compare_rounds(vmers, noises or [None] * len(vmers))]


def test_a_falling_vmer_is_progress_until_the_interval_covers_nothing():
    assert progress([(400, 1000), (300, 1000), (285, 1000), (340, 1000)]) == [
        Progress.FIRST,
        Progress.BETTER,
        Progress.STALLED,
        Progress.WORSE,
    ]


def test_few_examples_do_not_show_that_rounds_stall():
    """42.5 % and then 34.1 % of few examples may be a fall, and may be none."""
    assert progress([(34, 80), (28, 82)]) == [Progress.FIRST, Progress.UNCLEAR]
    assert progress([(340, 800), (345, 800)]) == [Progress.FIRST, Progress.STALLED]


def test_noise_as_great_as_the_vmer_is_no_progress():
    assert progress([(400, 1000), (100, 1000)], [None, 0.0999]) == [
        Progress.FIRST,
        Progress.BETTER,
    ]
    assert progress([(400, 1000), (100, 1000)], [0.4, 0.1]) == [Progress.NOISE] * 2


def test_what_is_not_known_is_not_guessed():
    assert progress([None, (300, 1000), (100, 1000), None]) == [
        Progress.UNKNOWN,
        Progress.UNKNOWN,
        Progress.BETTER,
        Progress.UNKNOWN,
    ]
    assert compare_rounds([None], [0.5])[0].improvement is None
    assert compare_rounds([], []) == []


def test_rounds_stall_when_they_gain_nothing():
    found = compare_rounds(
        [compute_rate(400, 1000), compute_rate(100, 1000), compute_rate(300, 1000)], [None] * 3
    )
    assert [step.progress for step in found] == [Progress.FIRST, Progress.BETTER, Progress.WORSE]


def test_the_interval_is_newcombes():
    """Newcombe 1998, table II, contrast (a): 56/70 − 48/80, method 10: 0.0524 to 0.3339."""
    _, step = compare_rounds([compute_rate(56, 70), compute_rate(48, 80)], [None, None])
    assert step.improvement == pytest.approx(0.2)
    assert (step.low, step.high) == pytest.approx((0.0524, 0.3339), abs=5e-5)


@given(st.integers(0, 500), st.integers(0, 500))
def test_only_a_surely_lower_vmer_goes_on(before, now):
    step = compare_rounds([compute_rate(before, 500), compute_rate(now, 500)], [None, None])[1]
    assert step.low <= step.improvement <= step.high
    assert (step.progress is Progress.BETTER) == (step.low > 0)
    if step.progress is Progress.WORSE:
        assert now > before
