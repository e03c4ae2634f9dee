"""Conversations of the language model's kind: what it says, judges and claims."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynabench.adversaries.kinds.base import (
    KINDS,
    PROMPT_FIELDS,
    Claim,
    Exchange,
    ProbeAnswer,
    Prompt,
    SettingError,
    TalkField,
    TalkTask,
    Turn,
)
from dynabench.adversaries.kinds.talks import read_choice, write_transcript

TASK = TalkTask(
    goal="Make it err",
    labels=("",),
    max_turns=4,
    max_chars=40,
    fields=(TalkField("how", "How?", ("rude", "wrong year"), 100),),
    is_claimed=True,
    question="Does it err?",
    wrong="Yes, it errs",
    right="No",
)
BY_RULE = TalkTask("Get it", ("",), 4, 40, (), False, "", "wrong", "right")
UNKNOWN = ProbeAnswer(False, 1.0)


def play(task, *, say, answer, judge=lambda prompt: "", stores=True, **chosen):
    """Return the steps of all attacks. say, judge: reply to prompts; answer: to turns."""
    kind = KINDS["language_model"]
    settings = {one.name: one.default for one in kind.list_settings(is_talk=True)}
    settings |= {"strategies": "one\ntwo", "proposals": 1} | chosen
    steps = []
    for attack in kind.plan_talks(settings, task, Random(0)):
        search, reply = attack.begin({"passage": "The mill closed in 1931."}), None
        while True:
            try:
                step = next(search) if reply is None else search.send(reply)
            except StopIteration:
                break
            steps.append(step)
            if isinstance(step, Turn):
                reply = UNKNOWN._replace(text=answer(step), is_fooled="fooled" in answer(step))
            elif isinstance(step, Claim):
                reply = UNKNOWN._replace(is_fooled=stores)
            elif step.role == "turn":
                reply = UNKNOWN._replace(text=say(len(steps)))
            else:
                reply = UNKNOWN._replace(text=judge(step))
    return steps


def number_turn(number):
    return f"Turn{number} about{number}?"


def find_errors(prompt):
    if prompt.fields["question"] == TASK.question:
        return "Yes." if "1941" in prompt.fields["conversation"].splitlines()[-1] else "No"
    return "Wrong year"


def list_of(steps, kind):
    return [step for step in steps if isinstance(step, kind)]


def test_what_is_judged_wrong_is_claimed_with_its_fields():
    answers = iter(["1931", "1931", "1941", "1941"])  # each is read twice
    steps = play(TASK, say=number_turn, answer=lambda step: next(answers), judge=find_errors)
    [claim] = list_of(steps, Claim)
    assert claim.values == {"how": "wrong year"}
    first, second = list_of(steps, Turn)
    assert claim.exchanges == (Exchange(first.text, "1931"), Exchange(second.text, "1941"))
    assert (first.earlier, second.earlier) == ((), claim.exchanges[:1])
    assert steps[-1] is claim  # the search is over


def test_judging_again_asks_the_same_of_other_answers():
    steps = play(TASK, say=number_turn, answer=lambda step: "1941", judge=find_errors)
    [claim] = list_of(steps, Claim)
    judging = claim.judge([Exchange("When?", "1931")])
    prompt = next(judging)
    assert prompt.fields["conversation"].endswith("1931")
    with pytest.raises(StopIteration) as end:
        judging.send(UNKNOWN._replace(text="No"))
    assert end.value.value is None


def test_a_rule_needs_no_judgement():
    steps = play(BY_RULE, say=number_turn, answer=lambda step: "fooled")
    assert [type(step) for step in steps] == [Prompt, Turn, Claim]
    assert steps[-1].values == {}


def test_a_claim_that_is_not_stored_goes_on():
    steps = play(BY_RULE, say=number_turn, answer=lambda step: "fooled", stores=False, turns=3)
    assert len(list_of(steps, Claim)) == 3
    assert list_of(steps, Prompt)[1].fields["earlier"]


@pytest.mark.parametrize("said", ["", "x" * 41])
def test_what_cannot_be_sent_is_not_sent(said):
    steps = play(BY_RULE, say=lambda number: said, answer=lambda step: "", turns=3)
    assert list_of(steps, Turn) == []
    assert len(steps) == 3


def test_no_conversation_is_longer_than_the_task_allows():
    steps = play(BY_RULE, say=number_turn, answer=lambda step: "no", turns=8)
    assert len(list_of(steps, Turn)) == BY_RULE.max_turns


def test_conversations_begin_in_different_ways():
    steps = play(BY_RULE, say=lambda number: "Same words?", answer=lambda step: "no", proposals=3)
    assert sum(not turn.earlier for turn in list_of(steps, Turn)) == 1


def test_prompts_have_the_fields_of_their_role():
    steps = play(TASK, say=number_turn, answer=lambda step: "1941", judge=find_errors)
    for prompt in list_of(steps, Prompt):
        assert tuple(prompt.fields) == PROMPT_FIELDS[prompt.role]
    assert {prompt.role for prompt in list_of(steps, Prompt)} == {"turn", "judgement"}
    assert "Make it err" in steps[0].fields["goal"]


def test_finds_are_shown_to_later_conversations():
    steps = play(BY_RULE, say=number_turn, answer=lambda step: "fooled", proposals=2)
    first_turn = list_of(steps, Turn)[0]
    assert first_turn.text in list_of(steps, Prompt)[-1].fields["worked"]


@pytest.mark.parametrize(
    ("reply", "choice"),
    [
        ("rude", "rude"),
        ("Rude.", "rude"),
        ("“very rude”", "very rude"),
        ("It is very rude, I think", "very rude"),
        ("ver", "very rude"),
        ("late or rude", ""),
        ("neither", ""),
        ("", ""),
    ],
)
def test_a_reply_names_one_choice(reply, choice):
    assert read_choice(reply, ("rude", "very rude", "late")) == choice


@given(st.lists(st.text(min_size=1), min_size=1, max_size=5), st.text())
def test_a_choice_is_one_of_them_or_none(choices, reply):
    assert read_choice(reply, choices) in {*choices, ""}


def test_a_transcript_has_a_line_for_each_message():
    assert write_transcript([Exchange("Hi?", "Yes."), Exchange("So?", "No.")]).splitlines() == [
        "You: Hi?",
        "Model: Yes.",
        "You: So?",
        "Model: No.",
    ]


def test_settings_are_checked_as_for_texts():
    for wrong in ({"goal": " "}, {"strategies": ""}):
        with pytest.raises(SettingError):
            play(TASK, say=number_turn, answer=lambda step: "", **wrong)


@pytest.mark.parametrize("name", ["rules", "search", "program"])
def test_kinds_that_cannot_talk_plan_nothing(name):
    assert KINDS[name].no_talk_reason
    assert list(KINDS[name].plan_talks({}, TASK, Random(0))) == []
