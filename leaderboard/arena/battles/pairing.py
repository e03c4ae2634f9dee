"""The choice of the two models of a battle, mostly by information. Pure, with numpy.

docs/statistics.md (Battles chosen by information) has the formula, its source and assumptions.
"""

import numpy as np

from leaderboard.arena.battles.weights import UNIFORM_SHARE
from leaderboard.arena.ranking import Floats, PositionArray, Votes, count_outcomes, pair_models

PRIOR_GAMES = 0.25
"""The prior information on each model: as much as one comparison with an equal model gives."""


def compute_pair_chances(
    count: int, votes: Votes, live_models: PositionArray
) -> tuple[PositionArray, Floats]:
    """Return the pairs of live models, shape (pairs, 2), and the probability of drawing each.

    In a share UNIFORM_SHARE of the draws, all pairs are equally likely. In the others, a pair's
    probability is proportional to the standard deviation of what its vote adds to the strengths:
    the square root of the vote's information, times the length of H^-1 x. H is the information of
    all votes about the strengths, and x is 1 for one model and -1 for the other. Of all rules,
    this one adds the least to the summed variances of the weighted strengths (Neyman 1934; for
    logistic regression Wang, Zhu and Ma 2018).

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
        The probability of each pair; they add up to 1, and none is below UNIFORM_SHARE ÷ pairs.
    """
    first, second = np.triu_indices(len(live_models), 1)
    pairs = np.column_stack([live_models[first], live_models[second]])
    covariance, strengths, tie = _compute_posterior(count, votes)
    left, right = pairs.T
    information = _compute_information(strengths[left] - strengths[right], tie)
    # How far one vote on the pair can move the strengths of all models.
    reach = np.linalg.norm(covariance[left] - covariance[right], axis=1)
    gain = np.sqrt(information) * reach
    # The equal share lets any pair come up, so that a wrong early estimate can be corrected.
    return pairs, (1 - UNIFORM_SHARE) * gain / gain.sum() + UNIFORM_SHARE / len(pairs)


def _compute_posterior(count: int, votes: Votes) -> tuple[Floats, Floats, float | None]:
    """Return the inverse of the weighted information, the strengths, and the tie's parameter.

    Weighted as in the ranking, because the draws serve the weighted strengths.
    """
    # Before the first vote, all models are equally strong and equally unknown.
    if not len(votes.left):
        return np.eye(count) / PRIOR_GAMES, np.zeros(count), None
    pairs, cells = pair_models(count, votes.left, votes.right, votes.outcome)
    counts = count_outcomes(pairs, cells, votes.full_weight)
    fit = pairs.fit_bounded(counts)
    leads = fit.strengths[pairs.first] - fit.strengths[pairs.second]
    information = counts.sum(axis=1) * _compute_information(leads, fit.tie)
    # With prior information, the matrix is invertible even for models without votes.
    precision = np.eye(count) * PRIOR_GAMES
    # A comparison measures a difference: it adds to both diagonal entries and lowers the others.
    np.add.at(precision, (pairs.first, pairs.first), information)
    np.add.at(precision, (pairs.second, pairs.second), information)
    np.add.at(precision, (pairs.first, pairs.second), -information)
    np.add.at(precision, (pairs.second, pairs.first), -information)
    return np.linalg.inv(precision), fit.strengths, fit.tie


def _compute_information(lead: Floats, tie: float | None) -> Floats:
    """Return the information of one comparison about a lead, in Davidson's model.

    tie: the logarithm of the weight of a tie; None: no ties.
    """
    # Both are divided by the greater one, so that a large lead does not overflow.
    other = np.exp(-np.abs(lead))
    ties = 0.0 if tie is None else np.exp(tie - np.abs(lead) / 2)
    total = 1 + other + ties
    # The variance of the outcome, which is a half for a win, minus a half for a loss, 0 for a tie.
    information: Floats = ((1 + other) / total - ((1 - other) / total) ** 2) / 4
    return information
