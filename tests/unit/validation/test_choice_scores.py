"""What a judge's choice says of the author, and that estimates hold whatever a judge says."""

from random import Random
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from validation.consensus.choice_scores import compute_choice_score
from validation.consensus.vote_draws import JudgeAnswer, draw_for_people
from validation.rates.assisted_rates import (
    AssistedExample,
    compute_assisted_rate,
    compute_judge_kappa,
)
from validation.rates.sampled_counts import NEUTRAL_SCORE

EXAMPLES, AUTHORS, DRAWS = 300, 60, 150


@given(
    probability=st.none() | st.floats(0, 1),
    count=st.integers(2, 30),
    is_confirming=st.booleans(),
    is_unclear=st.booleans(),
)
def test_a_score_is_a_probability(probability, count, is_confirming, is_unclear):
    score = compute_choice_score(
        is_confirming=is_confirming,
        is_unclear=is_unclear,
        probability=probability,
        choice_count=count,
    )
    assert 0 <= score <= 1
    if is_unclear:
        assert score == 0.5
    # A choice never counts as its opposite, however unlikely the judge found it.
    elif is_confirming:
        assert score >= 1 / count
    else:
        assert score <= 1 / count + 1e-9


@given(st.floats(0, 1), st.integers(2, 30))
def test_the_scores_of_all_choices_add_up_to_one(probability, count):
    scores = [
        compute_choice_score(
            is_confirming=is_confirming,
            is_unclear=False,
            probability=probability,
            choice_count=count,
        )
        for is_confirming in (True, False)
    ]
    assert scores[0] + (count - 1) * scores[1] == pytest.approx(1)


def test_kappa_is_cohens():
    """The example of Cohen's paper in two categories: po = 0.7, pe = 0.5."""
    cells = {(1, 1): 20, (1, 0): 5, (0, 1): 10, (0, 0): 15}
    rows = [pair for pair, count in cells.items() for _ in range(count)]
    assert compute_judge_kappa([(*row, 1.0) for row in rows]) == pytest.approx(0.4)
    # A weight of two counts as two.
    weighted = [(*pair, float(count)) for pair, count in cells.items()]
    assert compute_judge_kappa(weighted) == pytest.approx(0.4)
    assert compute_judge_kappa([(1.0, 1.0, 1.0)] * 5) is None


def judge_against(is_right, is_injected, random):
    """Always says the opposite of what people find, and is sure of it."""
    return JudgeAnswer(float(not is_right))


def judge_nonsense(is_right, is_injected, random):
    """Says anything, mostly what can't be read."""
    choice = random.random()
    if choice < 0.6:
        return JudgeAnswer(None, is_readable=choice < 0.1)
    return JudgeAnswer(random.random())


def judge_as_told(is_right, is_injected, random):
    """Is right, except where the example tells it what to say."""
    return JudgeAnswer(1.0 if is_injected else float(is_right))


@pytest.mark.parametrize("judge", [judge_against, judge_nonsense, judge_as_told])
def test_the_estimate_is_unbiased_whatever_the_judge_says(judge):
    """Oracle: what people would find in all examples, which the simulation knows.

    Authors who are wrong try to talk the judge into confirming them, so it errs where it matters.
    """
    random = Random(f"{judge.__name__}")
    authors = [number % AUTHORS for number in range(EXAMPLES)]
    liars = {author for author in range(AUTHORS) if random.random() < 0.4}
    are_right = [random.random() < (0.2 if one in liars else 0.7) for one in authors]
    are_injected = [one in liars and random.random() < 0.8 for one in authors]
    answers = [judge(*pair, random) for pair in zip(are_right, are_injected, strict=True)]
    ids = [UUID(int=random.getrandbits(128)) for _ in authors]
    truth = sum(are_right) / EXAMPLES
    values, covered = [], 0
    for number in range(DRAWS):
        draws = [
            # Another site draws others: its secret decides.
            draw_for_people(uuid, answer, 0.25, f"secret {number}")
            for uuid, answer in zip(ids, answers, strict=True)
        ]
        rate = compute_assisted_rate(
            [
                AssistedExample(
                    author,
                    NEUTRAL_SCORE if draw.judge_score is None else draw.judge_score,
                    float(is_right) if draw.is_drawn else None,
                    draw.chance,
                )
                for author, draw, is_right in zip(authors, draws, are_right, strict=True)
            ]
        )
        values.append(rate.value)
        covered += rate.low <= truth <= rate.high
    # Wider than four standard errors of the mean of the draws.
    assert sum(values) / DRAWS == pytest.approx(truth, abs=0.015)
    # The interval also allows for other authors, so it holds more often than by chance of the draw.
    assert covered / DRAWS >= 0.95
