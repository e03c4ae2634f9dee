"""The worst kind and the worst group: never better than any part, whatever is the same for all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.contract import Answer, Number, SetRow
from evaluation.scoring.groups import (
    MENTIONS,
    GroupDefinitions,
    choose_group_metric,
    compute_group_numbers,
    find_mentioned_groups,
    is_in_slice,
    read_groups,
    select_group_numbers,
)
from evaluation.scoring.robustness import PerturbedExample, compute_delta_numbers
from evaluation.scoring.worst import compute_gap, compute_least, find_worst, select_comparable
from evaluation.seeds import OFFICIAL_TASKS_FOLDER
from tasks.config.loading import load_config

LABELS = ("yes", "no")


def part(value, n=100, name="a", half=0.05, metric="accuracy"):
    low, high = (None, None) if half is None else (max(0, value - half), min(1, value + half))
    return Number(metric, value, low, high, n, slice=f"{MENTIONS}={name}")


def test_the_worst_of_three_by_hand():
    parts = [part(0.8, 40, "a"), part(0.6, 30, "b"), part(0.1, 14, "few"), part(0.7, 20, "c")]
    assert [one.slice for one in select_comparable(parts)] == [f"{MENTIONS}={n}" for n in "abc"]
    assert find_worst(parts).slice == f"{MENTIONS}=b"
    found = compute_least("worst_group", parts)
    assert (found.metric, found.value, found.n, found.slice) == ("worst_group", 0.6, 20, "")
    assert found.low == pytest.approx(0.55)
    # z of 1 - 0.025 / 3 is 2.394, by tables; 2.394 / 1.960 = 1.2214
    assert found.high == pytest.approx(0.6 + 0.05 * 1.2214, abs=1e-4)
    between = compute_gap("group_gap", parts)
    assert (between.value, between.n) == (pytest.approx(0.2), 20)
    # Newcombe's method 10 of a and b, of six differences: z of 1 - 0.025 / 6 is 2.638
    assert between.low == pytest.approx(0.2 - 2.638 / 1.96 * 0.05 * 2**0.5, abs=1e-4)
    assert between.high == pytest.approx(0.2 + 0.05 * 2**0.5)


def test_too_few_parts_or_examples_have_no_number():
    nothing = (None, None, None, 0)
    for parts in ([], [part(0.5, 14)]):
        found = compute_least("worst_kind", parts)
        assert (found.value, found.low, found.high, found.n) == nothing
        assert find_worst(parts) is None
    assert compute_least("worst_kind", [part(0.5, 15)]).value == 0.5
    one = compute_gap("group_gap", [part(0.5), part(0.5, 3)])
    assert (one.value, one.low, one.high, one.n) == nothing


def test_a_part_without_an_interval_leaves_none():
    parts = [part(0.5, half=None), part(0.7, name="b")]
    for found in (compute_least("worst_kind", parts), compute_gap("group_gap", parts)):
        assert found.value is not None
        assert found.low is found.high is None


PARTS = st.lists(
    st.builds(
        part,
        st.floats(0, 1),
        st.integers(1, 400),
        st.sampled_from("abcdef"),
        st.floats(0, 0.5),
    ),
    max_size=8,
)


@given(PARTS, st.randoms(use_true_random=False))
def test_the_worst_is_at_most_each_part_and_the_gap_none_below_zero(parts, chance):
    found, between = compute_least("worst", parts), compute_gap("gap", parts)
    for one in select_comparable(parts):
        assert found.value <= one.value
        assert found.low <= found.value <= found.high + 1e-12
    if between.value is not None:
        assert 0 <= between.low <= between.value <= between.high + 1e-12
        assert found.value + between.value == pytest.approx(
            max(p.value for p in select_comparable(parts))
        )
    mixed = chance.sample(parts, len(parts))
    assert (compute_least("worst", mixed), compute_gap("gap", mixed)) == (found, between)


def perturbed(answers, kinds=("case", "typos")):
    """Pairs of an answer and what followed by kind; the right one is yes, then no, and so on."""
    found = []
    for number, (said, *after) in enumerate(answers):
        gold = LABELS[number % 2]
        variants = [
            (kind, SetRow(kind, {}, (gold,)), Answer(each))
            for kind, each in zip(kinds, after, strict=True)
        ]
        found.append(PerturbedExample(SetRow(str(number), {}, (gold,)), Answer(said), variants))
    return found


def deltas(pairs):
    found = compute_delta_numbers(pairs, metric="accuracy", labels=LABELS, seed=1)
    return {(one.metric, one.kind): one for one in found}


def test_the_worst_kind_and_its_own_drop():
    right = [(LABELS[n % 2],) * 3 for n in range(16)]
    wrong = [(LABELS[n % 2], LABELS[n % 2], LABELS[(n + 1) % 2]) for n in range(4)]
    found = deltas(perturbed(right + wrong))
    assert found["worst_kind", ""].value == found["accuracy_after", "typos"].value == 16 / 20
    assert found["worst_kind_drop", ""].value == pytest.approx(4 / 20)
    assert found["worst_kind_drop", ""].low is not None
    assert found["accuracy_after", "case"].value == 1


@given(
    st.lists(st.tuples(*[st.sampled_from(LABELS)] * 3), min_size=15, max_size=40),
    st.randoms(use_true_random=False),
)
def test_the_worst_kind_is_before_less_its_drop_in_any_order(answers, chance):
    pairs = perturbed(answers)
    found = deltas(pairs)
    value, drop = found["worst_kind", ""].value, found["worst_kind_drop", ""].value
    assert value == min(found["accuracy_after", kind].value for kind in ("case", "typos"))
    assert drop == pytest.approx(found["accuracy_before", "case"].value - value)
    assert deltas(chance.sample(pairs, len(pairs))) == found


def test_a_constant_model_is_perfectly_consistent_and_gains_nothing():
    found = deltas(perturbed([("yes", "yes", "yes")] * 40))
    assert found["consistency", ""].value == 1
    assert (found["worst_kind", ""].value, found["worst_kind_drop", ""].value) == (0.5, 0)


TEXT = (OFFICIAL_TASKS_FOLDER / "sentiment" / "task.yaml").read_text()
METRICS = "metrics: {main: macro_f1, also: [accuracy], deltas: [fairness, robustness]}"
WEIGHTS = "fairness: 1, robustness: 1"


def config(metrics=METRICS, weights=WEIGHTS, language="en"):
    assert METRICS in TEXT
    text = TEXT.replace(METRICS, metrics).replace(WEIGHTS, weights)
    return load_config(text.replace("language: en", f"language: {language}"))


def test_groups_are_named_by_whole_words_in_any_case():
    groups = read_groups(config())
    row = SetRow("u", {"text": "SHE told Muslims and old  people: the mandate is his"}, ("x",))
    assert groups.add_mentions(row).slices[MENTIONS] == ("men", "women", "muslims", "old people")
    other = SetRow("u", {"text": "the shelter", "label": "her"}, ("x",), {"tag": ("work",)})
    assert groups.add_mentions(other).slices == {"tag": ("work",), MENTIONS: ()}
    assert [*find_mentioned_groups({"text": 3}, ("text", "gone"), groups.terms)] == []


def test_owners_name_terms_and_slices():
    found = read_groups(
        config(
            "metrics: {main: macro_f1, also: [accuracy], deltas: [fairness], "
            "group_terms: [[Celts, Old  Angles]], groups: [tag]}",
            "fairness: 1",
        )
    )
    assert found.fields == ("tag", MENTIONS)
    assert [*found.terms] == ["men", "women", "celts", "old angles"]


def test_a_term_with_a_typographic_apostrophe_is_found():
    found = read_groups(
        config(
            "metrics: {main: macro_f1, also: [accuracy], deltas: [fairness], "
            "group_terms: [[Ma’ohi, Celts]]}",
            "fairness: 1",
        )
    )
    for apostrophe in "’'":
        row = SetRow("u", {"text": f"A Ma{apostrophe}ohi song"}, ("x",))
        assert "ma'ohi" in found.add_mentions(row).slices[MENTIONS]


def test_without_fairness_there_are_no_groups_and_elsewhere_no_english_words():
    none = read_groups(config("metrics: {main: macro_f1, deltas: [robustness]}", "robustness: 1"))
    row = SetRow("u", {"text": "she"}, ("x",))
    assert none == GroupDefinitions((), {}, ())
    assert none.add_mentions(row) is row
    assert compute_group_numbers([part(0.5)], none, "accuracy") == []
    assert read_groups(config(language="de")).fields == ()


def test_groups_are_compared_by_a_share_of_right_answers():
    assert choose_group_metric(("macro_f1", "accuracy")) == "accuracy"
    assert choose_group_metric(("squad_f1", "exact_match")) == "squad_f1"
    assert choose_group_metric(("macro_f1",)) == "macro_f1"


def test_the_worst_group_and_the_gap_of_numbers_by_slice():
    groups = GroupDefinitions(("tag", MENTIONS), {}, ())
    numbers = [
        part(0.9, name="women"), part(0.6, name="men"), part(0.2, 10, name="few"),
        part(0.1, metric="macro_f1"), Number("accuracy", 0.1, 0, 1, 90),
        Number("accuracy", 0.3, 0.2, 0.4, 50, slice="tag=work"),
        Number("accuracy", 0.0, 0.0, 0.1, 50, slice="challenge=x"),
        Number("accuracy", None, None, None, 50, slice="tag=…"),
    ]  # fmt: skip
    found = compute_group_numbers(numbers, groups, "accuracy")
    assert [(one.metric, one.value) for one in found] == [
        ("worst_group", 0.3), ("group_gap", pytest.approx(0.6)),
    ]  # fmt: skip
    alone = compute_group_numbers([part(0.9, name="women")], groups, "accuracy")
    assert [one.value for one in alone] == [None, None]
    assert len(select_group_numbers(numbers, groups.fields, "accuracy")) == 4


def test_a_row_is_in_the_slices_of_its_values():
    row = SetRow("u", {}, (), {"tag": ("a=b", "long" * 100)})
    assert is_in_slice(row, "tag=a=b")
    assert is_in_slice(row, f"tag={'long' * 100}"[:200])
    assert not is_in_slice(row, "tag=a")
    assert not is_in_slice(row, "other=a")
