"""The conditions of writing: how they are drawn, and which signals a text has under each."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from annotation.rules.writing_conditions import (
    ASK,
    DETERRENTS,
    HIDDEN,
    MARKER_WORDS,
    NONE,
    PASTE_OFF,
    WritingPlan,
    choose_marker,
    draw_condition,
    name_stratum,
    read_signals,
    record_signs,
)

TYPED = {"pasted": 0, "characters": 100, "first_input": 2.0, "active": 40.0}


def scripted(*numbers):
    return iter(numbers).__next__


def test_without_deterrents_nothing_is_drawn():
    assert draw_condition(WritingPlan(), scripted()) is None
    assert draw_condition(WritingPlan(deterrents=["of another release"]), scripted()) is None


@given(st.sets(st.sampled_from(DETERRENTS), min_size=1), st.floats(0, 0.999999))
def test_a_draw_is_one_of_the_owners_or_none_with_its_probability(names, number):
    drawn = draw_condition(WritingPlan(sorted(names)), scripted(number))
    assert drawn["condition"] in {NONE, *names}
    assert drawn["probability"] == 1 / (len(names) + 1)
    assert "told" not in drawn


def test_each_condition_has_the_probability_that_is_kept():
    plan, steps = WritingPlan(DETERRENTS), 400
    drawn = [draw_condition(plan, scripted(step / steps))["condition"] for step in range(steps)]
    assert Counter(drawn) == dict.fromkeys((NONE, *DETERRENTS), steps / 4)


def test_a_labelled_campaign_also_draws_what_people_are_told():
    plan = WritingPlan(is_labelled=True)
    assert draw_condition(plan, scripted(0.9, 0.49)) == {
        "condition": NONE, "probability": 1, "told": True,
    }  # fmt: skip
    assert draw_condition(plan, scripted(0.9, 0.5))["told"] is False


def test_signals_under_each_condition():
    assert read_signals(None, None) == {}
    assert read_signals(None, TYPED) == {"pasted": False, "fast": False}
    assert read_signals({"condition": PASTE_OFF}, {**TYPED, "pasted": 51})["pasted"] is True
    assert read_signals({"condition": PASTE_OFF}, {**TYPED, "pasted": 50})["pasted"] is False
    assert read_signals({"condition": ASK}, None) == {"admitted": False}
    assert read_signals({"condition": ASK, "admitted": True}, TYPED)["admitted"] is True
    assert read_signals({"condition": HIDDEN, "followed": True}, None) == {"followed": True}


def test_typing_is_fast_only_beyond_what_was_pasted():
    assert read_signals(None, {**TYPED, "active": 8.0})["fast"] is True
    assert read_signals(None, {**TYPED, "active": 0.0})["fast"] is True
    assert read_signals(None, {**TYPED, "active": 0.0, "pasted": 100})["fast"] is False
    # Of a picture or a recording no typing is known.
    assert read_signals(None, {**TYPED, "characters": 0}) == {}


def test_texts_without_typing_are_a_stratum_of_their_own():
    assert name_stratum(None, read_signals(None, TYPED)) == NONE
    assert name_stratum({"condition": ASK}, {"admitted": False}) == "ask-untyped"


def test_only_a_text_with_the_drawn_word_follows_the_instruction():
    condition = {"condition": HIDDEN, "probability": 0.25}
    word = choose_marker(3)
    assert word in MARKER_WORDS
    assert record_signs(None, word, 3) is None
    assert record_signs(condition, f"A {word.title()}, they said.", 3)["followed"] is True
    assert record_signs(condition, f"{word}s are sweet.", 3)["followed"] is False
    assert record_signs(condition, choose_marker(4), 3)["followed"] is False
    assert "followed" not in record_signs({"condition": ASK, "probability": 1}, word, 3)
