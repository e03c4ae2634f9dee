"""The titles of charts: each says what its numbers show, and nothing that they do not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.figures.wins import shade_share
from leaderboard.arena.findings import describe_arena
from leaderboard.board.cells import Cell
from leaderboard.board.findings import (
    MeasuredName,
    RankedName,
    describe_front,
    describe_ranking,
    describe_trend,
    find_possible_leaders,
    is_clearly_better,
)
from leaderboard.compare.findings import describe_comparison
from leaderboard.compare.outcomes import count_outcomes
from leaderboard.rounds import findings
from leaderboard.rounds.progress import Progress


def test_people_lead_by_the_rounded_gap():
    title = findings.describe_gap(Cell(54.2, 46.0, 61.0), 3, "deberta")
    assert "54" in title
    assert "deberta" not in title


def test_a_model_that_leads_is_named():
    title = findings.describe_gap(Cell(-4.4, -8.0, -1.0), 2, "deberta")
    assert title.startswith("deberta")
    assert " 4 " in title


def test_a_gap_whose_interval_has_zero_is_none():
    title = findings.describe_gap(Cell(3.0, -1.0, 7.0), 2, "deberta")
    assert "deberta" not in title
    assert "3" not in title


@pytest.mark.parametrize("cell", [Cell(None), Cell(3.0)])
def test_nothing_is_said_of_a_gap_without_an_interval(cell):
    assert findings.describe_gap(cell, 2, "deberta") == ""


def measured(*results):
    """Models a, b, … with a value and its interval."""
    return [MeasuredName(name, *result) for name, result in zip("abcd", results, strict=False)]


@pytest.mark.parametrize(
    ("results", "leaders"),
    [
        ([(60, 55, 65)], ["a"]),
        ([(60, 55, 65), (50, 45, 54)], ["a"]),
        ([(50, 45, 54), (60, 55, 65)], ["b"]),
        ([(60, 55, 65), (50, 45, 56)], ["a", "b"]),
        ([(60, 55, 65), (50, None, None)], ["a", "b"]),
        ([(60, None, None), (50, 49, 51)], ["a", "b"]),
        ([(60, 55, 65), (58, 52, 63), (20, 10, 30)], ["a", "b"]),
    ],
)
def test_only_intervals_that_lie_apart_tell_models_apart(results, leaders):
    assert find_possible_leaders(measured(*results)) == leaders


def test_without_people_a_best_model_is_named_only_if_it_leads():
    title = findings.describe_best_models(measured((61.2, 55, 65), (40, 35, 45)), 2)
    assert title.startswith("a is best")
    assert "61%" in title
    tie = findings.describe_best_models(measured((61.2, 55, 65), (58, 52, 64)), 2)
    assert tie.startswith("a and b")
    assert "61%" not in tie
    assert findings.describe_best_models(measured(*[(50, 40, 60)] * 3), 2).startswith("3 models")
    assert findings.describe_best_models(measured((61.2, 55, 65)), 2).startswith("a reaches 61%")
    assert "%" not in findings.describe_best_models([], 0)


@pytest.mark.parametrize(
    ("gap", "words"),
    [
        (Cell(30.0, 20.0, 40.0), "30 points below people"),
        (Cell(-10.0, -15.0, -5.0), "10 points above people"),
        (Cell(3.0, -5.0, 11.0), "This model and people"),
        (Cell(30.0), "reaches 60%"),
        (Cell(None), "reaches 60%"),
    ],
)
def test_one_model_beside_people(gap, words):
    assert words in findings.describe_model_beside_people(Cell(60.0), gap, 2)
    assert findings.describe_model_beside_people(Cell(None), gap, 2) == ""


@pytest.mark.parametrize(
    ("progress", "title"),
    [
        (Progress.BETTER, "The catch rate fell from 34% to 24% in round 3"),
        (Progress.WORSE, "The catch rate rose from 34% to 24% in round 3"),
        (Progress.STALLED, "The catch rate has not clearly changed since round 2"),
        (Progress.UNCLEAR, "The catch rate has not clearly changed since round 2"),
        (Progress.NOISE, "Catches in round 3 may be label errors"),
    ],
)
def test_what_became_of_the_catch_rate(progress, title):
    assert findings.describe_catch_rate(progress, 3, 24.0, 2, 34.0) == title


def test_a_first_round_is_compared_with_none():
    title = "The catch rate is 24% in round 1"
    assert findings.describe_catch_rate(Progress.FIRST, 1, 24.0, None, None) == title


def ranked(*lasts):
    """Models of which each first one may be as good as the best."""
    models = []
    for number, (first, last) in enumerate(lasts):
        models.append(RankedName(f"m{number}", first, last, f"{90 - number}.0"))
    return models


@pytest.mark.parametrize(
    ("ranks", "title"),
    [
        ([], "No model has a score yet"),
        ([(1, 1)], "m0 scores 90.0"),
        ([(1, 1), (2, 3), (2, 3)], "m0 leads with 90.0"),
        ([(1, 2), (1, 2), (3, 3)], "m0 and m1 can't be told apart yet"),
        ([(1, 2), (2, 2)], "m0 and m1 can't be told apart yet"),
        ([(1, 3), (1, 3), (1, 3)], "The first 3 models can't be told apart yet"),
    ],
)
def test_who_leads_a_ranking(ranks, title):
    assert describe_ranking(ranked(*ranks)) == title


@pytest.mark.parametrize("is_clear", [False, True])
@pytest.mark.parametrize("names", [[], ["a"], ["a", "b"]])
def test_which_models_no_other_one_beats(names, is_clear):
    title = describe_front(names, "Speed", "Accuracy", is_clear=is_clear)
    assert "Speed" in title
    assert "Accuracy" in title
    assert ("a is best" in title) == (len(names) == 1 and is_clear)
    assert title.startswith("2 models") == (len(names) == 2)


@pytest.mark.parametrize(
    ("first", "second", "is_less_better", "is_better"),
    [
        ((60, 55, 65), (50, 45, 54), False, True),
        ((60, 55, 65), (50, 45, 56), False, False),
        ((60, 55, 65), (50, 45, 54), True, False),
        ((40, 35, 44), (50, 45, 54), True, True),
        ((2.0, None, None), (3.0, None, None), True, True),
        ((2.0, None, None), (2.0, None, None), True, False),
    ],
)
def test_who_is_clearly_better(first, second, is_less_better, is_better):
    pair = measured(first, second)
    assert is_clearly_better(*pair, is_less_better=is_less_better) == is_better


@pytest.mark.parametrize(
    ("results", "title"),
    [
        ([], "Accuracy of the top models by round"),
        ([(61.4, 55, 65)], "a reaches Accuracy 61% on round-3"),
        ([(61.4, 58, 65), (50, 45, 55)], "a leads on round-3 with Accuracy 61%"),
        ([(50, 45, 55), (61.4, 58, 65)], "b leads on round-3 with Accuracy 61%"),
        ([(61.4, 52, 65), (50, 45, 55)], "a and b can't be told apart on round-3 yet"),
        ([(61.4, 52, 65)] * 3, "3 models can't be told apart on round-3 yet"),
    ],
)
def test_who_leads_on_the_newest_set(results, title):
    assert describe_trend(measured(*results), "Accuracy", "round-3") == title


@pytest.mark.parametrize(
    ("counts", "title"),
    [
        ((0, 0, 0), "No comparison could be tested"),
        ((0, 0, 4), "Ada and Ben can't be told apart yet"),
        ((3, 0, 4), "Ada is clearly better in 3 of 4 comparisons"),
        ((0, 1, 4), "Ben is clearly better in 1 of 4 comparisons"),
        ((2, 1, 4), "Ada is clearly better in 2 of 4 comparisons, Ben in 1"),
    ],
)
def test_which_of_two_models_is_better(counts, title):
    assert describe_comparison("Ada", "Ben", *counts) == title


grades = st.lists(st.tuples(st.sampled_from([0.0, 1.0]), st.sampled_from([0.0, 1.0])))


@given(grades)
def test_four_parts_add_up_to_all_examples(pairs):
    counts = count_outcomes([first for first, _ in pairs], [second for _, second in pairs])
    assert sum(counts) == len(pairs)
    assert counts.both + counts.first == sum(first for first, _ in pairs)
    assert counts.both + counts.second == sum(second for _, second in pairs)


def test_answers_that_are_right_in_part_have_no_four_parts():
    assert count_outcomes([0.5], [1.0]) is None


@pytest.mark.parametrize(
    ("ranks", "title"),
    [
        ([None, None], "No model has a rank yet"),
        ([1, 2], "People prefer a"),
        ([1, 1], "a and b can't be told apart yet"),
    ],
)
def test_whom_people_prefer(ranks, title):
    assert describe_arena(["a", "b"], ranks) == title
    assert describe_arena(["a", "b", "c"], [1, 1, 1]).startswith("The first 3 ")


@given(st.floats(0, 1))
def test_shades_of_wins_are_even_on_both_sides(share):
    mirror = {"win-1": "lose-1", "win-2": "lose-2", "lose-1": "win-1", "lose-2": "win-2", "": ""}
    if abs(abs(share - 0.5) - 0.05) > 1e-9 and abs(abs(share - 0.5) - 0.15) > 1e-9:
        assert shade_share(1 - share) == mirror[shade_share(share)]
    assert shade_share(share, is_thin=True) == "thin"
