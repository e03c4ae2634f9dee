"""How sure a model is, how sure it may be, and the temperature between the two. Pure.

A network that was trained until it fits its rows is surer than it is right. Dividing all its
scores by one number, the temperature, mends most of that, and no answer changes (Guo et al. 2017,
"On calibration of modern neural networks").
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Weights = dict[str, NDArray[Any]]

COLDEST, HOTTEST = 1.0, 20.0
"""Bounds of a temperature. Below 1 a model would become surer than it was trained to be, on rows
that are easier than what people write; of rows that are mostly wrong the best one is endless."""
BISECTION_STEPS = 50
"""Of the interval in which the best temperature lies: far more than its two decimals need."""
BINS = 10


class ScoredRow(NamedTuple):
    """The scores (logits) of all answers that a model may give to a row.

    scores: finite; their softmax gives the probabilities. right: the index of the correct answer.
    """

    scores: NDArray[np.float64]
    right: int


def fit_temperature(rows: Sequence[ScoredRow]) -> float:
    """Return the temperature that maximizes the likelihood of the correct answers.

    Rounded to two decimals, which are the same on every processor, although logits differ in their
    last digits. From COLDEST to HOTTEST; COLDEST if the scores of each row are all equal, or
    without rows.

    Notes
    -----
    The mean negative log-likelihood is convex in the inverse temperature, so its slope has one
    root, which is found by bisection.
    """
    low, high = 1 / HOTTEST, 1 / COLDEST
    if _compute_slope(rows, high) <= 0:
        return COLDEST
    for _ in range(BISECTION_STEPS):
        middle = (low + high) / 2
        if _compute_slope(rows, middle) > 0:
            high = middle
        else:
            low = middle
    return round(2 / (low + high), 2)


def compute_probabilities(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the softmax of scores."""
    found: NDArray[np.float64] = np.exp(_compute_log_probabilities(scores))
    return found


def _compute_log_probabilities(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    shifted = scores - scores.max()
    logs: NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum())
    return logs


def _compute_slope(rows: Sequence[ScoredRow], inverse: float) -> float:
    """Return the derivative of the summed negative log-likelihood by the inverse temperature."""
    total = 0.0
    for scores, right in rows:
        total += float(compute_probabilities(scores * inverse) @ (scores - scores[right]))
    return total


def compute_negative_log_likelihood(rows: Sequence[ScoredRow], temperature: float = 1.0) -> float:
    """Return the mean negative log-probability of the correct answers, 0 being the best."""
    logs = [_compute_log_probabilities(scores / temperature)[right] for scores, right in rows]
    return -float(np.mean(logs))


def compute_calibration_error(rows: Sequence[ScoredRow], temperature: float = 1.0) -> float:
    """Return the mean difference between confidence and accuracy, from 0 to 1.

    Notes
    -----
    Rows are divided into ten bins by the probability of the chosen answer. The mean of these
    probabilities in each bin is compared with the share of correct answers, weighted by the bin's
    number of rows.
    """
    confidences, rights = [], []
    for scores, right_index in rows:
        chosen = int(scores.argmax())
        confidences.append(compute_probabilities(scores / temperature)[chosen])
        rights.append(chosen == right_index)
    gaps = np.subtract(confidences, rights)
    bins = np.minimum(np.multiply(confidences, BINS).astype(int), BINS - 1)
    sums = np.bincount(bins, weights=gaps, minlength=BINS)
    return float(np.abs(sums).sum() / len(rows))


def restore_scores(rows: Sequence[ScoredRow], temperature: float) -> list[ScoredRow]:
    """Return the scores that a model had before its head was divided by a temperature."""
    return [ScoredRow(scores * temperature, right) for scores, right in rows]


def soften_head(weights: Weights, head: str, temperature: float) -> Weights:
    """Return weights whose last layer, named `head`, divides its scores by the temperature.

    Each weight takes a single float32 division, so the bytes are the same on every processor.
    """
    softened_weights = dict(weights)
    for name in _iterate_layer_names(weights, head):
        softened_weights[name] = weights[name].astype(np.float32) / np.float32(temperature)
    return softened_weights


def _iterate_layer_names(weights: Weights, head: str) -> Iterator[str]:
    """Yield the names of a linear layer's tensors. Raises KeyError if one is missing."""
    for part in ("weight", "bias"):
        name = f"{head}.{part}"
        if name not in weights:
            raise KeyError(name)
        yield name
