"""What `bench.check` decides: which figures are lost, beyond noise."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.comparing import (
    LOSS,
    compare,
    compute_median_run,
    compute_remaining_share,
    is_product_file,
)

FIGURES = st.floats(0.01, 1e6)
DIRECTIONS = st.sampled_from(["higher", "lower"])


def lost(*pairs: tuple[float, float], better: str = "lower") -> bool:
    runs = [({"vote": kept}, {"vote": now}) for kept, now in pairs]
    (one,) = compare(runs, {"vote": better})
    return one.is_lost


@pytest.mark.parametrize(
    ("better", "now", "expected"),
    [
        ("lower", 12.4, False),
        ("lower", 12.5, True),
        ("lower", 5, False),
        ("higher", 8.1, False),
        ("higher", 8, True),
        ("higher", 20, False),
        ("higher", 0, True),
    ],
)
def test_a_fifth_is_lost_in_the_direction_that_is_worse(better, now, expected):
    assert lost((10, now), better=better) is expected


def test_one_slow_run_decides_nothing():
    assert not lost((10, 10), (10, 30), (10, 10))
    assert lost((10, 13), (10, 10), (10, 13))


def test_what_slows_both_runs_of_a_pair_is_no_loss():
    assert not lost((10, 10), (10, 10.5), (20, 21), (20, 20), (20, 20))


def test_a_figure_counts_only_where_every_run_has_it():
    runs = [({"vote": 1.0, "gone": 1.0}, {"vote": 1.0, "new": 1.0})]
    better = {"new": "lower", "vote": "lower", "gone": "lower"}
    assert [one.name for one in compare(runs, better)] == ["vote"]
    assert list(compare([], better)) == []


def test_medians_are_shown_and_kept():
    pairs = [({"vote": kept}, {"vote": now}) for kept, now in [(1, 4), (2, 5), (9, 6)]]
    (one,) = compare(pairs, {"vote": "lower"})
    assert (one.kept, one.now) == (2, 5)
    assert compute_median_run([{"a": 1, "b": 2}, {"a": 3}, {"a": 2}]) == {"a": 2}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("validation/judging/services.py", True),
        ("templates/judge/page.html", True),
        ("requirements.txt", True),
        ("tests/web/test_judge.py", False),
        ("docs/statistics.md", False),
        ("bench/check.py", False),
        ("CHANGELOG.md", False),
    ],
)
def test_changes_of_the_product_are_told_from_others(path, expected):
    assert is_product_file(path) is expected


@given(FIGURES, FIGURES, DIRECTIONS)
def test_what_one_direction_loses_the_other_one_gains(kept, now, better):
    other = "lower" if better == "higher" else "higher"
    assert compute_remaining_share(kept, now, better) * compute_remaining_share(
        kept, now, other
    ) == pytest.approx(1)
    assert compute_remaining_share(kept, kept, better) == 1
    assert (compute_remaining_share(kept, now, better) <= 1 - LOSS) <= (
        compute_remaining_share(kept, now, other) > 1
    )
