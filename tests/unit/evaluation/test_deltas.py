"""Robustness and fairness on gold, and the trap of consistency alone."""

import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.contract import Answer, Number, SetRow
from evaluation.scoring import bootstrap as scoring
from evaluation.scoring.bootstrap import UNDEFINED_NOTE
from evaluation.scoring.robustness import (
    CONSTANT_ANSWER_NOTE,
    NO_VARIANTS_NOTE,
    PerturbedExample,
    compute_delta_numbers,
)
from validation.rates.rates import compute_wilson_interval

LABELS = ("yes", "no")
NAMES = ("accuracy_before", "accuracy_after", "drop", "consistency", "worst_case")


def pair_of(gold: Any, said: Any, *after: tuple[str, Any]) -> PerturbedExample:
    def answer(value: Any) -> Answer | None:
        return None if value is None else Answer(value)

    variants = [(kind, SetRow(kind, {}, (gold,)), answer(value)) for kind, value in after]
    return PerturbedExample(SetRow("u", {}, (gold,)), answer(said), variants)


def deltas(pairs, metric: str = "accuracy", **options) -> dict[tuple[str, str], Number]:
    options = {"labels": LABELS, "seed": 1, **options}
    found = compute_delta_numbers(pairs, metric=metric, **options)
    return {(one.metric, one.kind): one for one in found}


SOME = [
    pair_of("yes", "yes", ("typos", "yes"), ("case", "yes")),
    pair_of("yes", "yes", ("typos", "no"), ("case", "yes"), ("spaces", "no")),
    pair_of("no", "yes", ("typos", "no")),
    pair_of("no", "yes", ("case", None)),
    pair_of("no", "no"),  # without variants: in nothing
]


def test_before_and_after_on_gold():
    found = deltas(SOME)
    values = {
        key: (None if one.value is None else round(one.value, 6), one.n)
        for key, one in found.items()
        if key[1] == ""
    }
    assert values == {
        ("accuracy_before", ""): (2 / 4, 4),
        ("accuracy_after", ""): (round((1 + 1 / 3 + 1 + 0) / 4, 6), 4),
        ("drop", ""): (round(2 / 4 - (7 / 3) / 4, 6), 4),
        ("consistency", ""): (round((1 + 1 / 3 + 0 + 0) / 4, 6), 4),
        ("worst_case", ""): (1 / 4, 4),
        ("worst_kind", ""): (None, 0),  # no kind has enough examples
        ("worst_kind_drop", ""): (None, 0),
    }
    for (name, _), one in [*found.items()][:-2]:  # a difference of four examples has no interval
        assert one.low is None if name == "drop" else one.low <= one.value <= one.high


def test_five_examples_that_all_stay_the_same_are_not_sure_to():
    found = deltas([pair_of("yes", "yes", ("typos", "yes"))] * 5)["consistency", ""]
    assert (found.value, found.low, found.high) == (1, *compute_wilson_interval(5, 5))


def test_each_kind_by_itself():
    found = deltas(SOME)
    assert {kind for _, kind in found} == {"", "typos", "case", "spaces"}
    typos = [(found[name, "typos"].value, found[name, "typos"].n) for name in NAMES]
    assert typos == [(pytest.approx(value), 3) for value in (2 / 3, 2 / 3, 0, 1 / 3, 1 / 3)]


def test_a_majority_classifier_is_consistent_and_bad():
    """Dynabench gave it 100: it measured agreement with the model's own answer."""
    pairs = [pair_of("yes" if n % 4 == 0 else "no", "yes", ("typos", "yes")) for n in range(40)]
    found = deltas(pairs)
    assert [found[name, ""].value for name in NAMES] == [0.25, 0.25, 0, 1, 0.25]
    assert found["accuracy_before", ""].note == CONSTANT_ANSWER_NOTE
    assert next(iter(found)) == ("accuracy_before", "")
    assert (found["consistency", ""].low, found["consistency", ""].high) == compute_wilson_interval(
        40, 40
    )
    assert not deltas([*pairs, pair_of("no", "no", ("typos", "no"))])["accuracy_before", ""].note


def test_a_model_that_never_answers_is_not_consistent():
    found = deltas([pair_of("yes", None, ("typos", None))])
    assert found["consistency", ""].value == 0
    assert not found["accuracy_before", ""].note


def test_graded_metrics_take_the_least_right_answer():
    pairs = [pair_of("red fox", "red fox", ("typos", "fox"), ("case", "The Red Fox"))]
    found = deltas(pairs, "squad_f1", labels=None)
    assert found["squad_f1_before", ""].value == 1
    assert found["squad_f1_after", ""].value == pytest.approx((2 / 3 + 1) / 2)
    assert found["worst_case", ""].value == pytest.approx(2 / 3)
    assert found["consistency", ""].value == 0.5  # texts are compared once normalised


@pytest.mark.parametrize("metric", ["macro_f1", "matthews_correlation", "bleu", "chrf"])
def test_metrics_of_a_corpus(metric):
    text = "a cat sat on the mat"
    pairs = [
        pair_of(text, text, ("typos", text), ("case", "no")),
        pair_of("no", "no", ("typos", "no")),
    ]
    found = deltas(pairs, metric, labels=(text, "no"))
    assert found[f"{metric}_before", ""].value == pytest.approx(1)
    assert 0 < found[f"{metric}_after", ""].value < 1
    assert found["drop", ""].value == pytest.approx(1 - found[f"{metric}_after", ""].value)


def test_tags_that_come_late_are_counted():
    first = PerturbedExample(
        SetRow("u", {}, ("yes",), {"tag": ("a",)}),
        Answer("yes"),
        [("typos", SetRow("v", {}, ("yes",), {"tag": ("b",)}), Answer("no"))],
    )
    found = deltas([first], "dataperf_f1")
    assert [one.value for one in found.values()][:3] == [1, 0, 1]


def test_without_twins_there_is_nothing():
    for pairs in ([], [pair_of("yes", "yes")]):
        found = deltas(pairs)
        assert [name for name, _ in found] == [*NAMES, "worst_kind", "worst_kind_drop"]
        assert {(one.value, one.n) for one in found.values()} == {(None, 0)}
        assert {found[name, ""].note for name in NAMES} == {NO_VARIANTS_NOTE}
        assert not found["worst_kind", ""].note


def test_what_is_not_defined_says_so():
    found = deltas([pair_of("", "", ("typos", ""))], "bleu")
    assert found["bleu_before", ""].value is None
    assert found["drop", ""].note == UNDEFINED_NOTE


def test_a_metric_that_cannot_be_computed_says_what_it_needs():
    (found,) = deltas(SOME, "macro_f1", labels=None).values()
    assert found.value is None
    assert found.note.startswith("macro_f1 ")


def test_intervals_are_of_clusters():
    """Ten copies of each variant say no more than one: the interval does not shrink."""
    chance = random.Random(2)
    said = [chance.choice(LABELS) for _ in range(100)]
    one = deltas([pair_of("yes", "yes", ("typos", value)) for value in said], draws=1000)
    ten = deltas([pair_of("yes", "yes", *[("typos", value)] * 10) for value in said], draws=1000)
    for name in ("accuracy_after", "drop", "consistency"):
        assert one[name, ""].value == ten[name, ""].value
        wide, same = (found[name, ""].high - found[name, ""].low for found in (one, ten))
        assert same == pytest.approx(wide, rel=0.1)
        assert wide == pytest.approx(2 * 1.96 * 0.05, rel=0.15)


def drawn(seed: int, count: int) -> Iterator[PerturbedExample]:
    chance = random.Random(seed)
    for _ in range(count):
        after = [
            (kind, chance.choice((*LABELS, None)))
            for kind in chance.sample(["typos", "case", "spaces"], chance.randrange(4))
        ]
        yield pair_of(chance.choice(LABELS), chance.choice(LABELS), *after)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 99), st.integers(1, 30), st.randoms(use_true_random=False))
def test_order_never_matters(seed, count, chance):
    pairs = list(drawn(seed, count))
    before = deltas(pairs, draws=20)
    chance.shuffle(pairs)
    assert deltas(pairs, draws=20) == before


def test_many_distinct_clusters_become_sums(monkeypatch):
    whole = deltas(drawn(1, 300))
    monkeypatch.setattr(scoring, "MAX_DISTINCT_STATISTICS", 20)
    monkeypatch.setattr("evaluation.scoring.robustness.EXAMPLES_PER_CHECK", 10)
    pieces = deltas(drawn(1, 300))
    assert pieces.keys() == whole.keys()
    for key, one in pieces.items():
        assert (one.n, one.value) == (whole[key].n, pytest.approx(whole[key].value))
