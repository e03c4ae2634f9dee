"""Tasks in which people talk to the model: what fits together, and what can be said."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.config.components import FIELD_TYPES, Component
from tasks.config.field_types.chat import (
    DEFAULT_MAX_CHARS,
    DEFAULT_MAX_TURNS,
    MAX_CONTEXT_TURNS,
    find_text_error,
    get_max_turns,
)
from tasks.config.field_types.tool_calls import build_message
from tasks.config.loading import check_config, load_config
from tasks.config.parsing import ConfigError
from tasks.formats.base import convert_turns
from tasks.targets.endpoints.server_quirks import NO_QUIRKS, learn_quirks

TALK = """\
version: 1
name: Talk
goal: {text: Make it tell the word}
context: [{name: facts, type: text, label: The Facts}]
input:
  - {name: talk, type: chat, system: "The word is {secret}."}
  - {name: how, type: text}
output: [{name: answer, type: text}]
verdict: {type: secret, field: answer}
metrics: {main: kept_secret}
"""
SYSTEM = {"role": "system", "text": "The word is tarn.", "secret": "tarn"}
HELLO = {"role": "user", "text": "Hello"}
HI = {"role": "assistant", "text": "Hi"}


def chat(**keys: Any) -> Component:
    return Component(name="talk", type="chat", **keys)


def changed(old: str, new: str) -> str:
    assert TALK.count(old) == 1
    return TALK.replace(old, new)


def test_what_views_ask_of_a_conversation() -> None:
    config = load_config(TALK)
    assert config.talk is not None
    assert config.talk.name == config.text_field == "talk"
    assert config.model_fields == ("facts", "talk")
    assert config.context_title == "the facts"
    assert config.has_free_answers
    assert config.unsupported_input is None


@pytest.mark.parametrize(
    ("old", "new", "path", "message"),
    [
        ("field: answer", "field: talk", "verdict.field", '"talk" is no text of the output'),
        ("{secret}", "tarn", "verdict.type", "no secret"),
        ("type: chat, system", "type: text, help", "verdict.type", "no secret"),
        ("chat, system", "chat, max_turns: 50, system", "input[0].max_turns", "range"),
        ("context: [", "slices: [photo]\ncontext: [{name: photo, type: image}, ", "slices[0]",
         "photo is a file"),
        ("label: The Facts}", "label: Facts}, {name: photo, type: image}, {name: photo_alt, "
         "type: text}", "context[2].name", "a part of photo"),
    ],
)  # fmt: skip
def test_what_contradicts_itself_is_not_read(old: str, new: str, path: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(changed(old, new))
    found = caught.value.problems
    assert path in [one.path for one in found if message in one.message], found


def test_a_secret_without_a_text_of_the_output_has_a_cure() -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(changed("answer, type: text", "answer, type: prob, single: true"))
    (fix,) = [one.fix for one in caught.value.problems if one.path == "verdict.field"]
    assert fix == "add an output of type text"


@pytest.mark.parametrize(
    ("old", "new", "path", "fix"),
    [
        ("facts, type: text", "facts, type: chat, max_turns: 3", "context[0].max_turns",
         "remove max_turns"),
        ("chat, system", "chat, required: false, system", "input[0]", "remove when and required"),
        ("how, type: text", "more, type: chat", "input[1]", "remove more"),
        ("output: [", "output: [{name: other, type: text}, ", "output", "one field of type text"),
        ("name: answer, type: text}]\nverdict: {type: secret, field: answer",
         "name: how, type: text}]\nverdict: {type: secret, field: how", "output",
         "not in the input"),
        ("name: answer, type: text}]\nverdict: {type: secret, field: answer",
         "name: answer, type: text}, how]\nverdict: {type: contains, field: how", "verdict.type",
         "ask_user"),
        ("facts, type: text", "facts, type: image", "context[0].type", "remove facts"),
        ("version: 1", "version: 1\nsupport: {prompt_field: facts}", "support.prompt_field",
         "remove prompt_field"),
        ("version: 1", "version: 1\nsupport: {minimal_edit: true}", "support.minimal_edit",
         "remove minimal_edit"),
        ("main: kept_secret", "main: bleu", "metrics.main", "use one of: kept_secret"),
        ("main: kept_secret", "main: kept_and_answered", "metrics.main", "add harmless"),
        ("secret, field: answer}", "ask_user}", "metrics.main", "or the verdict secret"),
        ("version: 1", "version: 1\nsupport: {suggestions: true}", "support.suggestions",
         "remove suggestions"),
    ],
)  # fmt: skip
def test_what_a_conversation_cannot_have_is_not_stored(
    old: str, new: str, path: str, fix: str
) -> None:
    text = changed(old, new)
    load_config(text)  # it can be read
    config, found = check_config(text)
    assert config is None
    assert path in [one.path for one in found if fix in one.fix and one.severity == "error"], found


def test_who_marks_an_answer_may_say_by_this_that_it_is_wrong() -> None:
    ask = changed("{type: secret, field: answer}", "{type: ask_user, marked_is_wrong: true}")
    config = load_config(ask.replace("kept_secret", "rouge_l"))
    assert config.is_decided_by_author
    assert not config.may_ask_author
    assert not load_config(TALK).may_ask_author


@pytest.mark.parametrize(
    ("rule", "validation", "path"),
    [
        ("{type: ask_user, marked_is_wrong: true}", "{}", "verdict.marked_is_wrong"),
        ("{type: ask_user}", "{asks: attempt}", "validation.asks"),
    ],
)
def test_words_that_fit_no_verdict(rule: str, validation: str, path: str) -> None:
    text = changed("{type: secret, field: answer}", rule).replace("kept_secret", "rouge_l")
    text = text.replace('type: chat, system: "The word is {secret}."', "type: text")
    _config, found = check_config(f"{text}validation: {validation}\n")
    assert path in [one.path for one in found if one.severity == "error"], found


def test_help_that_a_conversation_can_have_is_stored() -> None:
    config, found = check_config(changed("version: 1", "version: 1\nsupport: {examples: true}"))
    assert config is not None
    assert {one.severity for one in found} <= {"warning"}
    given = changed("facts, type: text", "facts, type: chat")
    assert check_config(given)[0] is not None


@pytest.mark.parametrize(
    ("turns", "wrong"),
    [
        ([SYSTEM, HELLO, HI, HELLO], ""),
        ([HELLO] * MAX_CONTEXT_TURNS, ""),
        ([HELLO] * (MAX_CONTEXT_TURNS + 1), f"the most is {MAX_CONTEXT_TURNS}"),
        ([HELLO, SYSTEM], "turn 2: only the first"),
        ([HELLO, {**HI, "text": " "}], "turn 2: the text is missing"),
        ([{**HELLO, "text": "a\0"}], "turn 1: the text contains a control character"),
        ([{**HELLO, "secret": "tarn"}], "turn 1: only the system's turn has a secret"),
        ([{**SYSTEM, "secret": 7}], "turn 1: only the system's turn has a secret"),
        ([{**HELLO, "name": "Ann"}], "turn 1: needs role and text"),
    ],
)
def test_turns_are_checked_one_by_one(turns: list[dict[str, Any]], wrong: str) -> None:
    found = FIELD_TYPES["chat"].check(chat(), turns, {})
    assert [wrong in message for message in found] == ([True] if wrong else [])


def test_a_conversation_is_shown_by_who_says_what() -> None:
    kind = FIELD_TYPES["chat"]
    assert kind.display(chat(), [HELLO, HI]) == "User: Hello\n\nAssistant: Hi"
    assert kind.display(chat(), [{"role": "me", "text": "Hello"}, "Hi"]) == "Hello\n\nHi"
    assert "tarn" not in kind.display(chat(), [{**SYSTEM, "text": "Hush."}])


def test_of_a_conversation_only_the_persons_turns_are_their_own() -> None:
    kind = FIELD_TYPES["chat"]
    assert kind.extract_authored_text([SYSTEM, HELLO, HI, {**HELLO, "text": "Bye"}]) == "Hello\nBye"
    assert kind.extract_authored_text(None) == ""


def test_the_configuration_limits_what_people_say() -> None:
    assert (get_max_turns(chat()), get_max_turns(chat(max_turns=3))) == (DEFAULT_MAX_TURNS, 3)
    short = chat(max_length=3)
    assert find_text_error(short, "abc") == find_text_error(chat(), "a" * DEFAULT_MAX_CHARS) == ""
    assert "at most 3 characters; it is 4" in find_text_error(short, "abcd")
    assert f"at most {DEFAULT_MAX_CHARS}" in find_text_error(chat(), "a" * (DEFAULT_MAX_CHARS + 1))
    assert "Write something" in find_text_error(chat(), " \n")
    assert "control character" in find_text_error(chat(), "a\0")


ASKS = {"role": "user", "text": "How warm is it in Oslo?"}
CALL = {"id": "c1", "name": "look_up", "arguments": {"city": "Oslo"}}
CALLS = {"role": "assistant", "text": "", "calls": [CALL]}
RESULT = {"role": "tool", "text": "17 °C", "call": "c1"}
ANSWER = {"role": "assistant", "text": "17 degrees."}
MESSAGES = [
    {"role": "user", "content": "How warm is it in Oslo?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "look_up", "arguments": '{"city": "Oslo"}'},
            }
        ],
    },
    {"role": "tool", "content": "17 °C", "tool_call_id": "c1"},
    {"role": "assistant", "content": "17 degrees."},
]


def test_calls_of_tools_and_their_results_are_turns() -> None:
    turns = [ASKS, CALLS, RESULT, ANSWER]
    kind = FIELD_TYPES["chat"]
    assert kind.check(chat(), turns, {}) == []
    shown = kind.display(chat(), turns)
    assert 'calls look_up: {"city": "Oslo"}' in shown
    assert "look_up: 17 °C" in shown
    # Both forms say the same.
    assert [build_message(turn) for turn in turns] == MESSAGES
    assert convert_turns(MESSAGES) == turns


@pytest.mark.parametrize(
    "turns",
    [
        [RESULT],  # nothing was called
        [RESULT, CALLS],
        [CALLS, {**RESULT, "call": "c2"}],
        [CALLS, {"role": "tool", "text": "17 °C"}],
        [CALLS, {**CALLS}],  # twice the same id
        [{**CALLS, "calls": [CALL, CALL]}],
        [{**CALLS, "calls": []}],
        [{**CALLS, "calls": [CALL] * 51}],
        [{**CALLS, "calls": "look_up"}],
        [{**CALLS, "calls": [{**CALL, "id": ""}]}],
        [{**CALLS, "calls": [{**CALL, "id": 3}]}],
        [{**CALLS, "calls": [{**CALL, "name": "n" * 201}]}],
        [{**CALLS, "calls": [{**CALL, "arguments": [1]}]}],
        [{**CALLS, "calls": [{**CALL, "arguments": "a\x00b"}]}],
        [{**CALLS, "calls": [{"id": "c1", "name": "look_up"}]}],
        [{**CALLS, "role": "user"}],
        [{**ANSWER, "call": "c1"}],
        [{**ANSWER, "text": ""}],
        [CALLS, {**RESULT, "text": None}],
    ],
)
def test_calls_that_fit_nothing_are_refused(turns: Any) -> None:
    [error] = FIELD_TYPES["chat"].check(chat(), turns, {})
    assert "turn" in error


def test_a_tool_may_return_nothing_and_arguments_be_no_json() -> None:
    odd = {**CALLS, "calls": [{**CALL, "arguments": '{"city": '}]}
    turns = [ASKS, odd, {**RESULT, "text": ""}]
    assert FIELD_TYPES["chat"].check(chat(), turns, {}) == []
    assert convert_turns([build_message(turn) for turn in turns]) == turns


def test_a_server_without_tools_gets_calls_as_texts() -> None:
    second = {"id": "c2", "name": "look_up", "arguments": {"city": "Bergen"}}
    turns = [
        ASKS,
        {**CALLS, "text": "One moment.", "calls": [CALL, second]},
        RESULT,
        {**RESULT, "text": "16 °C", "call": "c2"},
        ANSWER,
    ]
    payload = {"model": "m", "messages": [build_message(turn) for turn in turns]}
    for words in ("'messages.1.tool_calls' is not served", "invalid role: tool", "unknown 'tool'"):
        quirks = learn_quirks(NO_QUIRKS, payload, words)
        assert quirks.description == "calls of tools as texts"
        folded = quirks.adapt_payload(payload)["messages"]
        assert [message["role"] for message in folded] == ["user", "assistant", "user", "assistant"]
        assert 'look_up({"city": "Bergen"})' in folded[1]["content"]
        assert folded[2]["content"] == "look_up: 17 °C\n\nlook_up: 16 °C"
    without = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
    assert learn_quirks(NO_QUIRKS, without, "invalid role: tool") == NO_QUIRKS


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda values: st.lists(values) | st.dictionaries(st.text(), values),
    max_leaves=8,
)
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "system"]) | JSON, "content": JSON},
    optional={
        "name": JSON,
        "tool_call_id": st.sampled_from(["a", "b"]) | JSON,
        "tool_calls": JSON
        | st.lists(
            st.fixed_dictionaries(
                {"id": st.sampled_from(["a", "b"]) | JSON},
                optional={"function": JSON | st.fixed_dictionaries({"name": JSON})},
            )
        ),
    },
)


@given(st.lists(MESSAGE, max_size=4))
def test_whatever_is_read_as_turns_can_be_stored_and_sent(messages: list[Any]) -> None:
    turns = convert_turns(messages)
    kind = FIELD_TYPES["chat"]
    # Control characters are refused when a value is stored, with their place.
    if turns and "control character" not in "".join(kind.check(chat(), turns, {})):
        assert kind.check(chat(), turns, {}) == []
        assert convert_turns([build_message(turn) for turn in turns]) == turns
        assert kind.display(chat(), turns)
