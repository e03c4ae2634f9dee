"""How often an interval of 95 % holds the truth where the examples of one author are alike."""

import numpy as np
import pytest

from validation.rules.rates import Compared, clustered_rate, human_and_model

RUNS = 1500
AUTHORS = (3, 5, 10, 20, 30, 60)
ALIKE = (0.05, 0.2)  # correlation within authors


def sizes(draw: np.random.Generator, authors: int) -> np.ndarray:
    """Examples of each author: a few people write most of them."""
    return np.clip(np.ceil(draw.lognormal(1.6, 1.0, authors)), 2, 200).astype(int)


def shares(draw: np.random.Generator, authors: int, share: float, alike: float) -> np.ndarray:
    """Each author's own share, beta distributed with the correlation."""
    return draw.beta(share * (1 - alike) / alike, (1 - share) * (1 - alike) / alike, authors)


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("alike", ALIKE)
@pytest.mark.parametrize("authors", AUTHORS)
def test_rates_by_author(authors, alike, share):
    draw, held = np.random.default_rng(1), 0
    for _ in range(RUNS):
        cases = sizes(draw, authors)
        right = draw.binomial(cases, shares(draw, authors, share, alike))
        found = clustered_rate(zip(right.tolist(), cases.tolist(), strict=True))
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
        gap = human_and_model([Compared(*row) for row in rows])["human_model_gap"]
        held += gap.low <= 0.35 <= gap.high
    print(f"{authors} authors, {alike}: {held / RUNS:.3f}")
    assert held / RUNS >= 0.91
