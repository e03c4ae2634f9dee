"""What validators judge, and the right answers they type."""

import pytest

from tasks.config.loading import load_config
from tests.unit.tasks.config_texts import FULL, MINIMAL
from validation.rules.claims import (
    accepting,
    check_claim,
    confirming,
    has_own_words,
    is_about_model,
    label_field,
    rejecting,
)
from validation.rules.consensus import Decision, Vote
from validation.rules.corrections import right_answers
from validation.rules.tags import tag_name

ASKS = load_config(MINIMAL + "validation: {mode: verdict}\n")
LABELS = load_config(FULL)


def test_the_field_whose_labels_are_chosen_from():
    assert label_field(ASKS) is None
    assert label_field(LABELS) == "label"


def test_judges_see_what_the_model_reads_and_what_they_judge():
    """A choice such as "kind" depends on the label, and no model reads the slider."""
    assert LABELS.judged_fields == ("text",)
    verdict = load_config(FULL.replace("mode: label", "mode: verdict"))
    assert verdict.judged_fields == ("text", "label", "answer")
    shown = FULL.replace("step: 0.25,", "step: 0.25, judges_see: true,")
    assert load_config(shown).judged_fields == ("text", "sure")


def test_the_words_of_a_task_are_asked_where_they_fit():
    assert has_own_words(ASKS, "fooled")
    assert not has_own_words(ASKS, "no_model")  # there is no answer that they could be about
    assert has_own_words(LABELS, "no_model")


@pytest.mark.parametrize(
    ("outcome", "confirms"),
    [("fooled", "incorrect"), ("not_fooled", "correct"), ("undecided", None), ("unknown", None)],
)
def test_what_confirms_a_claim_about_the_model(outcome, confirms):
    assert is_about_model(ASKS, outcome)
    assert confirming(ASKS, outcome) == confirms
    assert confirming(LABELS, outcome) == "correct"


@pytest.mark.parametrize(
    ("outcome", "verdict", "found"),
    [
        ("fooled", "incorrect", (True, True)),
        ("fooled", "correct", (False, False)),
        ("not_fooled", "correct", (True, False)),
        ("undecided", "incorrect", (False, False)),
        ("unknown", "incorrect", (True, True)),
        ("unknown", "correct", (True, False)),
    ],
)
def test_a_decision_about_the_model(outcome, verdict, found):
    decision = Decision("decided", Vote(verdict=verdict))
    assert check_claim(ASKS, outcome, decision, None, None) == found


@pytest.mark.parametrize(
    ("config", "outcome", "label", "accepts", "rejects"),
    [
        (ASKS, "fooled", None, Vote(verdict="incorrect"), Vote(verdict="correct")),
        (ASKS, "not_fooled", None, Vote(verdict="correct"), Vote(verdict="incorrect")),
        (ASKS, "undecided", None, None, Vote(verdict="flagged")),
        (LABELS, "fooled", "neutral", Vote(label="neutral"), Vote(verdict="flagged")),
        (LABELS, "unknown", None, None, Vote(verdict="flagged")),
    ],
)
def test_what_accepts_and_rejects_an_example(config, outcome, label, accepts, rejects):
    assert accepting(config, outcome, label) == accepts
    assert rejecting(config, outcome) == rejects
    for vote, verified in ((accepts, True), (rejects, False)):
        if vote:
            decision = Decision("decided", vote)
            assert check_claim(config, outcome, decision, label, None)[0] is verified


def test_tags_that_look_alike_are_one():
    assert tag_name(" Off\u00a0 TOPIC ") == tag_name("off topic") == "off topic"
    for odd in ("", "  ", "a" * 41, "a\u202eb"):
        with pytest.raises(ValueError, match="1 to 40"):
            tag_name(odd)


def test_right_answers_are_told_once_the_most_frequent_first():
    typed = [{"answer": "Lund"}, {"answer": " Tarn"}, {"answer": "the tarn."}]
    assert right_answers(typed) == ["Tarn", "Lund"]
