"""What validators judge, and the right answers they type."""

from dataclasses import dataclass

import pytest

from tasks.config.loading import load_config
from tests.unit.tasks.config_texts import FULL, MINIMAL
from validation.consensus.claims import (
    assess_claim,
    find_accepting_vote,
    find_confirming_verdict,
    find_label_field,
    find_rejecting_vote,
    has_custom_wording,
    is_about_model,
    is_only_attempt_judged,
)
from validation.consensus.consensus import Decision, Vote
from validation.consensus.corrections import list_right_answers
from validation.consensus.tags import normalise_tag

ASKS = load_config(MINIMAL + "validation: {mode: verdict}\n")
LABELS = load_config(FULL)
PATTERN = """
version: 1
name: Ask
goal: {text: Ask}
input: [{name: question, type: text, label: Your question}]
output: [{name: reply, type: text}]
verdict: {type: pattern, field: reply, pattern: lund}
metrics: {main: squad_f1}
validation: {V}
"""
SECRET = PATTERN.replace("type: pattern, field: reply, pattern: lund", "type: secret, field: reply")
SECRET = SECRET.replace("type: text, label: Your question", "type: chat, system: 'It is {secret}'")


def test_the_field_whose_labels_are_chosen_from():
    assert find_label_field(ASKS) is None
    assert find_label_field(LABELS) == "label"


def test_judges_see_what_the_model_reads_and_what_they_judge():
    """A choice such as "kind" depends on the label, and no model reads the slider."""
    assert LABELS.judged_fields == ("text",)
    verdict = load_config(FULL.replace("mode: label", "mode: verdict"))
    assert verdict.judged_fields == ("text", "label", "answer")
    shown = FULL.replace("step: 0.25,", "step: 0.25, judges_see: true,")
    assert load_config(shown).judged_fields == ("text", "sure")


@dataclass(frozen=True)
class Stored:
    """What the rules read of an example."""

    outcome: str = "fooled"
    decided_by: str = "rule"
    uid: str | None = None


def test_the_words_of_a_task_are_asked_where_they_fit():
    assert has_custom_wording(ASKS, Stored())
    assert not has_custom_wording(ASKS, Stored("no_model"))  # no answer that they could be about
    assert has_custom_wording(LABELS, Stored("no_model"))
    attempts = load_config(PATTERN.replace("V", "asks: attempt, question: Is it fair"))
    assert has_custom_wording(attempts, Stored())
    assert not has_custom_wording(attempts, Stored(decided_by="author"))


@pytest.mark.parametrize(
    ("words", "stored", "of_attempt"),
    [
        ("asks: attempt", Stored(), True),
        ("asks: attempt", Stored("not_fooled"), True),
        ("asks: attempt", Stored("undecided"), False),  # the pattern took too long
        ("asks: attempt", Stored(decided_by="author"), False),  # so that its author said it
        ("asks: attempt", Stored(uid="other-1"), False),  # a file says it
        ("asks: answer", Stored(), False),
        ("reveal: true", Stored(), False),  # an owner's pattern proves nothing by itself
    ],
)
def test_only_what_a_rule_of_this_site_decided_is_not_put_to_a_vote(words, stored, of_attempt):
    config = load_config(PATTERN.replace("V", words))
    assert is_only_attempt_judged(config, stored) is of_attempt
    denies = Vote(verdict="flagged") if of_attempt or stored.outcome == "undecided" else None
    if denies:
        assert find_rejecting_vote(config, stored) == denies


@pytest.mark.parametrize(
    ("words", "asks"),
    [
        ("{}", True),
        ("{asks: answer}", False),
        ("{question: Was it told}", False),  # the words of before are about the answer
        ('{answers: {correct: "no", incorrect: "yes"}}', False),
        ("{asks: attempt, question: Is it fair}", True),
    ],
)
def test_that_a_secret_was_told_is_proved(words, asks):
    config = load_config(SECRET.replace("{V}", words))
    assert is_only_attempt_judged(config, Stored()) is asks
    assert not is_only_attempt_judged(LABELS, Stored())


@pytest.mark.parametrize(
    ("outcome", "confirms"),
    [("fooled", "incorrect"), ("not_fooled", "correct"), ("undecided", None), ("unknown", None)],
)
def test_what_confirms_a_claim_about_the_model(outcome, confirms):
    assert is_about_model(ASKS, outcome)
    assert find_confirming_verdict(ASKS, outcome) == confirms
    assert find_confirming_verdict(LABELS, outcome) == "correct"


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
    assert assess_claim(ASKS, outcome, decision, None, None) == found


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
    assert find_accepting_vote(config, outcome, label) == accepts
    assert find_rejecting_vote(config, Stored(outcome)) == rejects
    for vote, verified in ((accepts, True), (rejects, False)):
        if vote:
            decision = Decision("decided", vote)
            assert assess_claim(config, outcome, decision, label, None)[0] is verified


def test_tags_that_look_alike_are_one():
    assert normalise_tag(" Off\u00a0 TOPIC ") == normalise_tag("off topic") == "off topic"
    for odd in ("", "  ", "a" * 41, "a\u202eb"):
        with pytest.raises(ValueError, match="1 to 40"):
            normalise_tag(odd)


def test_right_answers_are_told_once_the_most_frequent_first():
    typed = [{"answer": "Lund"}, {"answer": " Tarn"}, {"answer": "the tarn."}]
    assert list_right_answers(typed) == ["Tarn", "Lund"]
