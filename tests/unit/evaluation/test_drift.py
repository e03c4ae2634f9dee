"""Items that change for later models: false alarms, planted leaks, misfit, and minimums."""

import numpy as np
import pytest

from evaluation.scoring.ruler.drift import (
    MIN_SIDE_MODELS,
    TooFewOnOneSide,
    measure_drift,
    select_by_false_share,
)
from evaluation.scoring.ruler.response_model import fit_items

ITEMS, PLANTED = 400, 20


def simulate(seed, *, earlier=120, later=120, shift=0.0, misfit=0.0):
    """Return answers and who is later. Later models are abler; the first items shift for them.

    misfit: how far all items differ between earlier and later models, as a standard deviation.
    """
    random = np.random.default_rng(seed)
    is_later = np.arange(earlier + later) >= earlier
    abilities = random.normal(0, 1, earlier + later) + 0.7 * is_later
    slopes = random.lognormal(0, 0.4, ITEMS)
    shifts = random.normal(0, misfit, ITEMS)
    shifts[:PLANTED] += shift
    logits = np.outer(abilities, slopes) - slopes * random.normal(0, 1, ITEMS)
    chances = 1 / (1 + np.exp(-(logits + np.outer(is_later, shifts))))
    return random.random(chances.shape) < chances, is_later


def measure(is_right, is_later):
    answered = np.ones_like(is_right)
    return measure_drift(is_right, answered, is_later, fit_items(is_right, answered))


def test_abler_models_alone_are_no_drift():
    drifts = [measure(*simulate(seed)) for seed in range(5)]
    statistics = np.concatenate([drift.shifts / drift.errors for drift in drifts])
    assert np.nanstd(statistics) == pytest.approx(1, abs=0.1)
    assert sum(drift.is_flagged.sum() for drift in drifts) <= 3


@pytest.mark.parametrize("shift", [2.5, -2.5])
def test_planted_changes_are_found_with_their_direction(shift):
    drift = measure(*simulate(1, shift=shift))
    assert drift.is_flagged[:PLANTED].mean() > 0.75
    assert drift.is_flagged[PLANTED:].sum() <= 3
    found = drift.shifts[:PLANTED][drift.is_flagged[:PLANTED]]
    assert (np.sign(found) == np.sign(shift)).all()
    assert abs(np.nanmean(drift.shifts[:PLANTED]) - shift) < 1


def test_what_all_items_do_a_little_is_no_drift():
    """Real answers follow no response model, so every item differs a little."""
    drift = measure(*simulate(2, misfit=0.8))
    assert drift.is_flagged.sum() <= 4


def test_items_that_tell_nothing_have_no_drift():
    is_right, is_later = simulate(3)
    is_right[:, 0] = True
    drift = measure(is_right, is_later)
    assert np.isnan(drift.shifts[0])
    assert not drift.is_flagged[0]


def test_too_few_models_on_one_side_are_refused():
    is_right, is_later = simulate(4, earlier=40, later=MIN_SIDE_MODELS - 1)
    with pytest.raises(TooFewOnOneSide):
        measure(is_right, is_later)


def test_false_flags_are_a_small_share_of_all_flags():
    # The example of Benjamini and Hochberg (1995, section 3.2): four of 15 at a share of 0.05.
    p_values = np.array(
        [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344]
        + [0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0]
    )
    assert np.flatnonzero(select_by_false_share(p_values, 0.05)).tolist() == [0, 1, 2, 3]
    assert not select_by_false_share(np.array([np.nan, 0.2]), 0.05).any()
