"""Shorter evaluations: chances, estimates without bias, intervals, and when to stop."""

import math

import numpy as np
import pytest
from scipy import stats

from evaluation.runs.short.selectors import MIN_ASKED
from evaluation.scoring.shorter.drawing import (
    MAX_CHANCE_RATIO,
    MIN_QUESTIONS,
    UNIFORM_SHARE,
    choose_batch_size,
    compute_weights,
    draw_batch,
    make_priors,
    predict_answers,
)
from evaluation.scoring.shorter.estimate import (
    COIN_VARIANCE,
    PSEUDO_DRAWS,
    AskedQuestion,
    combine_draws,
    estimate_share,
    find_stop_reason,
)
from evaluation.scoring.shorter.separating import find_inseparable


def ask(answers, predict, batches, seed, exposures=None):
    """The questions drawn in batches of these sizes; `predict` is told what was asked before."""
    size, random = len(answers), np.random.default_rng(seed)
    is_asked = np.zeros(size, dtype=bool)
    asked = []
    for batch in batches:
        predictions = predict(is_asked.copy())
        exposed = np.zeros(size, dtype=int) if exposures is None else exposures
        for question in draw_batch(predictions, is_asked, exposed, batch, random):
            is_asked[question.position] = True
            asked.append(
                AskedQuestion(
                    question.chance,
                    question.prediction,
                    question.rest,
                    bool(answers[question.position]),
                )
            )
    return asked


@pytest.mark.parametrize("name", ["right", "wrong", "changing", "inverted"])
def test_the_estimate_is_unbiased_whatever_is_predicted(name):
    """Over 2,000 draws of 30 of 80 questions, within four standard errors."""
    random = np.random.default_rng(3)
    chances = random.random(80) ** 2
    answers = random.random(80) < chances
    noise = random.random(80)
    predict = {
        "right": lambda is_asked: chances,
        "wrong": lambda is_asked: noise,
        # Predictions may depend on earlier answers: here all follow the share of those.
        "changing": lambda is_asked: np.full(80, answers[is_asked].mean() if is_asked.any() else 0),
        "inverted": lambda is_asked: np.where(answers, 0.1, 0.9),
    }[name]
    values = [
        combine_draws(80, ask(answers, predict, (10, 5, 15), seed))[0] for seed in range(2000)
    ]
    assert abs(np.mean(values) - answers.mean()) < 4 * np.std(values) / math.sqrt(len(values))


def test_good_predictions_make_it_more_precise_and_bad_ones_less():
    random = np.random.default_rng(3)
    chances = np.where(random.random(400) < 0.5, 0.05, 0.95)
    answers = random.random(400) < chances

    def measure(predictions):
        values = [
            combine_draws(400, ask(answers, lambda is_asked: predictions, (50, 50), seed))[0]
            for seed in range(200)
        ]
        return np.std(values)

    assert measure(chances) < 0.6 * measure(np.full(400, 0.5)) < measure(1 - chances)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5])
def test_with_equal_chances_it_is_a_simple_random_sample(share):
    """The mean and the finite population's variance of Cochran 1977, theorem 2.2."""
    size, count = 200, 60
    answers = np.arange(size) < share * size
    asked = ask(answers, lambda is_asked: np.full(size, 0.5), (20, 40), seed=1)
    outcomes = np.array([question.is_right for question in asked], dtype=float)
    value, deviation = combine_draws(size, asked)
    assert value == pytest.approx(outcomes.mean())
    squares = ((outcomes - outcomes.mean()) ** 2).sum()
    variance = (squares + PSEUDO_DRAWS * COIN_VARIANCE) / (count - 1 + PSEUDO_DRAWS)
    assert deviation**2 == pytest.approx(variance / count * (1 - count / size))
    estimate = estimate_share(size, asked)
    assert estimate.half_width == pytest.approx(deviation * stats.t.ppf(0.975, count - 1))


def test_intervals_hold_the_share_of_the_whole_set():
    random = np.random.default_rng(5)
    priors = make_priors(300, list(random.random(300)))
    held = 0
    for seed in range(400):
        answers = random.random(300) < predict_answers(priors, [], [])
        asked = ask(answers, lambda is_asked: np.full(300, 0.6), (40, 20), seed)
        estimate = estimate_share(300, asked)
        held += estimate.low <= answers.mean() <= estimate.high
    assert 0.92 < held / 400 < 0.995


def test_all_questions_give_the_share_itself():
    answers = np.arange(50) % 3 == 0
    asked = ask(answers, lambda is_asked: np.linspace(0.01, 0.99, 50), (20, 20, 10), seed=1)
    estimate = estimate_share(50, asked)
    assert estimate.value == estimate.low == estimate.high == answers.mean()


def test_lost_answers_widen_the_interval_by_what_they_may_change():
    answers = np.arange(50) % 3 == 0
    asked = ask(answers, lambda is_asked: np.full(50, 0.4), (50,), seed=1)
    lost = [
        AskedQuestion(question.chance, question.prediction, question.rest, None)
        if number < 5
        else question
        for number, question in enumerate(asked)
    ]
    estimate = estimate_share(50, lost)
    assert estimate.half_width == pytest.approx(0.1)
    assert estimate.low <= answers.mean() <= estimate.high
    part = estimate_share(50, lost[:30])
    without = estimate_share(50, asked[:30])
    assert part.half_width > without.half_width


def test_it_never_says_what_the_answers_exclude():
    asked = ask(np.ones(50, dtype=bool), lambda is_asked: np.full(50, 0.02), (45,), seed=1)
    estimate = estimate_share(50, asked)
    assert 0.9 <= estimate.low <= estimate.value <= estimate.high <= 1


def test_no_estimate_from_fewer_than_two_answers():
    assert estimate_share(50, []) is None
    assert estimate_share(50, [AskedQuestion(0.02, 0.5, 25, True)]) is None


def test_chances_are_known_and_add_up():
    random = np.random.default_rng(1)
    predictions, exposures = random.random(30), np.zeros(30, dtype=int)
    weights = compute_weights(predictions, exposures)
    assert weights.sum() == pytest.approx(1)
    assert weights.min() >= UNIFORM_SHARE / 30
    counts = np.zeros(30)
    for seed in range(2000):
        (question,) = draw_batch(
            predictions, np.zeros(30, dtype=bool), exposures, 1, np.random.default_rng(seed)
        )
        assert question.chance == pytest.approx(weights[question.position])
        assert question.rest == pytest.approx(predictions.sum())
        counts[question.position] += 1
    # Each is expected more than ten times, as the test needs.
    assert stats.chisquare(counts, 2000 * weights).pvalue > 1e-4


def test_no_question_is_drawn_twice_and_the_last_one_surely():
    predictions = np.linspace(0.001, 0.999, 20)
    is_asked = np.zeros(20, dtype=bool)
    is_asked[3] = True
    drawn = draw_batch(predictions, is_asked, np.zeros(20, dtype=int), 40, np.random.default_rng(1))
    assert sorted(question.position for question in drawn) == [n for n in range(20) if n != 3]
    assert drawn[-1].chance == pytest.approx(1)


def test_no_chance_is_above_the_stated_multiple_of_the_mean():
    predictions = np.full(100, 1e-12)
    predictions[0] = 0.5
    weights = compute_weights(predictions, np.zeros(100, dtype=int))
    assert weights.max() == weights[0] == pytest.approx(MAX_CHANCE_RATIO / 100)
    assert weights.sum() == pytest.approx(1)
    predictions[:10] = 0.5
    weights = compute_weights(predictions, np.zeros(100, dtype=int))
    assert weights.max() == pytest.approx(MAX_CHANCE_RATIO / 100)
    assert weights.sum() == pytest.approx(1)


def test_questions_that_were_asked_too_often_get_less():
    exposures = np.ones(100, dtype=int)
    exposures[0] = 12
    weights = compute_weights(np.full(100, 0.5), exposures)
    fair = compute_weights(np.full(100, 0.5), np.ones(100, dtype=int))
    assert weights[0] < 0.35 * weights[1]
    assert fair[0] == fair[1]


def test_over_many_evaluations_no_question_is_asked_much_more_often_than_others():
    """The same model a hundred times: five questions tell nearly everything about it."""
    size, predictions = 200, np.full(200, 0.001)
    predictions[:5] = 0.5
    exposures = np.zeros(size, dtype=int)
    for seed in range(100):
        drawn = draw_batch(
            predictions, np.zeros(size, dtype=bool), exposures, 40, np.random.default_rng(seed)
        )
        for question in drawn:
            exposures[question.position] += 1
    assert 2 < exposures.max() / exposures.mean() < MAX_CHANCE_RATIO + 0.5


def test_predictions_follow_the_answers():
    priors = make_priors(4, [0.5, 0.5, 0.2, 0.9])
    before = predict_answers(priors, [], [])
    np.testing.assert_allclose(before, [0.5, 0.5, 0.2, 0.9])
    assert (predict_answers(priors, [0, 1], [True, True]) > before).all()
    assert (predict_answers(priors, [0, 1], [False, False]) < before).all()


def test_what_is_known_of_questions():
    priors = make_priors(4, [0.5, 0.0, 1.0, None], [1.0, None, None, None], [2.0, 0.5, None, None])
    np.testing.assert_allclose(priors.discriminations, [2.0, 0.5, 1.0, 1.0])
    np.testing.assert_allclose(priors.intercepts, [-2.0, -4.0, 4.0, 0.0])
    alike = make_priors(3)
    assert len(set(predict_answers(alike, [0], [True]))) == 1


def test_sizes_of_batches():
    assert choose_batch_size(0, 1000, 0) == MIN_QUESTIONS == MIN_ASKED
    assert choose_batch_size(0, 25, 0) == 25
    assert choose_batch_size(100, 1000, 1.2) == 44
    assert choose_batch_size(100, 1000, 3.0) == 50
    assert choose_batch_size(100, 105, 3.0) == 5
    assert choose_batch_size(100, 1000, 0.9) == 10


def test_when_it_stops():
    asked = ask(np.arange(300) % 2 == 0, lambda is_asked: np.full(300, 0.5), (60,), seed=1)
    estimate = estimate_share(300, asked)
    assert find_stop_reason(None, 0, 300, 0.1) == ""
    assert find_stop_reason(estimate, 60, 300, estimate.half_width) == "width"
    assert find_stop_reason(estimate, 60, 300, 0.9 * estimate.half_width) == ""
    assert find_stop_reason(estimate, 60, 60, 0.9 * estimate.half_width) == "questions"
    assert find_stop_reason(estimate, MIN_QUESTIONS - 1, 300, 0.5) == ""


def test_which_models_cannot_be_told_apart():
    shares = {"a": 0.7, "b": 0.66, "c": 0.77, "d": 0.659, "e": None}
    assert find_inseparable((0.66, 0.71, 0.76), shares) == ["a", "b"]
    assert find_inseparable((0.5, 0.55, 0.6), shares) == []
