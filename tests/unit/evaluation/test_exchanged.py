"""When a model's labels look exchanged: neither by chance, nor where a model is only poor."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.scoring.exchanged import EXCHANGED_WARNING, LabelCounts, make_exchanged_warnings

THREE = ("entailment", "neutral", "contradiction")


def counted(labels: Sequence[str], pairs: Sequence[tuple[str, object]]) -> LabelCounts:
    counts = LabelCounts(labels)
    for gold, said in pairs:
        counts.add((gold,), said)
    return counts


def drawn(
    labels: Sequence[str], size: int, *, right: float, said: dict[str, str], seed: int = 0
) -> list[tuple[str, object]]:
    """A model that knows so many answers, and guesses the others, under other names."""
    chance, pairs = random.Random(seed), list[tuple[str, object]]()
    for _ in range(size):
        gold = chance.choice(labels)
        known = gold if chance.random() < right else chance.choice(labels)
        pairs.append((gold, said.get(known, known)))
    return pairs


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (("no", "yes"), {"no": "yes", "yes": "no"}),
        (THREE, {"entailment": "contradiction", "contradiction": "entailment"}),
        (THREE, dict(zip(THREE, (*THREE[1:], THREE[0]), strict=True))),
        ([*"abcdefghij"], {"c": "h", "h": "c"}),
    ],
)
def test_exchanged_labels_are_found_with_what_they_stand_for(
    labels: Sequence[str], said: dict[str, str]
) -> None:
    found = counted(labels, drawn(labels, 300, right=0.8, said=said)).find_exchanged_labels()
    assert found == {name: meant for meant, name in said.items()}
    told = make_exchanged_warnings(found)
    assert told[0] == EXCHANGED_WARNING
    assert len(told) == 2


@pytest.mark.parametrize(
    "pairs",
    [
        [],
        drawn(THREE, 300, right=0.8, said={}),
        drawn(THREE, 300, right=0.0, said={}),
        drawn(("no", "yes"), 10, right=1.0, said={"no": "yes", "yes": "no"}),  # too few
        drawn(("no", "yes"), 3000, right=0.2, said={"no": "yes", "yes": "no"}),  # it knows little
        [("no", "yes")] * 280 + [("yes", "yes")] * 20,  # it says one label for everything
        [("no", "yes")] * 300,
    ],
)
def test_other_models_do_not_look_so(pairs: list[tuple[str, object]]) -> None:
    labels = THREE if pairs and pairs[0][0] in THREE else ("no", "yes")
    assert counted(labels, pairs).find_exchanged_labels() == {}
    assert make_exchanged_warnings({}) == ()


def test_what_has_no_single_label_does_not_count() -> None:
    counts = counted(("no", "yes"), drawn(("no", "yes"), 100, right=1.0, said={}))
    for _ in range(300):
        counts.add(("no", "yes"), "yes")
        counts.add(("no",), "maybe")
        counts.add(("maybe",), "no")
    assert counts.find_exchanged_labels() == {}


@given(st.integers(0, 10_000), st.integers(2, 6), st.integers(1, 400))
def test_a_model_that_guesses_never_looks_so(seed: int, number: int, size: int) -> None:
    labels = [*"abcdef"[:number]]
    assert (
        counted(labels, drawn(labels, size, right=0.0, said={}, seed=seed)).find_exchanged_labels()
        == {}
    )


@given(st.integers(0, 10_000), st.permutations("abcd"), st.floats(0.7, 1.0))
def test_any_permutation_is_found_again(seed: int, order: list[str], right: float) -> None:
    said = dict(zip("abcd", order, strict=True))
    found = counted(
        "abcd", drawn("abcd", 400, right=right, said=said, seed=seed)
    ).find_exchanged_labels()
    assert found == {name: meant for meant, name in said.items() if name != meant}
