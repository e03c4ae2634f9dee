"""Draws of contexts by expected information: probabilities, gains, and rates weighted back."""

import math
import random
from collections import Counter
from statistics import fmean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.rules.context_draw import (
    UNIFORM_SHARE,
    CellEvidence,
    compute_cell_probabilities,
    compute_gain,
    draw_context,
)
from validation.rates.rates import compute_weighted_rate

COUNTS = st.integers(0, 5000)
EVIDENCE = st.builds(CellEvidence, COUNTS, COUNTS, COUNTS)
CELLS = st.dictionaries(
    st.text(max_size=3), st.tuples(st.integers(1, 10_000), EVIDENCE), min_size=1, max_size=8
)


def compute_variance(errors, right):
    """The variance of a Beta posterior with a uniform prior, by the textbook."""
    a, b = errors + 1, right + 1
    return a * b / ((a + b) ** 2 * (a + b + 1))


@given(CELLS)
def test_each_context_keeps_a_tenth_of_the_uniform_probability(cells):
    counts = {name: count for name, (count, _) in cells.items()}
    total = sum(counts.values())
    found = compute_cell_probabilities(counts, {name: one for name, (_, one) in cells.items()})
    assert math.fsum(found.values()) == pytest.approx(1)
    for name, count in counts.items():
        assert found[name] / count >= UNIFORM_SHARE / total * (1 - 1e-9)


@given(st.integers(0, 40), st.integers(0, 40))
def test_a_gain_is_the_expected_fall_of_the_variance(errors, right):
    mean = (errors + 1) / (errors + right + 2)
    after = mean * compute_variance(errors + 1, right)
    after += (1 - mean) * compute_variance(errors, right + 1)
    gain = compute_gain(CellEvidence(errors, right))
    assert gain == pytest.approx(compute_variance(errors, right) - after)


@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 6))
def test_pending_tries_are_expected_to_be_told_first(errors, right, pending):
    def expect_variance(a, b, tries):
        if not tries:
            return compute_variance(a, b)
        mean = (a + 1) / (a + b + 2)
        return mean * expect_variance(a + 1, b, tries - 1) + (1 - mean) * expect_variance(
            a, b + 1, tries - 1
        )

    expected = expect_variance(errors, right, pending) - expect_variance(errors, right, pending + 1)
    assert compute_gain(CellEvidence(errors, right, pending)) == pytest.approx(expected)


def test_a_cell_of_which_more_is_to_be_learnt_comes_more_often():
    evidence = {
        "known": CellEvidence(1, 99),
        "even": CellEvidence(5, 5),
        "sure": CellEvidence(0, 10),
    }
    found = compute_cell_probabilities(dict.fromkeys([*evidence, "new"], 10), evidence)
    assert found["known"] < found["sure"] < found["even"] < found["new"]


def test_cells_without_tries_are_drawn_alike_whatever_their_size():
    found = compute_cell_probabilities({"a": 90, "b": 10}, {})
    assert found == pytest.approx({"a": 0.1 * 0.9 + 0.45, "b": 0.1 * 0.1 + 0.45})


def test_a_round_with_one_cell_is_drawn_uniformly():
    draw = draw_context({"": 40}, {"": CellEvidence(3, 4, 5)})
    assert (draw.cell, draw.choices) == ("", 40)
    assert draw.probability == pytest.approx(1 / 40)


def test_contexts_come_as_often_as_their_probability_says():
    random.seed(5)
    counts, evidence = (
        {"a": 3, "b": 1, "c": 2},
        {"a": CellEvidence(2, 8, 1), "b": CellEvidence(9, 9)},
    )
    drawn, said, n = Counter(), {}, 20_000
    for _ in range(n):
        draw = draw_context(counts, evidence)
        drawn[draw.cell, draw.position] += 1
        said[draw.cell, draw.position] = draw.probability
    assert len(drawn) == 6
    assert math.fsum(said.values()) == pytest.approx(1)
    chi_squared = sum((drawn[key] - n * p) ** 2 / (n * p) for key, p in said.items())
    assert chi_squared < 20.5  # 0.999 of chi-squared with five degrees of freedom


def test_without_contexts_nothing_is_drawn():
    with pytest.raises(ValueError, match="no context"):
        draw_context({}, {})


ERROR_RATES = {"a": [0.02] * 60, "b": [0.1, 0.5] * 15, "c": [0.9] * 10}
"""The probability of an error on each context of three cells."""


def simulate_round(authors=12, tries=15):
    """The clusters of a round whose draws follow its own results, an author after the other."""
    counts = {cell: len(rates) for cell, rates in ERROR_RATES.items()}
    results = {cell: [0, 0] for cell in counts}
    clusters = []
    for _ in range(authors):
        wrong_weight = weight = 0.0
        for _ in range(tries):
            evidence = {cell: CellEvidence(*result) for cell, result in results.items()}
            draw = draw_context(counts, evidence)
            is_wrong = random.random() < ERROR_RATES[draw.cell][draw.position]
            results[draw.cell][not is_wrong] += 1
            weight += 1 / (draw.probability * draw.choices)
            wrong_weight += is_wrong / (draw.probability * draw.choices)
        clusters.append((wrong_weight, weight, tries))
    return clusters, results


def test_weighted_rates_are_those_of_uniform_picking():
    random.seed(11)
    every_rate = [rate for rates in ERROR_RATES.values() for rate in rates]
    truth, rounds = fmean(every_rate), 400
    weighted, totals, plain, covered = [], [], [], 0
    for _ in range(rounds):
        clusters, results = simulate_round()
        rate = compute_weighted_rate(clusters)
        weighted.append(rate.value)
        totals.append(math.fsum(weight for _, weight, _ in clusters) / rate.n)
        plain.append(sum(errors for errors, _ in results.values()) / rate.n)
        covered += rate.low <= truth <= rate.high
    error = stdev(weighted) / rounds**0.5
    # Hájek's ratio has a bias of the order of 1/n, here below a hundredth.
    assert abs(fmean(weighted) - truth) < 3 * error + 0.005
    # A draw weighs one on average, so drawn and other examples can be added.
    assert abs(fmean(totals) - 1) < 4 * stdev(totals) / rounds**0.5
    assert fmean(plain) > truth + 0.1  # what the weights are for
    assert covered / rounds >= 0.93
