"""How often an interval of 95 % holds the truth where the examples of one author are alike."""

import numpy as np
import pytest

from tests.support.crowds import ALIKE, AUTHORS, shares, sizes
from validation.rates.agreement import compute_reliabilities, encode_votes
from validation.rates.rates import ComparedCounts, compare_human_and_model, compute_clustered_rate

RUNS = 1500


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("alike", ALIKE)
@pytest.mark.parametrize("authors", AUTHORS)
def test_rates_by_author(authors, alike, share):
    draw, held = np.random.default_rng(1), 0
    for _ in range(RUNS):
        cases = sizes(draw, authors)
        right = draw.binomial(cases, shares(draw, authors, share, alike))
        found = compute_clustered_rate(zip(right.tolist(), cases.tolist(), strict=True))
        held += found.low <= share <= found.high
    print(f"{authors} authors, {alike}, {share}: {held / RUNS:.3f}")
    assert held / RUNS >= 0.91


@pytest.mark.parametrize("alike", ALIKE)
@pytest.mark.parametrize("authors", AUTHORS)
def test_the_gap_to_people(authors, alike):
    draw, held = np.random.default_rng(2), 0
    for _ in range(RUNS):
        votes = 4 * sizes(draw, authors)
        human = draw.binomial(votes, shares(draw, authors, 0.85, alike))
        model = draw.binomial(votes, shares(draw, authors, 0.5, alike))
        rows = zip(votes.tolist(), human.tolist(), model.tolist(), strict=True)
        gap = compare_human_and_model([ComparedCounts(*row) for row in rows])["human_model_gap"]
        held += gap.low <= 0.35 <= gap.high
    print(f"{authors} authors, {alike}: {held / RUNS:.3f}")
    assert held / RUNS >= 0.91


@pytest.mark.parametrize("alike", ALIKE)
@pytest.mark.parametrize("authors", AUTHORS)
def test_agreement_with_the_others(authors, alike):
    """One validator judges all examples with two others, who agree more often on some authors'.

    The truth is that of these authors, as many examples of each.
    """
    draw, held, runs = np.random.default_rng(3), 0, 300
    for _ in range(runs):
        who = np.repeat(np.arange(authors), sizes(draw, authors))
        chances = shares(draw, authors, 0.8, alike)[who]
        agree = draw.random((len(who), 2)) < chances[:, None]
        votes = [(n, "self", "A") for n in range(len(who))]
        votes += [(n, f"v{k}", "BA"[int(right)]) for (n, k), right in np.ndenumerate(agree)]
        found = compute_reliabilities(encode_votes(votes))["self"].agreement
        held += found.low <= chances.mean() <= found.high
    print(f"{authors} authors, {alike}: {held / runs:.3f}")
    assert held / runs >= 0.92
