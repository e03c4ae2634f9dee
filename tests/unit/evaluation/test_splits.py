"""No author is in two splits, sizes and labels come out as planned, the same seed does the same."""

from collections import Counter, defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.dataset_releases.splits import (
    DEV,
    HELD_SPLIT,
    SPLITS,
    TEST,
    TRAIN,
    RowAssigner,
    RowCounts,
    SplitSizes,
    make_plan,
    share_equally,
)

LABELS = ("entailment", "neutral", "contradiction")
rows = st.lists(
    st.tuples(st.one_of(st.none(), st.integers(1, 12)), st.sampled_from(LABELS), st.booleans()),
    max_size=150,
)
size = st.integers(0, 40)
sizes = st.builds(SplitSizes, st.one_of(st.none(), st.integers(0, 60)), size, size, size)
PLANNED = (*SPLITS, HELD_SPLIT)


def counted(rows):
    counts = RowCounts()
    for author, label, is_verified in rows:
        counts.add(author, label, is_verified)
    return counts


def dealt(rows, wanted, seed=0):
    """The plan, and the split of each row."""
    plan = make_plan(counted(rows), wanted, seed=seed)
    dealer = RowAssigner(plan, seed=seed)
    return plan, [dealer.assign_row(*row) for row in rows]


@given(rows, sizes, st.integers(0, 5))
def test_what_holds_for_any_rows(rows, wanted, seed):
    plan, splits = dealt(rows, wanted, seed)
    of_author = defaultdict(set)
    for (author, _, is_verified), split in zip(rows, splits, strict=True):
        assert is_verified or split in (None, TRAIN)
        if author is not None and split:
            of_author[author].add(split)
    assert all(len(found) == 1 for found in of_author.values())
    got = Counter(split for split in splits if split)
    assert plan.sizes == SplitSizes(*(got[split] for split in PLANNED))
    for split in PLANNED:
        its = Counter(r[1] for r, where in zip(rows, splits, strict=True) if where == split)
        assert its == +plan.labels[split]
    assert plan.sizes.test <= wanted.test
    assert plan.sizes.dev <= wanted.dev
    assert plan.sizes.held <= wanted.held
    assert wanted.train is None or plan.sizes.train <= wanted.train


@given(rows, sizes)
def test_the_same_seed_gives_the_same_splits(rows, wanted):
    assert dealt(rows, wanted, 3)[1] == dealt(rows, wanted, 3)[1]


@given(rows, sizes)
def test_sizes_are_met_when_verified_rows_suffice(rows, wanted):
    """Test is served first: it gets its size whenever that many verified rows exist."""
    verified = sum(is_verified for _, _, is_verified in rows)
    plan, _ = dealt(rows, wanted)
    assert plan.sizes.test == min(wanted.test, verified)


def even(authors, each=6):
    return [(a, label, True) for a in range(authors) for label in LABELS for _ in range(each)]


def test_many_even_authors_give_exact_balanced_splits_and_lose_nothing():
    plan, splits = dealt(even(100), SplitSizes(None, 180, 180))
    assert plan.sizes == (1440, 180, 180, 0)
    assert plan.labels[TEST] == dict.fromkeys(LABELS, 60)
    assert plan.labels[DEV] == dict.fromkeys(LABELS, 60)
    assert None not in splits


def test_a_scarce_label_stays_in_all_splits():
    rows = [(a, "neutral", True) for a in range(60) for _ in range(5)]
    rows += [(a, "contradiction", True) for a in range(60, 90)]
    plan, _ = dealt(rows, SplitSizes(None, 40, 40))
    assert (plan.sizes.dev, plan.sizes.test) == (40, 40)
    assert all(plan.labels[split]["contradiction"] >= 6 for split in SPLITS)


def test_authors_whose_rows_fit_are_taken_before_others():
    rows = [(99, "neutral", True)] * 500 + [(a, "neutral", True) for a in range(30)]
    plan, _ = dealt(rows, SplitSizes(None, 5, 5))
    assert 99 not in plan.split_by_author
    assert plan.sizes == (520, 5, 5, 0)


def test_what_does_not_fit_of_an_author_is_left_out_by_chance():
    rows = [(a, "neutral", True) for a in (7, 8, 9) for _ in range(100)]
    plan, splits = dealt(rows, SplitSizes(None, 10, 10))
    assert plan.sizes == (100, 10, 10, 0)
    assert splits.count(None) == 180
    first = [where for where, split in enumerate(splits) if split == TEST]
    assert first != list(range(first[0], first[0] + 10))


def test_rows_of_unknown_authors_go_anywhere_and_unjudged_ones_to_train():
    rows = [(None, "neutral", True)] * 50 + [(None, "neutral", False)] * 7
    plan, splits = dealt(rows, SplitSizes(None, 10, 10))
    assert plan.sizes == (37, 10, 10, 0)
    assert splits[50:] == [TRAIN] * 7


def test_unjudged_rows_of_a_test_author_are_left_out():
    rows = [(7, "neutral", True), (7, "neutral", False), (8, "neutral", False)]
    plan, splits = dealt(rows, SplitSizes(None, 0, 1))
    assert splits == [TEST, None, TRAIN]
    assert plan.sizes == (1, 0, 1, 0)


def test_train_can_be_capped_and_is_balanced():
    rows = [(a, "neutral", True) for a in range(90)] + [(a, "entailment", True) for a in range(30)]
    plan, splits = dealt(rows, SplitSizes(40, 0, 0))
    assert plan.labels[TRAIN] == {"neutral": 20, "entailment": 20}
    assert splits.count(None) == 80


def test_rows_that_nobody_counted_are_left_out():
    plan = make_plan(counted([(7, "neutral", True)]), SplitSizes(None, 0, 1), seed=0)
    dealer = RowAssigner(plan, seed=0)
    assert dealer.assign_row(7, "contradiction", True) is None
    assert dealer.assign_row(7, "neutral", True) == TEST
    assert dealer.assign_row(7, "neutral", True) is None
    assert dealer.assign_row(None, "neutral", True) is None


def test_counts_tell_their_sums():
    counts = counted([(7, "a", True), (8, "a", False), (None, "b", False)])
    assert counts.author_count == 2
    assert counts.count_labels(True) == {"a": 1}
    assert counts.count_labels(False) == {"a": 1, "b": 1}


@pytest.mark.parametrize(
    ("total", "available", "parts"),
    [
        (9, {"a": 9, "b": 9, "c": 9}, {"a": 3, "b": 3, "c": 3}),
        (10, {"a": 1, "b": 9, "c": 9}, {"a": 1, "b": 5, "c": 4}),
        (10, {"a": 1, "b": 2}, {"a": 1, "b": 2}),
        (0, {"a": 1}, {}),
        (3, {}, {}),
    ],
)
def test_fill_gives_equal_parts(total, available, parts):
    assert share_equally(total, available) == parts


def test_held_rows_have_authors_of_their_own():
    rows = [(author, "entailment", True) for author in range(10) for _ in range(4)]
    plan, _ = dealt(rows, SplitSizes(None, 4, 4, 8))
    assert plan.sizes == (24, 4, 4, 8)
    assert Counter(plan.split_by_author.values()) == {"test": 1, "dev": 1, "held": 2}


def test_what_a_plan_leaves_out_is_counted_by_reason():
    counts = counted([(author, "neutral", True) for author in (1, 2, 3) for _ in range(3)])
    plan = make_plan(counts, SplitSizes(2, 0, 2), seed=0)
    assert (counts.total, plan.sizes) == (9, SplitSizes(2, 0, 2))
    # One author is the test split's, with one row too many; of the others' six train takes two.
    assert plan.count_left_out(counts) == {"author": 1, "size": 4}


def test_an_author_is_as_often_held_back_as_released_however_many_rows_they_wrote():
    rows_of = {author: (2, 9, 30)[author % 3] for author in range(24)}
    counts = RowCounts()
    for author, n in rows_of.items():
        counts.add(author, "neutral", True, n)
    often = Counter()
    for seed in range(600):
        plan = make_plan(counts, SplitSizes(None, 0, 60, 60), seed=seed)
        often.update((rows_of[author], split) for author, split in plan.split_by_author.items())
    for n in (2, 9, 30):
        test, held = often[n, TEST], often[n, HELD_SPLIT]
        # Five standard errors of a fair coin.
        assert abs(test - held) < 5 * (test + held) ** 0.5


def test_test_gets_its_size_before_anything_is_held_back():
    for seed in range(6):
        plan, _ = dealt([(1, "neutral", True)] * 10, SplitSizes(None, 0, 5, 5), seed)
        assert (plan.sizes.test, plan.sizes.held) == (5, 0)
