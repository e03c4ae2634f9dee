"""The temperature that makes a model as sure as it is right, and how that is measured."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.training.calibration import (
    MAX_TEMPERATURE,
    MIN_TEMPERATURE,
    ScoredRow,
    compute_calibration_error,
    compute_negative_log_likelihood,
    fit_temperature,
    restore_scores,
    soften_head,
)


def row(*scores: float, right: int = 0) -> ScoredRow:
    return ScoredRow(np.array(scores, np.float64), right)


def sure(share: float) -> float:
    """The score before 0 that gives this share of the probability."""
    return math.log(share / (1 - share))


SCORES = st.floats(-20, 20, allow_nan=False)
ROWS = st.integers(2, 5).flatmap(
    lambda answers: st.lists(
        st.builds(
            lambda scores, right: row(*scores, right=right),
            st.lists(SCORES, min_size=answers, max_size=answers),
            st.integers(0, answers - 1),
        ),
        min_size=1,
        max_size=12,
    )
)


@given(ROWS)
def test_the_fitted_temperature_minimises_the_loss(rows: list[ScoredRow]) -> None:
    """Against a scan of the whole range that knows nothing of slopes."""
    fitted = fit_temperature(rows)
    assert MIN_TEMPERATURE <= fitted <= MAX_TEMPERATURE
    scan = np.geomspace(MIN_TEMPERATURE, MAX_TEMPERATURE, 200)
    least = min(compute_negative_log_likelihood(rows, temperature) for temperature in scan)
    assert compute_negative_log_likelihood(rows, fitted) <= least + 1e-3


@given(ROWS, st.floats(MIN_TEMPERATURE, MAX_TEMPERATURE))
def test_a_head_of_another_temperature_gives_the_same_answers(
    rows: list[ScoredRow], temperature: float
) -> None:
    """Through the weights: features times the head's weights, plus its bias, are the scores."""
    for scores, _ in rows:
        weights = {
            "classifier.weight": np.diag(scores).astype(np.float32),
            "classifier.bias": np.zeros(len(scores), np.float32),
            "encoder.weight": np.ones((2, 2), np.float32),
        }
        softened = soften_head(weights, "classifier", temperature)
        given_scores = softened["classifier.weight"].sum(axis=1)
        before = weights["classifier.weight"].sum(axis=1)
        assert given_scores[before.argmax()] == given_scores.max()
        np.testing.assert_allclose(given_scores, before / temperature, rtol=1e-5, atol=1e-30)
        assert softened["encoder.weight"] is weights["encoder.weight"]


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        ([], MIN_TEMPERATURE),
        ([row(3.0, 3.0), row(-1.0, -1.0, right=1)], MIN_TEMPERATURE),
        ([row(2.0, 0.0)] * 9, MIN_TEMPERATURE),  # all right: surer would be better still
        (
            [row(5.0, 0.0, right=1)] * 9,
            MAX_TEMPERATURE,
        ),  # all wrong: less sure would be better still
        (
            [row(0.5, 0.0)] * 3 + [row(0.5, 0.0, right=1)],
            MIN_TEMPERATURE,
        ),  # too modest, and left so
        ([row(sure(0.99), 0.0)] * 3 + [row(sure(0.99), 0.0, right=1)], sure(0.99) / sure(0.75)),
        ([row(sure(0.9), 0.0)] * 9 + [row(sure(0.9), 0.0, right=1)], 1.0),
    ],
)
def test_temperatures(rows: list[ScoredRow], wanted: float) -> None:
    assert fit_temperature(rows) == pytest.approx(wanted, abs=0.01)


def test_a_temperature_does_not_hang_on_last_digits() -> None:
    rows = [row(4.0, 0.0), row(4.0, 0.0), row(3.0, 1.0, right=1), row(0.0, 2.5, right=1)]
    noise = np.random.default_rng(0)
    moved = [ScoredRow(s + noise.normal(scale=1e-6, size=2), right) for s, right in rows]
    assert fit_temperature(rows) == fit_temperature(moved)


def test_the_loss_is_the_mean_of_minus_the_logarithms() -> None:
    rows = [row(sure(0.8), 0.0), row(sure(0.8), 0.0, right=1)]
    assert compute_negative_log_likelihood(rows) == pytest.approx(
        -(math.log(0.8) + math.log(0.2)) / 2
    )
    assert compute_negative_log_likelihood(rows, 1e9) == pytest.approx(math.log(2))
    assert compute_negative_log_likelihood([row(1e4, 0.0, right=1)]) == pytest.approx(1e4)


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        ([row(sure(0.8), 0.0)] * 4 + [row(sure(0.8), 0.0, right=1)], 0.0),
        ([row(sure(0.8), 0.0)] * 5, 0.2),
        ([row(sure(0.8), 0.0, right=1)] * 5, 0.8),
        ([row(1e4, 0.0)] * 5, 0.0),  # certain, and in the last bin
        # Two bins whose gaps have opposite signs do not cancel out.
        ([row(sure(0.65), 0.0), row(sure(0.95), 0.0, right=1)], (0.35 + 0.95) / 2),
    ],
)
def test_calibration_error(rows: list[ScoredRow], wanted: float) -> None:
    assert compute_calibration_error(rows) == pytest.approx(wanted, abs=1e-9)


def test_restored_scores_are_those_before_the_division() -> None:
    rows = [row(4.0, 1.0), row(-2.0, 8.0, right=1)]
    softened = [ScoredRow(scores / 3.2, right) for scores, right in rows]
    for (scores, right), (wanted, same) in zip(restore_scores(softened, 3.2), rows, strict=True):
        np.testing.assert_allclose(scores, wanted)
        assert right == same
    assert compute_calibration_error(softened) == pytest.approx(
        compute_calibration_error(rows, 3.2)
    )


def test_a_folder_without_the_head_is_refused() -> None:
    with pytest.raises(KeyError, match=r"classifier\.bias"):
        soften_head({"classifier.weight": np.ones((2, 2), np.float32)}, "classifier", 2.0)
