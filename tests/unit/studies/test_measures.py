"""Outcomes computed from texts and votes: novelty within an arm, and the agreement of votes."""

from hypothesis import given
from hypothesis import strategies as st

from dynabench.studies.rules.agreement import compute_agreement
from dynabench.studies.rules.novelty import compute_novelty
from tasks.config.loading import load_config
from tests.support.studies import CONFIG

NLI = load_config(CONFIG)
TEXTS = [
    "The old shop at the corner opened at nine in the morning.",
    "The old shop at the corner opened at nine in the morning!",
    "Nobody has ever seen a whale in this small mountain lake.",
    "Too short",
]


def measure(texts):
    rows = [{"pk": number, "inputs": {"hypothesis": text}} for number, text in enumerate(texts)]
    return list(compute_novelty(NLI, rows).values())


def test_a_copy_of_an_earlier_text_is_not_new():
    assert measure(TEXTS) == [1, 0, 1, None]
    # Only earlier texts count.
    assert measure(TEXTS[:1]) == [1]


def test_many_copies_are_compared_once():
    assert measure(TEXTS[:1] * 2000) == [1] + [0] * 1999


@given(st.lists(st.text(max_size=60), max_size=8))
def test_novelty_is_a_share_or_unknown(texts):
    assert all(value is None or 0 <= value <= 1 for value in measure(texts))


@given(st.lists(st.integers(0, 5), max_size=4))
def test_agreement_is_a_share(counts):
    share = compute_agreement(counts)
    assert (share is None) == (sum(counts) < 2)
    assert share is None or 0 <= share <= 1


@given(st.integers(2, 20))
def test_equal_votes_agree_wholly(count):
    assert compute_agreement([count]) == 1
    assert compute_agreement([1] * count) == 0
