"""Measure how well a model's confidence fits its accuracy, and correct it by a temperature. Pure.

A network that was trained until it fits its rows is more confident than accurate. Dividing all its
scores by one number, the temperature, corrects most of that and changes no answer (Guo et al. 2017,
"On calibration of modern neural networks").
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Weights = dict[str, NDArray[Any]]

MIN_TEMPERATURE, MAX_TEMPERATURE = 1.0, 20.0
"""The bounds of a temperature.

Below 1, a model would become more confident than it was trained to be, on rows that are easier than
what people write. On rows that are mostly wrong, the best temperature is infinite.
"""
BISECTION_STEPS = 50
"""The number of bisections that find the best temperature: far more than two decimals need."""
BIN_COUNT = 10


class ScoredRow(NamedTuple):
    """The scores (logits) of all answers that a model may give to a row.

    scores: finite; their softmax gives the probabilities. right: the index of the correct answer.
    """

    scores: NDArray[np.float64]
    right: int


def fit_temperature(rows: Sequence[ScoredRow]) -> float:
    """Return the temperature that maximizes the likelihood of the correct answers.

    Rounded to two decimals, which are the same on every processor, although logits differ in their
    last digits. From MIN_TEMPERATURE to MAX_TEMPERATURE; MIN_TEMPERATURE if the scores of each row
    are all equal, or without rows.

    Notes
    -----
    The mean negative log-likelihood is convex in the inverse temperature. So its slope has one
    root, which is found by bisection.
    """
    low, high = 1 / MAX_TEMPERATURE, 1 / MIN_TEMPERATURE
    # The loss still decreases at this end, so the best temperature is beyond it.
    if _compute_slope(rows, high) <= 0:
        return MIN_TEMPERATURE
    for _ in range(BISECTION_STEPS):
        middle = (low + high) / 2
        if _compute_slope(rows, middle) > 0:
            high = middle
        else:
            low = middle
    return round(2 / (low + high), 2)


def compute_probabilities(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the softmax of scores."""
    probabilities: NDArray[np.float64] = np.exp(_compute_log_probabilities(scores))
    return probabilities


def _compute_log_probabilities(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    # The largest becomes 0, so that no exponential overflows.
    shifted = scores - scores.max()
    logs: NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum())
    return logs


def _compute_slope(rows: Sequence[ScoredRow], inverse_temperature: float) -> float:
    """Return the derivative of the loss with respect to the inverse temperature.

    The loss is the summed negative log-likelihood.
    """
    total = 0.0
    for scores, right in rows:
        total += float(
            compute_probabilities(scores * inverse_temperature) @ (scores - scores[right])
        )
    return total


def compute_negative_log_likelihood(rows: Sequence[ScoredRow], temperature: float = 1.0) -> float:
    """Return the mean negative log-probability of the correct answers, 0 being the best.

    temperature: the number by which the scores are divided first.
    """
    logs = [_compute_log_probabilities(scores / temperature)[right] for scores, right in rows]
    return -float(np.mean(logs))


def compute_calibration_error(rows: Sequence[ScoredRow], temperature: float = 1.0) -> float:
    """Return the mean difference between confidence and accuracy, from 0 to 1.

    Notes
    -----
    Rows are divided into ten bins by the probability of the chosen answer. In each bin, the mean of
    these probabilities is compared with the share of correct answers. The bins are weighted by
    their numbers of rows.
    """
    confidences, correct_flags = [], []
    for scores, right_index in rows:
        chosen_index = int(scores.argmax())
        confidences.append(compute_probabilities(scores / temperature)[chosen_index])
        correct_flags.append(chosen_index == right_index)
    gaps = np.subtract(confidences, correct_flags)
    # A confidence of exactly 1 belongs to the last bin.
    bins = np.minimum(np.multiply(confidences, BIN_COUNT).astype(int), BIN_COUNT - 1)
    sums = np.bincount(bins, weights=gaps, minlength=BIN_COUNT)
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
