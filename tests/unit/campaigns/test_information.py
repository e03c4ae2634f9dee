"""The information of a catch: what people and models say of it, less what people disagree on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynabench.campaigns.rules.information import CatchFacts, compute_information
from evaluation.scoring.ruler.people import estimate_ambiguity

counts = st.integers(0, 12)


@pytest.mark.parametrize(
    ("facts", "information"),
    [
        (CatchFacts(3, 3, 1, 1, [3]), 1.0),
        (CatchFacts(3, 3, 1, 2, [3]), 0.5),
        (CatchFacts(4, 5, 1, 1, [4, 1]), 0.64),  # 0.8 − ½ × (1 − 0.64 − 0.04)
        (CatchFacts(2, 4, 1, 1, [2, 1, 1]), 0.19),  # 0.5 − ½ × (1 − 0.25 − 2 × 0.0625)
        (CatchFacts(1, 4, 1, 4, [1, 1, 1, 1]), 0.0),  # never negative
        (CatchFacts(3, 3, 1, 1, [3], discrimination=0.25), 0.25),
        (CatchFacts(3, 3, 1, 1, [3], discrimination=-2.0), 0.0),
        (CatchFacts(3, 3, 1, 1, [3], discrimination=9.0), 1.0),  # never more than the bonus
        (CatchFacts(0, 0, 0, 0, []), 1.0),  # decided by an owner, of an imported round
    ],
)
def test_worked_examples(facts, information):
    assert compute_information(facts) == information


@given(counts, counts, counts, counts, st.one_of(st.none(), st.floats(-5, 5)))
def test_it_is_a_share_and_disagreement_never_pays(right, wrong, fooled, others, discrimination):
    models = fooled + others
    facts = CatchFacts(right, right + wrong, fooled, models, [right, wrong], discrimination)
    information = compute_information(facts)
    assert 0 <= information <= 1
    agreed = CatchFacts(
        right + wrong, right + wrong, fooled, models, [right + wrong], discrimination
    )
    assert compute_information(agreed) >= information
    if models:
        more = CatchFacts(right, right + wrong, models, models, [right, wrong], discrimination)
        assert compute_information(more) >= information


def test_ambiguity_is_that_of_the_items_without_a_prior():
    """The estimate of an item's ambiguity approaches the same number with many votes."""
    facts = CatchFacts(6000, 10_000, 1, 1, [6000, 4000])
    assert compute_information(facts) == pytest.approx(
        0.6 - estimate_ambiguity([6000, 4000], 2).value / 2, abs=0.01
    )
