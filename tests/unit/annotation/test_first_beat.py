"""What a fresh verdict says, from plain facts."""

from dataclasses import replace

import pytest

from annotation.verdict.first_beat import (
    FEW_EXAMPLES,
    MIN_MISTAKES,
    MIN_TRIES,
    CatchFacts,
    choose_ideas,
    compute_odds,
    describe_miss,
    find_meaning,
)

ALL_TRUE = CatchFacts(
    is_first_on_text=True,
    confidence=0.98,
    week_mistakes=MIN_MISTAKES,
    week_highest=0.98,
    round_tries=MIN_TRIES,
    round_fooled=MIN_TRIES // 4,
)
NOT_FIRST = replace(ALL_TRUE, is_first_on_text=False)


def test_the_first_true_line_is_said():
    assert find_meaning(ALL_TRUE) == "first_on_text"
    assert find_meaning(NOT_FIRST) == "most_confident"
    assert find_meaning(replace(NOT_FIRST, week_highest=0.99)) == "share_of_tries"
    assert find_meaning(CatchFacts()) is None


@pytest.mark.parametrize(
    "change", [{"confidence": None}, {"week_mistakes": MIN_MISTAKES - 1}, {"week_highest": 0.981}]
)
def test_a_confidence_that_is_hidden_or_lower_or_rare_makes_no_line(change):
    assert find_meaning(replace(NOT_FIRST, **change)) == "share_of_tries"


@pytest.mark.parametrize(
    "change", [{"round_tries": MIN_TRIES - 1}, {"round_fooled": 0}, {"round_fooled": MIN_TRIES}]
)
def test_few_tries_and_easy_models_make_no_share(change):
    assert find_meaning(replace(NOT_FIRST, confidence=None, **change)) is None


def test_odds_are_whole_numbers():
    assert compute_odds(20, 10) == 2
    assert compute_odds(20, 7) == 3
    assert compute_odds(19, 10) is None


@pytest.mark.parametrize(
    ("chances", "kind"),
    [
        ({"a": 0.46, "b": 0.54}, "close"),
        ({"a": 0.6, "b": 0.4}, "close"),
        ({"a": 0.61, "b": 0.39}, "sure"),
        ({"a": 0.99, "b": 0.01}, "sure"),
        ({"b": 1.0}, None),
        ({}, None),
        (None, None),
    ],
)
def test_how_near_a_miss_was(chances, kind):
    assert describe_miss(chances, "a") == kind


def test_thin_challenges_are_ideas_the_thinnest_first():
    counts = {"a": 5, "b": FEW_EXAMPLES, "c": 0, "d": 0, "e": 1}
    assert choose_ideas(counts) == ["c", "d", "e"]
    assert choose_ideas({"b": FEW_EXAMPLES}) == []
