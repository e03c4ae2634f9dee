"""Properties of items: recovery of what was simulated, missing answers, and stated minimums."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.scoring.ruler import response_model
from evaluation.scoring.ruler.response_model import (
    MIN_MODELS,
    TooFewAnswers,
    estimate_abilities,
    fit_items,
)


def simulate(models, items, *, wrong_labels=0, seed=1):
    """Return abilities, discriminations, intercepts, and right or wrong answers."""
    random = np.random.default_rng(seed)
    abilities = random.normal(0, 1, models)
    abilities = (abilities - abilities.mean()) / abilities.std()
    slopes = random.lognormal(0, 0.4, items)
    intercepts = -slopes * random.normal(0, 1, items)
    # With a wrong label, whoever knows the answer counts as wrong.
    slopes[:wrong_labels] *= -1
    chance = 1 / (1 + np.exp(-(np.outer(abilities, slopes) + intercepts)))
    return abilities, slopes, intercepts, random.random(chance.shape) < chance


def test_parameters_are_recovered_with_honest_errors():
    _, slopes, intercepts, is_right = simulate(200, 600)
    items = fit_items(is_right, np.ones_like(is_right))
    assert items.is_stated.all()
    errors = items.discriminations - slopes
    assert abs(errors.mean()) < 0.08
    assert np.corrcoef(items.discriminations, slopes)[0, 1] > 0.85
    assert 0.88 < np.mean(np.abs(errors) < 1.96 * items.discrimination_errors) < 0.98
    difficulties, deviations = items.compute_difficulties()
    known = ~np.isnan(difficulties)
    assert known.mean() > 0.9
    errors = (difficulties + intercepts / slopes)[known]
    assert 0.9 < np.mean(np.abs(errors) < 1.96 * deviations[known]) < 0.99


# Section 6 of the Law School Admission Test: 1,000 people, five items (Bock and Lieberman 1970).
# How many people gave each pattern of answers, from 00000 to 11111; 1 is right.
LSAT_COUNTS = (
    *(3, 6, 2, 11, 1, 1, 3, 4, 1, 8, 0, 16, 0, 3, 2, 15),
    *(10, 29, 14, 81, 3, 28, 15, 80, 16, 56, 21, 173, 11, 61, 28, 298),
)
# Maximum marginal likelihood by R's package ltm (Rizopoulos 2006, Journal of Statistical Software).
LSAT_DISCRIMINATIONS = (0.825, 0.723, 0.890, 0.689, 0.657)
LSAT_DIFFICULTIES = (-3.360, -1.370, -0.280, -1.866, -3.124)


def test_published_estimates_are_reproduced():
    """Five items tell little of a person, so priors and quadrature are put to a hard test."""
    patterns = [[digit == "1" for digit in f"{number:05b}"] for number in range(32)]
    is_right = np.repeat(np.array(patterns), LSAT_COUNTS, axis=0)
    items = fit_items(is_right, np.ones_like(is_right))
    # Within a quarter of the published standard errors of 0.19 to 0.26.
    assert np.abs(items.discriminations - LSAT_DISCRIMINATIONS).max() < 0.06
    difficulties, _errors = items.compute_difficulties()
    assert np.abs(difficulties - LSAT_DIFFICULTIES).max() < 0.2


def test_planted_wrong_labels_are_flagged_and_hardly_anything_else():
    _, _, _, is_right = simulate(150, 500, wrong_labels=20)
    flagged = fit_items(is_right, np.ones_like(is_right)).flag_negative()
    assert flagged[:20].mean() >= 0.9
    assert flagged[20:].sum() <= 2


def test_answers_that_are_missing_change_nothing():
    _, _, _, is_right = simulate(60, 80)
    is_answered = np.random.default_rng(2).random(is_right.shape) < 0.7
    # What stands at a missing answer isn't read.
    fits = [
        fit_items(is_right & is_answered, is_answered),
        fit_items(is_right | ~is_answered, is_answered),
    ]
    assert np.allclose(fits[0].discriminations, fits[1].discriminations)
    assert np.allclose(fits[0].intercepts, fits[1].intercepts)


def test_a_new_model_is_placed_without_a_new_fit():
    abilities, _, _, is_right = simulate(200, 600)
    items = fit_items(is_right[:199], np.ones_like(is_right[:199]))
    placed = estimate_abilities(
        items.discriminations, items.intercepts, is_right[199:], np.ones_like(is_right[199:])
    )
    assert abs(placed.means[0] - abilities[199]) < 4 * placed.deviations[0]
    assert 0 < placed.deviations[0] < 0.2


@settings(max_examples=20, deadline=None)
@given(right=st.integers(0, 40))
def test_more_right_answers_never_lower_an_ability(right):
    slopes, intercepts = np.ones(41), np.zeros(41)
    answers = np.arange(41) < np.array([[right], [right + 1]])
    placed = estimate_abilities(slopes, intercepts, answers, np.ones_like(answers))
    assert placed.means[0] < placed.means[1]


def test_a_model_without_answers_is_anywhere():
    nothing = np.zeros((1, 5), dtype=bool)
    placed = estimate_abilities(np.ones(5), np.zeros(5), nothing, nothing)
    assert (placed.means[0], placed.deviations[0]) == (0, 1)


def test_too_few_models_are_refused():
    _, _, _, is_right = simulate(MIN_MODELS - 1, 30)
    with pytest.raises(TooFewAnswers):
        fit_items(is_right, np.ones_like(is_right))


def test_items_with_few_or_equal_answers_are_not_stated():
    _, _, _, is_right = simulate(40, 30)
    is_answered = np.ones_like(is_right)
    is_right[:, 0], is_right[:, 1] = True, False
    is_answered[19:, 2] = False
    items = fit_items(is_right, is_answered)
    assert items.is_stated[:3].tolist() == [False, False, False]
    assert items.is_stated[3:].mean() > 0.9
    assert np.isfinite(items.discriminations).all()
    assert not items.flag_negative()[:3].any()


def test_an_item_that_tells_nothing_has_no_difficulty():
    _, _, _, is_right = simulate(100, 50)
    is_right[:, 0] = np.random.default_rng(3).random(100) < 0.5
    difficulties, deviations = fit_items(is_right, np.ones_like(is_right)).compute_difficulties()
    assert np.isnan(difficulties[0])
    assert np.isnan(deviations[0])


def test_rounds_are_bounded(monkeypatch):
    """Each round comes closer to the fit, so that few of them are a coarse fit and no failure."""
    _, _, _, is_right = simulate(60, 40)
    is_answered = np.ones_like(is_right)
    full = fit_items(is_right, is_answered).discriminations
    monkeypatch.setattr(response_model, "ABILITY_STEPS", 1)
    distances = []
    for rounds in (1, 3):
        monkeypatch.setattr(response_model, "MAX_ROUNDS", rounds)
        distances.append(np.abs(fit_items(is_right, is_answered).discriminations - full).max())
    assert distances[1] < distances[0]
