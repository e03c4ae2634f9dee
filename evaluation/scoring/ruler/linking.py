"""Put models on one ruler: choose anchors, learn from known models, predict with intervals. Pure.

Anchors that tell known models apart do so partly by chance. New models lack this chance, so their
predictions lie too close together. And no predictor fits exactly, which an interval must include.
Both are measured on whole models for which everything was done without them: the choice of anchors,
the weights and the fit.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluation.scoring.ruler.anchors import choose_anchors
from evaluation.scoring.ruler.matrices import ItemGroups
from evaluation.scoring.ruler.prediction import (
    AnchoredPredictor,
    Floats,
    fit_predictor,
    split_whole_models,
)

LEVEL = 0.95
SLOPE_DEVIATION = 0.2
"""How far from 1 the slope of the correction may be: the standard deviation of its prior."""
DESIGN_EFFECT = 3.0
"""Errors of versions of one model resemble each other, so each row counts as a third."""
HUBER_BOUND = 1.345
"""In standard deviations. Errors beyond it count less (Huber 1981); 95% efficient if normal."""
ITERATION_COUNT = 30
AnchorChoice = Callable[[NDArray[np.bool_]], NDArray[np.intp]]
"""Chooses the columns of the anchors from the models that a mask of rows names."""


@dataclass(frozen=True)
class PredictedShares:
    """What models would score (0-1): one row for each model, one column for each group."""

    shares: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True)
class Ruler:
    """Frozen anchors, and what known models teach about all groups of items."""

    anchors: NDArray[np.intp]
    """The columns of the anchors in the known models' answers."""
    predictor: AnchoredPredictor
    intercepts: Floats
    slopes: Floats
    """For each group the line that corrects the predictor."""
    half_widths: Floats
    """For each group half the width of a 95% interval, for a model of remoteness 1."""
    even_half_widths: Floats
    """The same for any model: wider than needed for a near one, narrower for a remote one."""

    def predict(self, anchor_answers: NDArray[np.bool_]) -> PredictedShares:
        """Return what models would score in each group, from their answers to the anchors.

        Fits nothing, so a new model costs a few multiplications.
        """
        shares = self.intercepts + self.slopes * self.predictor.predict(anchor_answers)
        # A model unlike all known ones gets a wider interval than one of many alike.
        remoteness = self.predictor.compute_remoteness(anchor_answers)
        half_widths = remoteness[:, None] * self.half_widths
        return PredictedShares(
            shares=np.clip(shares, 0.0, 1.0),
            low=np.clip(shares - half_widths, 0.0, 1.0),
            high=np.clip(shares + half_widths, 0.0, 1.0),
        )


def fit_ruler(
    is_right: NDArray[np.bool_],
    groups: ItemGroups,
    whole_models: Sequence[str],
    anchor_count: int,
    seed: int,
) -> Ruler:
    """Return the ruler that models teach who answered all items.

    Parameters
    ----------
    is_right
        Their answers: one row for each model, one column for each item.
    groups
        The group of each item. The last group gives no anchors.
    whole_models
        For each row the model that it is a version of.
    anchor_count
        The number of anchors.
    seed
        Draws half of the anchors.

    Raises
    ------
    TooFewModels
        If there are too few rows, or too few different models.
    ValueError
        If the number of anchors is too small, or larger than the number of items to choose from.
    """

    def choose(taught: NDArray[np.bool_]) -> NDArray[np.intp]:
        # The same seed: what differs from the final anchors is what the models left out decide.
        return choose_anchors(is_right[taught], groups, anchor_count, np.random.default_rng(seed))

    everybody = np.ones(len(is_right), dtype=bool)
    folds = split_whole_models(whole_models)
    anchors = choose(everybody)
    return link_shares(is_right, groups.compute_shares(is_right), folds, anchors, choose)


def link_shares(
    is_right: NDArray[np.bool_],
    shares: Floats,
    folds: Sequence[NDArray[np.bool_]],
    anchors: NDArray[np.intp],
    choose: AnchorChoice,
) -> Ruler:
    """Return the ruler that predicts these shares from anchors that are chosen already.

    Parameters
    ----------
    is_right
        The known models' answers to all items that may be anchors.
    shares
        Their share (0-1) of right answers in each group: one row for each model.
    folds
        Masks of rows that are left out together, of `split_whole_models`.
    anchors
        The columns of the anchors.
    choose
        Chooses anchors as these were chosen, so that their choice is tested, too.

    Notes
    -----
    Intervals are cross-conformal (Vovk 2015) with whole models as the units left out, and errors
    divided by remoteness (Papadopoulos et al. 2011).
    """
    predictor = fit_predictor(is_right[:, anchors], shares, folds)

    # Everything once more without each whole model, to see how a new one would be predicted.
    predicted, remoteness = np.empty_like(shares), np.empty(len(shares))
    for fold in folds:
        taught = ~fold
        fold_anchors = choose(taught)
        inner_folds = [other[taught] for other in folds if other is not fold]
        without = fit_predictor(is_right[np.ix_(taught, fold_anchors)], shares[taught], inner_folds)
        left_out = is_right[np.ix_(fold, fold_anchors)]
        predicted[fold] = without.predict(left_out)
        remoteness[fold] = without.compute_remoteness(left_out)

    lines = [
        fit_correction(predicted[:, group], shares[:, group]) for group in range(shares.shape[1])
    ]
    intercepts, slopes = np.array(lines).T
    # The line of the others: one that knows a model's share would make its error too small.
    errors = np.abs(_correct_left_out(predicted, shares, folds) - shares)
    # Errors per unit of remoteness, so that one quantile serves near and remote models.
    half_widths = compute_conformal_quantile(errors / remoteness[:, None], LEVEL)
    even_half_widths = compute_conformal_quantile(errors, LEVEL)
    return Ruler(anchors, predictor, intercepts, slopes, half_widths, even_half_widths)


def _correct_left_out(
    predicted: Floats, shares: Floats, folds: Sequence[NDArray[np.bool_]]
) -> Floats:
    """Return the predictions of models left out, corrected by the line of all other models."""
    corrected = np.empty_like(predicted)
    for fold in folds:
        for group in range(shares.shape[1]):
            intercept, slope = fit_correction(predicted[~fold, group], shares[~fold, group])
            corrected[fold, group] = intercept + slope * predicted[fold, group]
    return corrected


def compute_conformal_quantile(errors: Floats, level: float) -> Floats:
    """Return for each column the error that a new one stays below with chance `level`.

    A new error falls with the same chance in each of the n + 1 gaps between n known ones. So this
    is the value at place (n + 1) × level, rounded up (Vovk, Gammerman and Shafer 2005). If there
    are too few errors for the level, it is the largest.

    >>> compute_conformal_quantile(np.arange(1.0, 40.0)[:, None], 0.95)
    array([38.])
    """
    count = len(errors)
    # Rounded first, because 40 × 0.95 is slightly more than 38 as a float.
    place = min(count, math.ceil(round((count + 1) * level, 9)))
    return np.asarray(np.sort(errors, axis=0)[place - 1])


def fit_correction(predicted: Floats, shares: Floats) -> tuple[float, float]:
    """Return intercept and slope of the line from predicted to true shares of models left out.

    The slope is drawn to 1, the more so the less the models say. One odd model hardly moves it.

    Notes
    -----
    Huber's M-estimate by iterated weights, with the slope's prior as a ridge.
    """
    intercept, slope = 0.0, 1.0
    for _ in range(ITERATION_COUNT):
        errors = shares - intercept - slope * predicted
        # The median absolute error ÷ 0.6745 is the standard deviation of normal errors.
        deviation = float(np.median(np.abs(errors))) / 0.6745 + 1e-6
        weights = np.minimum(1.0, HUBER_BOUND * deviation / np.maximum(np.abs(errors), 1e-12))
        centre = float(np.average(predicted, weights=weights))
        share_centre = float(np.average(shares, weights=weights))
        offsets = predicted - centre
        ridge = DESIGN_EFFECT * deviation**2 / SLOPE_DEVIATION**2
        covariance = float(np.sum(weights * offsets * (shares - share_centre)))
        slope = (covariance + ridge) / (float(np.sum(weights * offsets**2)) + ridge)
        # The line passes through the weighted centre, as any least squares line does.
        intercept = share_centre - slope * centre
    return intercept, slope
