"""Which pair of models a battle shows: the one that tells most, or any. Pure, with numpy."""

import numpy as np

from leaderboard.arena.ranking import Floats, Places, Votes, count_outcomes, pair_models

UNIFORM = 0.05
"""The share of the battles whose pair is drawn with equal chances."""
PRIOR = 0.25
"""The prior information about each model: that of one comparison with an equal model."""


def pair_chances(count: int, votes: Votes, live_models: Places) -> tuple[Places, Floats]:
    """Return the pairs of live models, shape (pairs, 2), and the probability of drawing each.

    A pair's probability is proportional to how much one more comparison would lower the variance of
    the difference of its strengths. A share UNIFORM of the draws is equal for all pairs, so no
    probability is below UNIFORM ÷ pairs.

    Parameters
    ----------
    count : int
        The number of all models, live or not.
    votes : Votes
        All comparisons; there may be none.
    live_models : Places
        The indices of the models that battles may draw.

    Returns
    -------
    pairs : Places
        The indices of both models of each pair.
    chances : Floats
        The probability of each pair; they add up to 1.
    """
    first, second = np.triu_indices(len(live_models), 1)
    pairs = np.column_stack([live_models[first], live_models[second]])
    # Before the first vote all pairs tell the same.
    if len(votes.left):
        covariance, strengths = _compute_posterior(count, votes)
    else:
        covariance, strengths = np.eye(count) / PRIOR, np.zeros(count)
    left, right = pairs.T
    spread = covariance[left, left] + covariance[right, right] - 2 * covariance[left, right]
    information = _compute_information(strengths[left] - strengths[right])
    # By how much one more comparison lowers the variance: Sherman and Morrison (1950).
    gain = information * spread**2 / (1 + information * spread)
    # The equal share lets any pair come up, so that a wrong early estimate can be corrected.
    return pairs, (1 - UNIFORM) * gain / gain.sum() + UNIFORM / len(pairs)


def _compute_posterior(count: int, votes: Votes) -> tuple[Floats, Floats]:
    """Return the posterior covariance of the strengths, and the strengths."""
    pairs, cells = pair_models(count, votes.left, votes.right, votes.outcome)
    counts = count_outcomes(pairs, cells)
    strengths = pairs.fit_bounded(counts).strengths
    leads = strengths[pairs.first] - strengths[pairs.second]
    information = counts.sum(axis=1) * _compute_information(leads)
    # With prior information the matrix has an inverse, also for models without votes.
    precision = np.eye(count) * PRIOR
    # A comparison is about a difference, so it adds to both models and takes from their product.
    np.add.at(precision, (pairs.first, pairs.first), information)
    np.add.at(precision, (pairs.second, pairs.second), information)
    np.add.at(precision, (pairs.first, pairs.second), -information)
    np.add.at(precision, (pairs.second, pairs.first), -information)
    return np.linalg.inv(precision), strengths


def _compute_information(lead: Floats) -> Floats:
    """Return the information of one comparison about a difference (Bradley and Terry's model)."""
    chance = 1 / (1 + np.exp(-lead))
    information: Floats = chance * (1 - chance)
    return information
