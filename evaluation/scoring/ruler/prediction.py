"""Predict a model's share of right answers in each group from its answers to the anchors. Pure.

Many small predictors each learn from the known models, which answered everything. Each is tested on
whole models that it didn't learn from: checkpoints or versions of one model resemble each other, so
leaving out one row would be too easy. Then all predict, weighted by how well they did.

A predictor has a trend in the share of right anchors: a level, a straight line, or a line on the
logit scale. Most also learn what the trend misses from known models that answered the anchors
alike. This is Gaussian process regression (Rasmussen and Williams 2006, 2.7). Its covariance falls
exponentially with the share of anchors on which two models differ.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
TrendShape = Literal["level", "line", "logit"]

KERNEL_WIDTHS = (1.0, 4.0)
"""In medians of the differences between known models."""
PENALTIES = tuple(np.logspace(-2, 2.5, 8).tolist())
"""Noise variances ÷ variances of what the trend misses. Large ones leave nearly the trend alone."""
ERROR_SHARPNESS = 20.0
"""How fast a predictor's weight falls: one with 5% more squared error has 1/e of the weight."""
REMOTENESS_NOISE = 0.1
MAX_FOLDS = 20
"""Whole models are left out in at most this many parts, so that many models don't take hours."""
MIN_MODELS = 20
MIN_WHOLE_MODELS = 4


class TooFewModels(ValueError):
    """Raised if too few models answered everything to learn from them."""


@dataclass(frozen=True)
class Trend:
    """A curve in the share of right anchors: none at all, a line, or a line on the logit scale."""

    shape: TrendShape
    centre: float
    scale: float

    def build_columns(self, anchor_answers: Floats) -> Floats:
        """Return 1 and the standardised position of each model."""
        position = (compute_position(anchor_answers, self.shape) - self.centre) / self.scale
        return np.column_stack([np.ones(len(position)), position])


@dataclass(frozen=True)
class AnchoredPredictor:
    """Predicts shares from answers to the anchors, by all predictors with their weights at once."""

    known_answers: Floats
    """The known models' answers to the anchors: one row for each model."""
    median_difference: float
    trends: tuple[Trend, ...]
    trend_coefficients: tuple[Floats, ...]
    """For each trend two rows (level and slope), and a column for each group."""
    kernel_coefficients: tuple[Floats, ...]
    """For each width of the kernel a row for each known model, and a column for each group."""

    def predict(self, anchor_answers: NDArray[np.bool_]) -> Floats:
        """Return the share of right answers: a row for each model, a column for each group.

        Shares can lie slightly outside of 0 to 1.
        """
        answers = anchor_answers.astype(float)
        shares = np.zeros((len(answers), self.kernel_coefficients[0].shape[1]))
        for trend, coefficients in zip(self.trends, self.trend_coefficients, strict=True):
            shares += trend.build_columns(answers) @ coefficients
        differences = compute_differences(answers, self.known_answers) / self.median_difference
        for width, coefficients in zip(KERNEL_WIDTHS, self.kernel_coefficients, strict=True):
            shares += np.exp(-differences / width) @ coefficients
        return shares

    def compute_remoteness(self, anchor_answers: NDArray[np.bool_]) -> Floats:
        """Return how little the known models say about each model: about 0.3 to 1.05.

        It is the standard deviation that a Gaussian process with the middle width leaves, whose
        noise is a tenth of its variance. Near 0.3 if many known models answer alike.
        """
        width = 2.0 * self.median_difference
        known = self.known_answers
        covariance = np.exp(-compute_differences(known, known) / width)
        to_known = np.exp(-compute_differences(anchor_answers.astype(float), known) / width)
        inverse = np.linalg.inv(covariance + REMOTENESS_NOISE * np.eye(len(known)))
        explained = np.sum(to_known @ inverse * to_known, axis=1)
        # Rounding can make what is left slightly negative.
        return np.asarray(np.sqrt(REMOTENESS_NOISE + np.clip(1.0 - explained, 0.0, None)))


def compute_position(anchor_answers: Floats, shape: TrendShape) -> Floats:
    """Return each model's share of right anchors, its logit, or 0 for all if there's no trend."""
    if shape == "level":
        return np.zeros(len(anchor_answers))
    if shape == "line":
        return np.asarray(anchor_answers.mean(axis=1))
    right = anchor_answers.sum(axis=1)
    # Half an answer more of each kind keeps the logit finite if all are right, or none.
    return np.asarray(np.log((right + 0.5) / (anchor_answers.shape[1] - right + 0.5)))


def compute_differences(answers: Floats, known_answers: Floats) -> Floats:
    """Return the share of anchors on which two models differ, for each pair of models."""
    right_both = answers @ known_answers.T
    right_either = answers.sum(axis=1)[:, None] + known_answers.sum(axis=1)[None, :]
    return np.asarray((right_either - 2 * right_both) / answers.shape[1])


def split_whole_models(whole_models: Sequence[str]) -> list[NDArray[np.bool_]]:
    """Return masks of the rows to leave out together, at most `MAX_FOLDS`.

    Parameters
    ----------
    whole_models
        For each row the model that it is a version of.

    Raises
    ------
    TooFewModels
        If there are fewer rows than `MIN_MODELS`, or fewer models than `MIN_WHOLE_MODELS`.
    """
    # Models in order of name, so that the folds don't depend on the order of the rows.
    names, places = np.unique(np.array(whole_models), return_inverse=True)
    if len(whole_models) < MIN_MODELS or len(names) < MIN_WHOLE_MODELS:
        raise TooFewModels(
            f"{len(whole_models)} models ({len(names)} different ones) answered everything."
            f" At least {MIN_MODELS} ({MIN_WHOLE_MODELS}) are needed."
        )
    fold_count = min(len(names), MAX_FOLDS)
    return [places % fold_count == fold for fold in range(fold_count)]


def fit_predictor(
    anchor_answers: NDArray[np.bool_],
    shares: Floats,
    folds: Sequence[NDArray[np.bool_]],
) -> AnchoredPredictor:
    """Return the predictor that known models teach.

    Parameters
    ----------
    anchor_answers
        The known models' answers to the anchors.
    shares
        Their share (0-1) of right answers in each group.
    folds
        Masks of rows that are left out together.
    """
    answers = anchor_answers.astype(float)
    differences = compute_differences(answers, answers)
    apart = differences[differences > 0]
    # If all models answer alike, any width of the kernel does the same.
    median_difference = float(np.median(apart)) if len(apart) else 1.0
    kernels = [np.exp(-differences / median_difference / width) for width in KERNEL_WIDTHS]
    trends = tuple(_fit_trend(answers, shape) for shape in get_args(TrendShape))

    candidates = list(_fit_candidates(trends, kernels, answers, shares, folds))
    weights = _weigh_by_error(
        np.array([candidate.errors for candidate in candidates]),
        np.array([candidate.trend for candidate in candidates]),
    )
    trend_coefficients = [np.zeros((2, shares.shape[1])) for _ in trends]
    kernel_coefficients = [np.zeros(shares.shape) for _ in kernels]
    # A weighted sum of predictors of these forms is one predictor with weighted coefficients.
    for candidate, weight in zip(candidates, weights, strict=True):
        trend_coefficients[candidate.trend] += weight * candidate.trend_coefficients
        kernel_coefficients[candidate.kernel] += weight * candidate.kernel_coefficients
    return AnchoredPredictor(
        answers, median_difference, trends, tuple(trend_coefficients), tuple(kernel_coefficients)
    )


def _fit_trend(answers: Floats, shape: TrendShape) -> Trend:
    position = compute_position(answers, shape)
    return Trend(shape, float(position.mean()), float(position.std()) or 1.0)


@dataclass(frozen=True)
class _Candidate:
    """One predictor, and its mean squared error on whole models left out, by group."""

    trend: int
    kernel: int
    trend_coefficients: Floats
    kernel_coefficients: Floats
    errors: Floats


def _fit_candidates(
    trends: Sequence[Trend],
    kernels: Sequence[Floats],
    answers: Floats,
    shares: Floats,
    folds: Sequence[NDArray[np.bool_]],
) -> Iterator[_Candidate]:
    """Yield each trend alone, and with each kernel and penalty."""
    nothing = np.zeros_like(kernels[0])
    for place, trend in enumerate(trends):
        columns = trend.build_columns(answers)
        yield _fit_candidate(place, 0, columns, nothing, 1.0, shares, folds)
        for kernel_place, kernel in enumerate(kernels):
            for penalty in PENALTIES:
                yield _fit_candidate(place, kernel_place, columns, kernel, penalty, shares, folds)


def _fit_candidate(
    trend: int,
    kernel: int,
    columns: Floats,
    covariance: Floats,
    penalty: float,
    shares: Floats,
    folds: Sequence[NDArray[np.bool_]],
) -> _Candidate:
    """Return the predictor with generalised least squares for the trend (equation 2.41)."""
    count = len(shares)
    # One inverse serves all groups and all folds: the matrix depends only on the anchors.
    inverse = np.linalg.inv(covariance + penalty * np.eye(count))
    # A tiny ridge keeps the trend solvable if all known models have the same share of anchors.
    normal = columns.T @ inverse @ columns + 1e-9 * np.eye(2)
    to_trend = np.linalg.solve(normal, columns.T @ inverse)
    to_kernel = inverse @ (np.eye(count) - columns @ to_trend)
    smoother = columns @ to_trend + covariance @ to_kernel
    residuals = leave_out(smoother, shares, folds)
    return _Candidate(
        trend, kernel, to_trend @ shares, to_kernel @ shares, (residuals**2).mean(axis=0)
    )


def leave_out(smoother: Floats, shares: Floats, folds: Sequence[NDArray[np.bool_]]) -> Floats:
    """Return the errors of a linear smoother for rows left out, without fitting again.

    Notes
    -----
    For a fit with hat matrix H, the errors of the block b are (I − H_bb)⁻¹ (y − H y)_b, as for one
    row (Cook and Weisberg 1982, 4.3).
    """
    residuals = shares - smoother @ shares
    left_out = np.empty_like(residuals)
    for fold in folds:
        block = smoother[np.ix_(fold, fold)]
        left_out[fold] = np.linalg.solve(np.eye(len(block)) - block, residuals[fold])
    return left_out


def _weigh_by_error(errors: Floats, trends: NDArray[np.intp]) -> Floats:
    """Return weights of the predictors that sum to 1 in each group.

    Each trend has the same weight in all: left-out errors of a few models choose well how much a
    trend needs, but badly between trends.
    """
    # A perfect predictor has no error; the tiny number keeps the quotient finite.
    relative = (errors + 1e-12) / (errors.min(axis=0) + 1e-12)
    weights = np.empty_like(errors)
    trend_places = np.unique(trends)
    for place in trend_places:
        of_trend = trends == place
        best = relative[of_trend].min(axis=0)
        unscaled = np.exp(-ERROR_SHARPNESS * (relative[of_trend] - best))
        weights[of_trend] = unscaled / unscaled.sum(axis=0) / len(trend_places)
    return weights
