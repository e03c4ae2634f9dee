"""The chance with which people are asked about an example that a judge model answered."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from validation.consensus.vote_draws import (
    DrawRule,
    JudgeAnswer,
    compute_draw_chance,
    draw_for_people,
)

SHARES = st.floats(0, 1)


@given(SHARES, st.floats(0.01, 1))
def test_a_chance_is_never_below_the_least_and_never_above_one(score, least):
    chance = compute_draw_chance(score, least)
    assert least <= chance <= 1
    # It matters how sure the judge is, not of what.
    assert chance == pytest.approx(compute_draw_chance(1 - score, least))


@given(SHARES, SHARES)
def test_the_surer_the_judge_the_smaller_the_chance(one, other):
    surer, other = sorted((one, other), key=lambda score: -abs(score - 0.5))
    assert compute_draw_chance(surer, 0.1) <= compute_draw_chance(other, 0.1)


def test_of_many_examples_the_chance_is_drawn():
    answer = JudgeAnswer(0.9)
    draws = [draw_for_people(UUID(int=number), answer, 0.1, "secret") for number in range(4000)]
    assert sum(draw.is_drawn for draw in draws) / 4000 == pytest.approx(0.2, abs=0.03)
    assert {draw.reason for draw in draws} == {"unsure"}
    for is_readable, reason in ((True, "no_answer"), (False, "unreadable")):
        answer = JudgeAnswer(None, is_readable)
        certain = [draw_for_people(UUID(int=number), answer, 0.1, "s") for number in range(100)]
        assert {(draw.is_drawn, draw.chance, draw.reason) for draw in certain} == {
            (True, 1, reason)
        }


def test_a_draw_is_the_same_each_time_and_another_on_another_site():
    def draw_all(secret):
        return [
            draw_for_people(UUID(int=n), JudgeAnswer(1.0), 0.5, secret).is_drawn for n in range(100)
        ]

    assert draw_all("here") == draw_all("here")
    assert draw_all("here") != draw_all("there")


@pytest.mark.parametrize("chance", [0, -0.1, 1.01, float("nan")])
def test_a_rule_needs_a_chance(chance):
    with pytest.raises(ValueError, match="above 0"):
        DrawRule(1, chance)
