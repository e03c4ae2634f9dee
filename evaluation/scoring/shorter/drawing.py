"""Draw the questions of a short evaluation at random, with known chances. Pure.

Questions whose answer is hard to foresee are drawn more often, because they tell most about the
share of right answers. The chances are stored, and `estimate` divides by them. So wrong
expectations cost precision, but they don't bias the result.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from evaluation.scoring.ruler.prediction import Floats
from evaluation.scoring.ruler.response_model import estimate_abilities

UNIFORM_SHARE = 0.2
"""The part of each question's chance that depends on nothing, so that no chance is near 0."""
MAX_CHANCE_RATIO = 3.0
"""No question of a batch is drawn with more than this many times the mean chance.

Questions that earlier evaluations asked more than this many times as often as the mean get less.
"""
MIN_QUESTIONS = 40
"""Asked before an evaluation may stop: fewer say too little about their own spread."""
MIN_BATCH, MAX_BATCH = 10, 200
"""Questions asked before the ability, the predictions and the chances are computed again."""
CERTAIN_LOGIT = 4.0
"""Shares of right answers of 0 and 1 count as 2% and 98%: the next model may differ."""
DEFAULT_DISCRIMINATION = 1.0
"""Of questions whose discrimination is unknown: the mean of the prior in `response_model`."""


@dataclass(frozen=True)
class QuestionPriors:
    """What is known of a set's questions before a model answers: see `response_model`."""

    discriminations: Floats
    intercepts: Floats

    @property
    def count(self) -> int:
        """The number of questions."""
        return len(self.intercepts)


@dataclass(frozen=True)
class DrawnQuestion:
    """A question that is to be asked, with what `estimate` needs later.

    chance: the probability with which it was drawn among the questions that remained.
    prediction: its expected chance of a right answer (0-1), before its answer was known.
    rest: the sum of these predictions over the questions that remained, with this one.
    """

    position: int
    chance: float
    prediction: float
    rest: float


def make_priors(
    count: int,
    right_shares: Sequence[float | None] = (),
    difficulties: Sequence[float | None] = (),
    discriminations: Sequence[float | None] = (),
) -> QuestionPriors:
    """Return what is known of `count` questions; each sequence is empty or has one value for each.

    1. Difficulty and discrimination give the two-parameter model.
    2. Elsewhere the share of right answers of other models gives the level of a model of average
       ability.
    3. Without anything, all questions are alike.
    """
    slopes = np.full(count, DEFAULT_DISCRIMINATION)
    intercepts = np.zeros(count)
    for position, share in enumerate(right_shares):
        if share is not None:
            intercepts[position] = _compute_bounded_logit(share)
    for position, slope in enumerate(discriminations):
        if slope is not None:
            slopes[position] = slope
            difficulty = difficulties[position]
            if difficulty is not None:
                intercepts[position] = -slope * difficulty
    return QuestionPriors(slopes, intercepts)


def _compute_bounded_logit(share: float) -> float:
    if share <= 0 or share >= 1:
        return CERTAIN_LOGIT if share >= 1 else -CERTAIN_LOGIT
    return float(np.clip(np.log(share / (1 - share)), -CERTAIN_LOGIT, CERTAIN_LOGIT))


def predict_answers(
    priors: QuestionPriors, positions: Sequence[int], is_right: Sequence[bool]
) -> Floats:
    """Return each question's expected chance of a right answer (0-1), after these answers.

    positions: the questions that the model has answered. The ability has the prior N(0, 1).
    """
    asked = np.array(positions, dtype=np.intp)
    answers = np.array(is_right, dtype=bool)[None, :]
    ability = 0.0
    if len(asked):
        ability = float(
            estimate_abilities(
                priors.discriminations[asked],
                priors.intercepts[asked],
                answers,
                np.ones_like(answers),
            ).means[0]
        )
    logits = priors.discriminations * ability + priors.intercepts
    # Hyperbolic tangent never overflows, unlike exp.
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * logits))


def compute_weights(predictions: Floats, exposures: NDArray[np.int_]) -> Floats:
    """Return weights in proportion to which the remaining questions are drawn; their sum is 1.

    predictions, exposures: of the remaining questions: expected chances of right answers, and in
    how many earlier evaluations of the set each was asked.

    Notes
    -----
    The weight is a mixture of a uniform part and sqrt(p(1 − p)), the expected size of the residual.
    Draws in proportion to it make the estimate's variance least (Kossen et al. 2021, section 3).
    """
    count = len(predictions)
    spreads = np.sqrt(predictions * (1 - predictions))
    total = float(spreads.sum())
    # All answers may be foreseen; then nothing is told by one question more than by another.
    shares = spreads / total if total > 0 else np.full(count, 1 / count)
    weights = UNIFORM_SHARE / count + (1 - UNIFORM_SHARE) * shares
    most_exposed = MAX_CHANCE_RATIO * float(exposures.mean())
    if most_exposed > 0:
        weights = weights * np.minimum(1.0, most_exposed / np.maximum(exposures, 1))
        weights = weights / weights.sum()
    return _limit_weights(weights, MAX_CHANCE_RATIO / count)


def _limit_weights(weights: Floats, most: float) -> Floats:
    """Return weights of which none is above `most`; what is cut off is spread over the others."""
    is_cut = np.zeros(len(weights), dtype=bool)
    # What the others get may lift some of them above the bound; each round cuts at least one more.
    while (is_above := (weights > most * (1 + 1e-9)) & ~is_cut).any():
        is_cut |= is_above
        left = 1 - most * is_cut.sum()
        others = weights[~is_cut]
        weights = np.where(is_cut, most, weights * left / others.sum())
    return weights


def draw_batch(
    predictions: Floats,
    is_asked: NDArray[np.bool_],
    exposures: NDArray[np.int_],
    batch_size: int,
    random: np.random.Generator,
) -> list[DrawnQuestion]:
    """Draw the next questions one after another, without replacement.

    predictions, is_asked, exposures: one value for each question of the set. The predictions must
    not depend on the answers to this batch.

    Notes
    -----
    Sorting by exponential times divided by weights is the same as drawing in proportion to the
    weights of what remains (Efraimidis and Spirakis 2006).
    """
    remaining = np.flatnonzero(~is_asked)
    weights = compute_weights(predictions[remaining], exposures[remaining])
    order = np.argsort(random.exponential(size=len(remaining)) / weights)[:batch_size]
    weight_left, prediction_left = 1.0, float(predictions[remaining].sum())
    drawn = []
    for place in order:
        position = int(remaining[place])
        weight, prediction = float(weights[place]), float(predictions[position])
        # Sums of what is left lose digits when little is left; a chance is never above 1.
        chance = min(1.0, weight / max(weight, weight_left))
        drawn.append(DrawnQuestion(position, chance, prediction, prediction_left))
        weight_left -= weight
        prediction_left -= prediction
    return drawn


def choose_batch_size(asked_count: int, most_questions: int, width_ratio: float) -> int:
    """Return how many questions to ask next, at most up to `most_questions` in all.

    width_ratio: how many times as wide the interval is now as it is wanted; 0 if not known.
    """
    if asked_count < MIN_QUESTIONS:
        batch_size = MIN_QUESTIONS - asked_count
    else:
        # Widths fall with the square root of the number of answers.
        missing_count = ceil(asked_count * (width_ratio**2 - 1))
        # The spread is known from so few answers that a large step could be far too large.
        most = min(MAX_BATCH, max(MIN_BATCH, asked_count // 2))
        batch_size = min(most, max(MIN_BATCH, missing_count))
    return max(0, min(batch_size, most_questions - asked_count))
