"""A judge asked in both orders: which verdicts count, its consistency, bias and agreement."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from leaderboard.arena.judges.verdicts import (
    CHOICES,
    MIN_BATTLES,
    JudgedPair,
    combine_orders,
    measure_judge,
)

CHOICE = st.sampled_from(CHOICES)
BATTLES = st.lists(
    st.builds(
        JudgedPair,
        battle=st.uuids(),
        voter=st.integers(0, 6),
        by_person=st.sampled_from(["left", "right", "tie"]),
        shown=CHOICE,
        swapped=CHOICE,
    ),
    max_size=80,
)
MIRRORED = {"left": "right", "right": "left"}
TURNED = {"first": "second", "second": "first", "tie": "tie"}


@given(CHOICE, CHOICE)
def test_swapping_the_sides_of_a_battle_mirrors_its_verdict(shown, swapped):
    verdict = combine_orders(shown, swapped)
    assert combine_orders(swapped, shown) == MIRRORED.get(verdict, verdict)


@given(CHOICE)
def test_a_choice_that_looks_at_the_position_alone_decides_nothing(always):
    assert combine_orders(always, always) == ("tie" if always == "tie" else "undecided")


@given(CHOICE)
def test_a_choice_that_looks_at_the_answer_alone_always_decides(shown):
    assert combine_orders(shown, TURNED[shown]) == {"first": "left", "second": "right"}.get(
        shown, "tie"
    )


@given(CHOICE, CHOICE)
def test_an_undecided_judge_chose_one_position_only(shown, swapped):
    is_undecided = combine_orders(shown, swapped) == "undecided"
    assert is_undecided == (TURNED[shown] != swapped)
    if is_undecided:
        assert len({shown, swapped} - {"tie"}) == 1


@given(BATTLES)
def test_measures_are_shares_within_their_intervals(battles):
    found = measure_judge(battles)
    undecided = [one for one in battles if one.verdict == "undecided"]
    assert found.battles == len(battles) == sum(sum(row.values()) for row in found.counts.values())
    assert (found.consistency is None) == (not battles)
    assert (found.first_share is None) == (not undecided)
    for rate in filter(None, (found.consistency, found.first_share)):
        assert 0 <= rate.low <= rate.value <= rate.high <= 1
    if battles:
        assert math.isclose(found.consistency.value, 1 - len(undecided) / len(battles))
    people, judge = [one.by_person for one in battles], [one.winner for one in battles]
    if len({*people, *judge}) < 2:
        assert found.agreement.value is None
        return
    assert math.isclose(found.agreement.value, cohen_kappa_score(people, judge), abs_tol=1e-9)
    assert -1 <= found.agreement.low <= found.agreement.value <= found.agreement.high <= 1


def judged(shown, swapped, count=60, by_person="left"):
    return [JudgedPair(number, number, by_person, shown, swapped) for number in range(count)]


@pytest.mark.parametrize(("always", "share"), [("first", 1.0), ("second", 0.0)])
def test_a_judge_of_positions_is_consistent_nowhere_and_wholly_biased(always, share):
    found = measure_judge(judged(always, always))
    assert found.consistency.value == 0
    assert found.first_share.value == share
    assert found.first_share.low <= share <= found.first_share.high
    assert found.first_share.high - found.first_share.low < 0.1


def test_few_battles_calibrate_no_judge():
    right = judged("first", "second") + judged("second", "first", by_person="right")
    assert measure_judge(right).is_calibrated
    assert measure_judge(right).agreement.value == 1
    assert not measure_judge(right[: MIN_BATTLES - 1]).is_calibrated
    assert not measure_judge(judged("first", "second")).is_calibrated  # there is nothing to tell


def test_battles_of_one_voter_say_less_than_those_of_many():
    many = judged("first", "second", 40) + judged("first", "first", 40)
    few = [one._replace(voter=one.voter % 3) for one in many]
    wide, narrow = measure_judge(few).consistency, measure_judge(many).consistency
    assert wide.high - wide.low > narrow.high - narrow.low
