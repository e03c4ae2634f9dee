"""Shares from few votes and a judge model: unbiased, honest intervals, and the votes saved."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from validation.rates.assisted_rates import (
    AssistedExample,
    compute_assisted_rate,
    plan_votes,
)


def simulate(random, *, accuracy, count=600, drawn=120, authors=60, is_weighted=False):
    """Return examples of authors who differ, with a judge that is right with this chance."""
    author_rates = random.beta(4, 6, authors)
    author = random.integers(0, authors, count)
    truth = random.random(count) < author_rates[author]
    judged = np.where(random.random(count) < accuracy, truth, ~truth)
    # People see more of what the judge calls a catch, with a known chance.
    preference = np.where(judged, 1.5, 0.8) if is_weighted else np.ones(count)
    chances = np.minimum(1.0, drawn * preference / preference.sum())
    is_drawn = random.random(count) < chances
    return [
        AssistedExample(int(who), float(said), float(true) if seen else None, float(chance))
        for who, said, true, seen, chance in zip(
            author, judged, truth, is_drawn, chances, strict=True
        )
    ]


@pytest.mark.parametrize("accuracy", [0.1, 0.5, 0.6, 0.9])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_intervals_hold_whatever_the_judge_is_worth(accuracy, is_weighted):
    random = np.random.default_rng(1)
    rates = [
        compute_assisted_rate(simulate(random, accuracy=accuracy, is_weighted=is_weighted))
        for _ in range(400)
    ]
    assert abs(np.mean([rate.value for rate in rates]) - 0.4) < 0.01
    assert 0.915 <= np.mean([rate.low <= 0.4 <= rate.high for rate in rates]) <= 0.98


def test_a_good_judge_makes_errors_smaller_and_a_useless_one_hardly_larger():
    errors = {}
    for accuracy in (0.95, 0.5):
        random = np.random.default_rng(2)
        helped, alone = [], []
        for _ in range(150):
            examples = simulate(random, accuracy=accuracy)
            helped.append(compute_assisted_rate(examples).standard_error)
            without = [
                AssistedExample(row.author, 0.0, row.people_score, row.draw_chance)
                for row in examples
            ]
            alone.append(compute_assisted_rate(without).standard_error)
        errors[accuracy] = np.mean(helped) / np.mean(alone)
    assert errors[0.95] < 0.75
    assert errors[0.5] < 1.02


def test_if_people_judge_everything_the_share_is_theirs():
    examples = [AssistedExample(row, row % 2, float(row % 3 == 0), 1.0) for row in range(30)]
    rate = compute_assisted_rate(examples)
    assert rate.value == pytest.approx(1 / 3)
    assert rate.voted_count == 30


@pytest.mark.parametrize(("drawn", "authors"), [(9, 9), (20, 2)])
def test_too_few_votes_give_no_share(drawn, authors):
    examples = [
        AssistedExample(row % authors, 1.0, 1.0 if row < drawn else None, 0.5) for row in range(40)
    ]
    assert compute_assisted_rate(examples) is None


@pytest.mark.parametrize("chance", [0.0, 1.1])
def test_a_chance_outside_of_0_to_1_is_refused(chance):
    with pytest.raises(ValueError):
        compute_assisted_rate([AssistedExample(1, 1.0, 1.0, chance)] * 20)


@given(correlation=st.floats(0, 0.99), width=st.floats(0.02, 0.3), share=st.floats(0.05, 0.95))
def test_a_plan_saves_what_the_theory_says(correlation, width, share):
    plan = plan_votes(2000, width, expected_share=share, correlation=correlation)
    if plan.without_judge is None:
        assert plan.saved_share == 0
    else:
        theory = correlation**2 * (1 - plan.with_judge / 2000)
        # Both numbers are rounded up, and are at least the minimum.
        assert plan.saved_share <= theory + 1 / plan.without_judge
        assert plan.with_judge <= plan.without_judge


def test_plans_say_how_many_and_when_it_cannot_be_done():
    plan = plan_votes(1000, 0.1, expected_share=0.5, correlation=0.7)
    assert (plan.with_judge, plan.without_judge) == (242, 385)
    assert plan.saved_share > 0.25
    assert plan_votes(100, 0.05, expected_share=0.5, correlation=0.9).with_judge is None
    assert plan_votes(300, 0.1, expected_share=0.5, correlation=1.0).with_judge is None
    with pytest.raises(ValueError):
        plan_votes(100, 0, expected_share=0.5, correlation=0.5)
