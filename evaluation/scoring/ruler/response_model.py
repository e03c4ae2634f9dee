"""Estimate difficulty and discrimination of items: the two-parameter logistic model. Pure.

The chance that model i is right on item j is 1 ÷ (1 + exp(−(a_j θ_i + c_j))). θ_i is the model's
ability, a_j the item's discrimination, and −c_j ÷ a_j its difficulty (Birnbaum 1968).

Abilities are standard normal. Discriminations have the prior N(1, 1), which allows negative ones:
an item that weak models get right more often may have a wrong label. Intercepts have N(0, 2²).
These priors keep each item's likelihood concave, and the estimates finite if all models are right.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluation.scoring.ruler.prediction import Floats

MIN_MODELS = 20
MIN_ANSWERS = 20
"""An item with fewer answers, or answers of one kind only, has no stated properties."""
DISCRIMINATION_PRIOR = (1.0, 1.0)
"""Mean and standard deviation."""
INTERCEPT_DEVIATION = 2.0
MAX_ROUNDS = 40
TOLERANCE = 1e-3
NEWTON_STEPS = 3
ABILITY_STEPS = 20
ITEM_BLOCK = 1000
"""Items fitted at once, which bounds the memory."""
NORMAL_QUANTILE = 1.959964
# Gauss and Hermite's rule with three points, for the standard normal distribution.
POINTS = np.array([-(3**0.5), 0.0, 3**0.5])
POINT_WEIGHTS = np.array([1 / 6, 2 / 3, 1 / 6])


class TooFewAnswers(ValueError):
    """Raised if too few models answered to say anything about items."""


@dataclass(frozen=True)
class Abilities:
    """Where models stand: mean and standard deviation of each one's ability, given its answers."""

    means: Floats
    deviations: Floats


@dataclass(frozen=True)
class ItemProperties:
    """What the answers of many models say about each item. All arrays have one value an item."""

    discriminations: Floats
    intercepts: Floats
    covariances: Floats
    """For each item the 2 × 2 covariance of discrimination and intercept."""
    is_stated: NDArray[np.bool_]
    """Whether there are enough answers, of both kinds, to state the properties."""

    @property
    def discrimination_errors(self) -> Floats:
        """Standard errors of the discriminations."""
        return np.asarray(np.sqrt(self.covariances[:, 0, 0]))

    def compute_difficulties(self) -> tuple[Floats, Floats]:
        """Return difficulties with standard errors, by the delta method.

        Both are NaN for items whose discrimination may be 0: they have no difficulty.
        """
        slopes, intercepts = self.discriminations, self.intercepts
        certain = np.abs(slopes) > NORMAL_QUANTILE * self.discrimination_errors
        with np.errstate(divide="ignore", invalid="ignore"):
            difficulties = np.where(certain, -intercepts / slopes, np.nan)
            gradients = np.column_stack([-difficulties / slopes, -1 / slopes])
            variances = np.einsum("ij,ijk,ik->i", gradients, self.covariances, gradients)
        return difficulties, np.asarray(np.sqrt(variances))

    def compute_chances(self, abilities: Floats) -> Floats:
        """Return the chance (0-1) of each ability (rows) to be right on each item (columns)."""
        logits = np.outer(abilities, self.discriminations) + self.intercepts
        return np.asarray(_logistic(logits), dtype=float)

    def flag_negative(self) -> NDArray[np.bool_]:
        """Return which items weak models get right more often: their 95% interval is below 0."""
        high = self.discriminations + NORMAL_QUANTILE * self.discrimination_errors
        return np.asarray(self.is_stated & (high < 0))


def fit_items(is_right: NDArray[np.bool_], is_answered: NDArray[np.bool_]) -> ItemProperties:
    """Return the properties of items by penalised marginal likelihood.

    Parameters
    ----------
    is_right, is_answered
        One row for each model, one column for each item. Where an answer is missing, it isn't used.

    Raises
    ------
    TooFewAnswers
        If there are fewer models than `MIN_MODELS`.

    Notes
    -----
    EM (Bock and Aitkin 1981). Each model's ability is integrated out over three points around its
    own mode (adaptive quadrature, Naylor and Smith 1982), because long sets fix abilities far more
    sharply than a common grid could follow.
    """
    if len(is_right) < MIN_MODELS:
        raise TooFewAnswers(f"{len(is_right)} models answered, and at least {MIN_MODELS} must.")
    item_count = is_right.shape[1]
    parameters = np.zeros((item_count, 2))
    parameters[:, 0] = DISCRIMINATION_PRIOR[0]
    covariances = np.empty((item_count, 2, 2))
    # A start near the solution: shares of right answers order models almost as abilities do.
    abilities = _guess_abilities(is_right, is_answered)
    for _ in range(MAX_ROUNDS):
        before = parameters.copy()
        for start in range(0, item_count, ITEM_BLOCK):
            block = slice(start, start + ITEM_BLOCK)
            parameters[block], covariances[block] = _fit_block(
                is_right[:, block], is_answered[:, block], abilities, parameters[block]
            )
        abilities = _standardise(
            estimate_abilities(parameters[:, 0], parameters[:, 1], is_right, is_answered)
        )
        if np.abs(parameters - before).max() < TOLERANCE:
            break
    # The priors give every item an estimate, but without both kinds of answers it's only a prior.
    answer_counts = is_answered.sum(axis=0)
    right_counts = (is_right & is_answered).sum(axis=0)
    has_both = (right_counts > 0) & (right_counts < answer_counts)
    is_stated = (answer_counts >= MIN_ANSWERS) & has_both
    return ItemProperties(parameters[:, 0], parameters[:, 1], covariances, is_stated)


def estimate_abilities(
    discriminations: Floats,
    intercepts: Floats,
    is_right: NDArray[np.bool_],
    is_answered: NDArray[np.bool_],
) -> Abilities:
    """Return abilities of models, with the items as they are: mode and curvature there.

    So a new model changes no item, and costs a few passes over its answers.
    """
    # Single precision halves the memory of models × items; sums are in double precision again.
    signs = np.where(is_answered, np.where(is_right, 1.0, -1.0), 0.0).astype(np.float32)
    slopes, levels = discriminations.astype(np.float32), intercepts.astype(np.float32)
    means = np.zeros(len(is_right))
    precision = np.ones(len(is_right))
    for _ in range(ABILITY_STEPS):
        chance = _logistic(np.outer(means.astype(np.float32), slopes) + levels)
        # Right minus its chance is 1 − p if right, −p if wrong, and 0 where nothing was answered.
        residuals = np.abs(signs) * ((signs > 0) - chance)
        information = np.abs(signs) * chance * (1 - chance)
        precision = 1.0 + information.astype(float) @ discriminations**2
        steps = (residuals.astype(float) @ discriminations - means) / precision
        # Bounded, because the first step from 0 can overshoot on very long sets.
        means = means + np.clip(steps, -1.0, 1.0)
        if np.abs(steps).max() < 1e-4:
            break
    return Abilities(means, 1 / np.sqrt(precision))


def _guess_abilities(is_right: NDArray[np.bool_], is_answered: NDArray[np.bool_]) -> Abilities:
    """Return abilities to begin with: standardised logits of the shares of right answers."""
    right = (is_right & is_answered).sum(axis=1)
    answered = is_answered.sum(axis=1)
    logits = np.log((right + 0.5) / (answered - right + 0.5))
    return _standardise(Abilities(logits, np.full(len(logits), 1e-3)))


def _standardise(abilities: Abilities) -> Abilities:
    """Return abilities with mean 0 and variance 1 over models, which fixes the scale."""
    means = abilities.means - abilities.means.mean()
    scale = float(np.sqrt(np.mean(means**2 + abilities.deviations**2)))
    return Abilities(means / scale, abilities.deviations / scale)


def _fit_block(
    is_right: NDArray[np.bool_],
    is_answered: NDArray[np.bool_],
    abilities: Abilities,
    parameters: Floats,
) -> tuple[Floats, Floats]:
    """Return parameters (items × 2) and their covariances, by Newton's method."""
    # One pseudo-model for each point of each model, weighted by the point.
    positions = (abilities.means[:, None] + abilities.deviations[:, None] * POINTS).ravel()
    weights = np.tile(POINT_WEIGHTS, len(abilities.means))
    design = np.column_stack([positions, np.ones(len(positions))])
    products = np.column_stack([design[:, 0] ** 2, design[:, 0], design[:, 1]])
    right = np.repeat(is_right & is_answered, len(POINTS), axis=0) * weights[:, None]
    answered = np.repeat(is_answered, len(POINTS), axis=0) * weights[:, None]

    prior_mean = np.array([DISCRIMINATION_PRIOR[0], 0.0])
    prior_precision = np.array([DISCRIMINATION_PRIOR[1] ** -2, INTERCEPT_DEVIATION**-2])
    # Newton's method for all items at once: each has two parameters of its own.
    covariances: Floats = np.empty((len(parameters), 2, 2))
    for _ in range(NEWTON_STEPS):
        chance = _logistic(design @ parameters.T)
        gradients = (right - answered * chance).T @ design
        gradients -= prior_precision * (parameters - prior_mean)
        sums = (answered * chance * (1 - chance)).T @ products
        information: Floats = np.empty((len(parameters), 2, 2))
        information[:, 0, 0] = sums[:, 0] + prior_precision[0]
        information[:, 0, 1] = information[:, 1, 0] = sums[:, 1]
        information[:, 1, 1] = sums[:, 2] + prior_precision[1]
        covariances = np.asarray(np.linalg.inv(information))
        # Bounded for the same reason as a model's step.
        steps = np.einsum("ijk,ik->ij", covariances, gradients)
        parameters = parameters + np.clip(steps, -1.0, 1.0)
    return parameters, covariances


def _logistic(logits: NDArray[np.floating]) -> NDArray[np.floating]:
    # Hyperbolic tangent never overflows, unlike exp.
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * logits))
