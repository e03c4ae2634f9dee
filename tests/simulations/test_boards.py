"""How often intervals and ranks of models hold the truth, on few and many examples or authors."""

import numpy as np
import pytest

from evaluation.scoring.bootstrap import MIN_RESAMPLED_EXAMPLES, compute_resampled_difference
from leaderboard.board.pairs import find_significant_pairs
from leaderboard.ranking.ranks import compare_scores
from tests.support.crowds import ALIKE, AUTHORS, shares, sizes

RUNS, DRAWS, MODELS, SHARE = 600, 200, 5, 0.8


@pytest.mark.parametrize("alike", ALIKE)
@pytest.mark.parametrize("authors", AUTHORS)
def test_the_difference_of_two_models_by_cluster(authors, alike):
    """Graded answers; both models are equally good over all authors, and differ with each."""
    draw, held, sure = np.random.default_rng(3), 0, 0
    for _ in range(RUNS):
        who = np.repeat(np.arange(authors), sizes(draw, authors))
        first, second = (
            draw.binomial(1, shares(draw, authors, SHARE, alike)[who]) for _ in range(2)
        )
        found = compare_scores(first.tolist(), second.tolist(), who.tolist())
        held += found.low <= 0 <= found.high
        sure += found.p <= 0.05
    print(f"{authors} authors, {alike}: {held / RUNS:.3f}, sure in {sure / RUNS:.3f}")
    assert held / RUNS >= 0.92
    assert sure / RUNS <= 0.08


def resamples(draw: np.random.Generator, examples: int, groups: np.ndarray | None = None):
    """Poisson draws: DRAWS × examples; groups (by example) are drawn together."""
    count = examples if groups is None else groups.max() + 1
    drawn = draw.poisson(1.0, (DRAWS, count)).astype(float)
    drawn[drawn.sum(axis=1) == 0] = 1
    return drawn if groups is None else drawn[:, groups]


@pytest.mark.parametrize("kept", [0.95, 0.8, 0.6])
@pytest.mark.parametrize("bases", [15, 20, 30, 60, 200])
def test_the_drop_under_perturbation(bases, kept):
    """Each base with three variants; `kept`: how often a right answer stays right."""
    draw, held = np.random.default_rng(4), 0
    truth = 0.8 - (0.8 * kept + 0.2 * 0.2)
    assert bases >= MIN_RESAMPLED_EXAMPLES
    for _ in range(RUNS):
        right = draw.random(bases) < 0.8
        after = draw.binomial(3, np.where(right, kept, 0.2)) / 3
        gains = right - after
        drawn = resamples(draw, bases)
        values = np.concatenate([[gains.mean()], drawn @ gains / drawn.sum(axis=1)])
        _, low, high = compute_resampled_difference(values, bases)
        held += low is None or low <= truth <= high
    print(f"{bases} examples, {kept}: {held / RUNS:.3f}")
    assert held / RUNS >= 0.92


def board(draw: np.random.Generator, chances: np.ndarray, drawn: np.ndarray) -> tuple[float, bool]:
    """Of models with these chances (models × examples): how many intervals of the mean hold SHARE,
    and whether any pair is told apart."""
    right = (draw.random(chances.shape) < chances).astype(float)
    values, draws = right.mean(axis=1), right @ drawn.T / drawn.sum(axis=1)
    low, high = np.quantile(draws, (0.025, 0.975), axis=1)
    held = (np.minimum(values, low) <= SHARE) & (np.maximum(values, high) >= SHARE)
    sure = find_significant_pairs(100 * values, (100 * draws).astype(np.float32), chances.shape[1])
    return float(held.mean()), bool(sure.any())


@pytest.mark.parametrize("examples", [15, 20, 30, 60, 300])
def test_scores_and_ranks_on_independent_examples(examples):
    """Equal models; what is hard for one is hard for all."""
    draw = np.random.default_rng(5)
    found = [
        board(
            draw,
            np.broadcast_to(draw.beta(4, 1, examples), (MODELS, examples)),
            resamples(draw, examples),
        )
        for _ in range(RUNS)
    ]
    held, told_apart = np.mean(found, axis=0)
    print(f"{examples} examples: {held:.3f}, told apart in {told_apart:.3f}")
    assert held >= 0.9
    assert told_apart <= 0.08


@pytest.mark.parametrize("by_author", [False, True])
@pytest.mark.parametrize("alike", ALIKE)
@pytest.mark.parametrize("authors", AUTHORS)
def test_scores_and_ranks_of_new_authors(authors, alike, by_author):
    """What the board does not promise: examples of other authors than those of the set.

    Equal models with a leaning for some authors (0.05). by_author: if authors were drawn whole.
    """
    draw, found = np.random.default_rng(6), []
    for _ in range(RUNS):
        who = np.repeat(np.arange(authors), sizes(draw, authors))
        common = np.clip(shares(draw, authors, SHARE, alike), 0.001, 0.999)
        own = draw.beta(19 * common, 19 * (1 - common), (MODELS, authors))
        drawn = resamples(draw, len(who), who if by_author else None)
        found.append(board(draw, own[:, who], drawn))
    held, told_apart = np.mean(found, axis=0)
    how = "authors" if by_author else "examples"
    print(f"{authors} authors, {alike}, by {how}: {held:.3f}, told apart in {told_apart:.3f}")


@pytest.mark.parametrize("alike", ALIKE)
@pytest.mark.parametrize("authors", AUTHORS)
def test_scores_of_the_same_authors(authors, alike):
    """What the board promises: further examples of the same authors, as many of each."""
    draw, held = np.random.default_rng(7), 0
    for _ in range(RUNS):
        who = np.repeat(np.arange(authors), sizes(draw, authors))
        chances = shares(draw, authors, SHARE, alike)[who]
        right, drawn = draw.random(len(who)) < chances, resamples(draw, len(who))
        low, high = np.quantile(drawn @ right / drawn.sum(axis=1), (0.025, 0.975))
        held += low <= chances.mean() <= high or len(who) < MIN_RESAMPLED_EXAMPLES
    print(f"{authors} authors, {alike}: {held / RUNS:.3f}")
    assert held / RUNS >= 0.92
