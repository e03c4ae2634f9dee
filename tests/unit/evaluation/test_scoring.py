"""Scores: their values, intervals, slices; the same whatever the order."""

import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.contract import Answer, Number, SetRow
from evaluation.scoring import bootstrap as scoring
from evaluation.scoring.bootstrap import MAX_SLICE_VALUES, UNDEFINED_NOTE, compute_scores
from evaluation.scoring.mean_intervals import (
    compute_difference_interval,
    compute_means,
    compute_powers,
)
from validation.rates.rates import compute_student_quantile, compute_wilson_interval

LABELS = ("yes", "no")


def pair(
    number: int, said: str | None, gold: str = "yes", **slices: tuple[str, ...]
) -> tuple[SetRow, Answer | None]:
    return SetRow(f"u{number}", {}, (gold,), slices), None if said is None else Answer(said)


def scores(rows, *metrics: str, slices=(), **options) -> dict[tuple[str, str], Number]:
    options = {"labels": LABELS, "seed": 1, **options}
    found = compute_scores(rows, metrics=metrics or ("accuracy",), slices=slices, **options)
    keyed = {(one.metric, one.slice): one for one in found}
    assert len(keyed) == len(found)
    return keyed


def test_each_metric_over_all_and_by_slice():
    rows = [
        pair(1, "yes", tag=("a", "b")),
        pair(2, "no", tag=("a",)),
        pair(3, None, tag=("b", "b")),
        pair(4, "yes", lang=("en",)),
    ]
    found = scores(rows, "accuracy", "exact_match", slices=("tag",))
    for metric in ("accuracy", "exact_match"):
        values = {part: (one.value, one.n) for (name, part), one in found.items() if name == metric}
        assert values == {"": (0.5, 4), "tag=a": (0.5, 2), "tag=b": (0.5, 2)}


def test_intervals_are_those_of_the_bootstrap():
    """Of 400 coin tosses: 1.96 standard errors to both sides."""
    rows = [pair(n, "yes" if n % 2 else "no") for n in range(400)]
    found = scores(rows, draws=2000)["accuracy", ""]
    assert found.value == 0.5
    assert found.low == pytest.approx(0.5 - 1.96 * 0.025, abs=0.005)
    assert found.high == pytest.approx(0.5 + 1.96 * 0.025, abs=0.005)


def test_the_interval_holds_the_truth_as_often_as_it_says():
    chance = random.Random(5)
    held = 0
    for trial in range(200):
        rows = [pair(n, "yes" if chance.random() < 0.7 else "no") for n in range(150)]
        found = scores(rows, seed=trial)["accuracy", ""]
        held += found.low <= 0.7 <= found.high
    assert 180 <= held <= 198


@pytest.mark.parametrize("said", ["yes", "no"])
def test_where_all_examples_are_alike_the_interval_is_wilsons(said):
    found = scores([pair(n, said) for n in range(20)])["accuracy", ""]
    assert (found.low, found.high) == compute_wilson_interval(20 * (said == "yes"), 20)


@pytest.mark.parametrize("right", [0, 1, 3, 5])
def test_a_share_of_few_examples_has_wilsons_interval(right):
    found = scores([pair(n, "yes" if n < right else "no") for n in range(5)])["accuracy", ""]
    assert (found.low, found.high) == compute_wilson_interval(right, 5)


@pytest.mark.parametrize(
    ("rows", "value"),
    [
        ([pair(1, "no")], 0),
        ([pair(1, "no"), pair(2, "no")], 0),
        ([pair(1, "yes"), pair(2, "no", "no")], 1),
        ([pair(n, "yes", "no" if n == 8 else "yes") for n in range(9)], 8 / 17),
        ([pair(n, LABELS[n % 2], LABELS[n % 2]) for n in range(500)], 1),
    ],
    ids=["one", "two wrong", "two right", "nine", "all right"],
)
def test_macro_f1_of_few_examples_or_of_all_alike_has_no_interval(rows, value):
    found = scores(rows, "macro_f1")["macro_f1", ""]
    assert found.value == pytest.approx(value)
    assert (found.low, found.high) == (None, None)


def test_nothing_has_no_score():
    found = scores([])["accuracy", ""]
    assert (found.value, found.low, found.high, found.n) == (None, None, None, 0)
    assert found.note


def test_what_is_not_defined_says_so():
    found = scores([pair(1, "", "")], "bleu")["bleu", ""]
    assert (found.value, found.n, found.note) == (None, 1, UNDEFINED_NOTE)


def test_a_metric_that_cannot_be_computed_says_what_it_needs():
    metrics = ("accuracy", "sp_bleu", "macro_f1", "accuracy")
    found = scores([pair(1, "yes")], *metrics, labels=None)
    assert found["accuracy", ""].value == 1
    assert found["sp_bleu", ""].value is None
    for name in ("sp_bleu", "macro_f1"):
        assert found[name, ""].note.startswith(f"{name} ")


def test_fifty_values_of_a_field_are_scored_and_the_others_counted():
    rows = [pair(n, "yes", tag=(str(n % 60),)) for n in range(120)]
    found = scores(rows, slices=("tag",))
    parts = [part for _, part in found if part]
    assert len(parts) == MAX_SLICE_VALUES + 1
    others = found["accuracy", "tag=…"]
    assert replace(others, note="") == Number("accuracy", None, None, None, 20, "tag=…")
    assert "tag" in others.note


def test_a_slice_has_a_name_that_can_be_stored():
    found = scores([pair(1, "yes", tag=("x" * 300,))], slices=("tag",))
    assert [len(part) for _, part in found] == [0, scoring.MAX_SLICE_NAME_CHARS]


def mixed(count: int, seed: int) -> Iterator[tuple[SetRow, Answer | None]]:
    chance = random.Random(seed)
    for number in range(count):
        said = chance.choice(("yes", "no", "a red fox", "the fox", None))
        tags = tuple(chance.sample("abc", chance.randrange(3)))
        yield pair(number, said, chance.choice(("yes", "red fox")), tag=tags)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 99), st.integers(1, 60), st.randoms(use_true_random=False))
def test_order_never_matters(seed, count, chance):
    rows = list(mixed(count, seed))
    metrics = ("accuracy", "macro_f1", "squad_f1", "bleu", "dataperf_f1")
    before = scores(rows, *metrics, slices=("tag",), draws=20)
    chance.shuffle(rows)
    assert scores(rows, *metrics, slices=("tag",), draws=20) == before


def test_the_seed_decides_the_intervals_of_what_is_no_mean_and_nothing_else():
    rows = [
        (replace(row, gold=(LABELS[n % 2],)), said) for n, (row, said) in enumerate(mixed(200, 1))
    ]
    found = [scores(rows, "accuracy", "macro_f1", seed=seed) for seed in (1, 1, 2)]
    assert found[0]["accuracy", ""] == found[2]["accuracy", ""]
    one, same, other = (some["macro_f1", ""] for some in found)
    assert one == same
    assert one.value == other.value
    assert (one.low, one.high) != (other.low, other.high)


def test_further_metrics_and_slices_change_no_interval():
    alone = scores(mixed(200, 1), "squad_f1")
    assert (
        scores(mixed(200, 1), "bleu", "squad_f1", slices=("tag",))["squad_f1", ""]
        == (alone["squad_f1", ""])
    )


def test_many_distinct_statistics_become_sums(monkeypatch):
    """The values stay; the intervals come from other draws of the same kind."""
    metrics = ("squad_f1", "dataperf_f1", "chrf")
    whole = scores(mixed(600, 3), *metrics, slices=("tag",), draws=1000)
    monkeypatch.setattr(scoring, "MAX_DISTINCT_STATISTICS", 60)
    monkeypatch.setattr(scoring, "EXAMPLES_PER_CHECK", 10)
    monkeypatch.setattr(scoring, "MAX_ARRAY_CELLS", 400)
    pieces = scores(mixed(600, 3), *metrics, slices=("tag",), draws=1000)
    assert pieces == scores(mixed(600, 3), *metrics, slices=("tag",), draws=1000)
    assert pieces.keys() == whole.keys()
    for key, one in pieces.items():
        assert one.n == whole[key].n
        assert one.value == pytest.approx(whole[key].value)
        wide = whole[key].high - whole[key].low
        assert np.isclose(one.low, whole[key].low, atol=wide / 2)


def test_the_mean_of_numbers_has_an_interval() -> None:
    found = scoring.compute_mean_number([0.0, 1.0] * 50, name="own")
    assert (found.metric, found.value, found.n) == ("own", 0.5, 100)
    assert 0.35 < found.low < 0.5 < found.high < 0.65


@pytest.mark.parametrize(("size", "seeds"), [(150, 4), (223, 4), (800, 4)])
def test_the_ends_move_by_less_than_a_tenth_of_a_point_between_seeds(size, seeds):
    chance = random.Random(size)
    labels = ("yes", "no", "maybe")
    said = [labels[(n + (chance.random() < 0.2)) % 3] for n in range(size)]
    rows = [pair(n, one, gold=labels[n % 3]) for n, one in enumerate(said)]
    found = [
        scores(rows, "accuracy", "macro_f1", seed=seed, labels=labels) for seed in range(seeds)
    ]
    for metric in ("accuracy", "macro_f1"):
        ends = np.array([(one.low, one.high) for some in found for one in [some[metric, ""]]])
        assert np.ptp(ends, axis=0).max() < (0.001 if metric == "macro_f1" else 1e-12)


@settings(max_examples=20)
@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=20, max_size=100))
def test_the_interval_of_a_mean_is_that_of_many_draws(values):
    found = scoring.compute_mean_number(values, name="own")
    if len({*values}) == 1:
        assert (found.low, found.high) == compute_wilson_interval(sum(values), len(values))
        return
    drawn = np.random.default_rng(1).poisson(1, (5_000, len(values)))
    with np.errstate(invalid="ignore"):
        means = drawn @ np.array(values) / drawn.sum(axis=1)
    low, high = np.nanquantile(means, (0.025, 0.975))
    spread = np.nanstd(means)
    assert found.low <= found.value <= found.high
    assert found.low == pytest.approx(low, abs=0.35 * spread)
    assert found.high == pytest.approx(high, abs=0.35 * spread)


def test_a_difference_of_few_examples_has_no_interval():
    drawn = np.array([0.1, 0.1, 0.2, 0.0])
    assert scoring.compute_resampled_difference(drawn, 14) == (0.1, None, None)
    assert scoring.compute_resampled_difference(drawn, 15)[1] < 0.1
    few, many = (
        compute_means(compute_powers(np.array([0.5, -0.5, 1.0] * n)).sum(axis=0))[0]
        for n in (3, 30)
    )
    assert compute_difference_interval(few) == (pytest.approx(1 / 3), None, None)
    value, low, high = compute_difference_interval(many)
    half = compute_student_quantile(89) * np.std([0.5, -0.5, 1.0]) / 90**0.5
    assert (value - low, high - value) == (pytest.approx(half), pytest.approx(half))


@pytest.mark.parametrize(
    ("distinct", "n", "most", "draws"),
    [
        (0, 0, scoring.MAX_DRAWS, 200),
        (2, 14, scoring.MAX_DRAWS, 200),
        (2, 15, scoring.MAX_DRAWS, 100_000),
        (9, 200, scoring.MAX_DRAWS, 70_000),
        (100, 1_000, scoring.MAX_DRAWS, 20_000),
        (1_000, 1_000, scoring.MAX_DRAWS, 2_000),
        (10_000, 10_000, scoring.MAX_DRAWS, 200),
        (10**6, 10**6, scoring.MAX_DRAWS, 200),
        (2, 100, scoring.MAX_SLICE_DRAWS, 2_000),
        (500, 500, scoring.MAX_SLICE_DRAWS, 400),
    ],
)
def test_more_distinct_examples_are_drawn_less_often(distinct, n, most, draws):
    assert scoring.choose_draws(distinct, n, most) == draws
