"""The choice of the two models of a battle, mostly by information. Pure, with numpy."""

import numpy as np

from leaderboard.arena.ranking import Floats, PositionArray, Votes, count_outcomes, pair_models

UNIFORM_SHARE = 0.05
"""The share of the battles whose pair is drawn with equal chances."""
PRIOR_GAMES = 0.25
"""The prior information on each model: as much as one comparison with an equal model gives."""


def compute_pair_chances(
    count: int, votes: Votes, live_models: PositionArray
) -> tuple[PositionArray, Floats]:
    """Return the pairs of live models, shape (pairs, 2), and the probability of drawing each.

    A pair's probability is proportional to what one more comparison would gain. The gain is the
    amount by which it would lower the variance of the difference between the two strengths. In
    a share UNIFORM_SHARE of the draws, all pairs are equally likely. So no probability is below
    UNIFORM_SHARE ÷ number of pairs.

    Parameters
    ----------
    count : int
        The number of all models, live or not.
    votes : Votes
        All comparisons; there may be none.
    live_models : PositionArray
        The indices of the models that battles may draw.

    Returns
    -------
    pairs : PositionArray
        The indices of both models of each pair.
    chances : Floats
        The probability of each pair; they add up to 1.
    """
    first, second = np.triu_indices(len(live_models), 1)
    pairs = np.column_stack([live_models[first], live_models[second]])
    # Before the first vote, all pairs are equally informative.
    if len(votes.left):
        covariance, strengths = _compute_posterior(count, votes)
    else:
        covariance, strengths = np.eye(count) / PRIOR_GAMES, np.zeros(count)
    left, right = pairs.T
    spread = covariance[left, left] + covariance[right, right] - 2 * covariance[left, right]
    information = _compute_information(strengths[left] - strengths[right])
    # By how much one more comparison lowers the variance: Sherman and Morrison (1950).
    gain = information * spread**2 / (1 + information * spread)
    # The equal share lets any pair come up, so that a wrong early estimate can be corrected.
    return pairs, (1 - UNIFORM_SHARE) * gain / gain.sum() + UNIFORM_SHARE / len(pairs)


def _compute_posterior(count: int, votes: Votes) -> tuple[Floats, Floats]:
    """Return the posterior covariance of the strengths, and the strengths."""
    pairs, cells = pair_models(count, votes.left, votes.right, votes.outcome)
    counts = count_outcomes(pairs, cells, votes.weight)
    strengths = pairs.fit_bounded(counts).strengths
    leads = strengths[pairs.first] - strengths[pairs.second]
    information = counts.sum(axis=1) * _compute_information(leads)
    # With prior information, the matrix is invertible even for models without votes.
    precision = np.eye(count) * PRIOR_GAMES
    # A comparison measures a difference: it adds to both diagonal entries and lowers the others.
    np.add.at(precision, (pairs.first, pairs.first), information)
    np.add.at(precision, (pairs.second, pairs.second), information)
    np.add.at(precision, (pairs.first, pairs.second), -information)
    np.add.at(precision, (pairs.second, pairs.first), -information)
    return np.linalg.inv(precision), strengths


def _compute_information(lead: Floats) -> Floats:
    """Return the information of one comparison about a difference (Bradley and Terry's model)."""
    rng = 1 / (1 + np.exp(-lead))
    information: Floats = rng * (1 - rng)
    return information
