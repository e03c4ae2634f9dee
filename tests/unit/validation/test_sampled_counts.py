"""Rates of a whole round from the part that people judged, with the help of a judge model."""

import random

import pytest

from validation.rates.assisted_rates import (
    AssistedExample,
    RatioTerm,
    compute_assisted_rate,
    compute_assisted_ratio,
    compute_judge_correlation,
)
from validation.rates.rates import Undefined, compute_clustered_ratio
from validation.rates.sampled_counts import (
    JUDGE_METHOD,
    RATIOS,
    SampledCounts,
    SampledExample,
    count_drawn,
    estimate_rates,
)


def make_round(rng, chance=1.0, count=400, authors=20, can_be_catch=True):
    """A round of this many examples, two thirds of which people confirm."""
    counts = SampledCounts(is_sampled=True)
    for number in range(count):
        author = number % authors
        is_right = rng.random() < 0.5 + author / authors / 3
        votes = rng.randint(2, 5)
        counts.examples.append(
            SampledExample(
                author,
                float(is_right if rng.random() < 0.8 else not is_right),
                chance,
                rng.random() < chance,
                can_be_catch,
                is_to_judge=True,
                weight=1.0,
                catches=is_right,
                decided=rng.random() < 0.9,
                judged=True,
                unanimous=rng.random() < 0.7,
                votes=votes,
                human=votes - 1,
                model=1,
            )
        )
    return counts


@pytest.mark.parametrize("name", RATIOS)
def test_if_everything_is_judged_the_rates_are_the_plain_ones(name):
    counts = make_round(random.Random(1))
    sums = {}
    for one in counts.examples:
        numerator, size = RATIOS[name](one)
        old = sums.get(one.author, (0, 0))
        sums[one.author] = old[0] + numerator, old[1] + size
    plain = compute_clustered_ratio(list(sums.values()))
    rate = estimate_rates(counts, [name])[name]
    assert rate.value == pytest.approx(plain.value)
    # The judge's line costs two degrees of freedom of 400.
    assert rate.high - rate.low == pytest.approx(2 * plain.half_width, rel=0.02)
    assert (rate.n, rate.method) == (400, JUDGE_METHOD)


@pytest.mark.parametrize("name", ["vmer", "majority_share", "human_accuracy"])
def test_a_sample_says_on_average_what_all_would(name):
    whole = make_round(random.Random(2))
    truth = estimate_rates(whole, [name])[name].value
    rng, values = random.Random(3), []
    for _ in range(200):
        drawn = [one._replace(chance=0.3, is_asked=rng.random() < 0.3) for one in whole.examples]
        values.append(estimate_rates(SampledCounts(drawn, is_sampled=True), [name])[name].value)
    spread = (sum((value - truth) ** 2 for value in values) / len(values)) ** 0.5
    assert abs(sum(values) / len(values) - truth) < 4 * spread / 200**0.5


def test_what_no_vote_can_make_a_catch_is_known():
    rng = random.Random(4)
    wrong, right = make_round(rng, chance=0.5), make_round(rng, count=100, can_be_catch=False)
    right.examples = [
        one._replace(is_asked=False, is_to_judge=False, catches=False) for one in right.examples
    ]
    alone = estimate_rates(wrong, ["vmer"])["vmer"].value
    together = SampledCounts([*wrong.examples, *right.examples], is_sampled=True)
    assert estimate_rates(together, ["vmer"])["vmer"].value == pytest.approx(alone * 0.8, rel=1e-3)
    drawn, left_out = count_drawn(together)
    assert drawn + left_out == 400


def test_unknown_authors_are_different_people():
    counts = make_round(random.Random(5), chance=0.5)
    counts.examples = [one._replace(author=None) for one in counts.examples]
    assert not isinstance(estimate_rates(counts, ["vmer"])["vmer"], Undefined)


@pytest.mark.parametrize(("count", "authors"), [(9, 9), (100, 2), (0, 1)])
def test_too_few_are_no_rate(count, authors):
    counts = make_round(random.Random(6), count=count, authors=authors)
    assert isinstance(estimate_rates(counts, ["vmer"])["vmer"], Undefined)


def test_a_ratio_over_equal_sizes_is_the_share():
    rng = random.Random(7)
    examples, terms = [], []
    for number in range(300):
        chance = rng.choice([0.2, 0.5, 1])
        truth, is_drawn = float(rng.random() < 0.4), rng.random() < chance
        judge = truth if rng.random() < 0.7 else 1 - truth
        examples.append(AssistedExample(number % 25, judge, truth if is_drawn else None, chance))
        terms.append(RatioTerm(truth, 1.0) if is_drawn else RatioTerm(None, None))
    share, ratio = compute_assisted_rate(examples), compute_assisted_ratio(examples, terms)
    # The ratio knows the number of examples only from the sample, so they are close, not equal.
    assert ratio.value == pytest.approx(share.value, abs=0.02)
    assert ratio.standard_error == pytest.approx(share.standard_error, rel=0.1)
    assert compute_assisted_ratio(examples, [RatioTerm(None, None)] * 300) is None


def test_the_correlation_is_that_of_a_weighted_sample():
    rows = [(0.0, 0.0, 3.0), (1.0, 1.0, 1.0), (0.0, 1.0, 1.0)]
    # As if the first had been drawn three times: 3, 1 and 1 of five.
    assert compute_judge_correlation(rows) == pytest.approx(0.6124, abs=1e-4)
    assert compute_judge_correlation([(1.0, 0.0, 1.0), (1.0, 1.0, 1.0)]) == 0
