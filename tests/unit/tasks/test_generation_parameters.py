"""Parameters that are off are passed over, whoever sends them; those with an effect are refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.errors import BadRequestError
from serving.generation.parameters import (
    NEUTRAL_PARAMETERS,
    NEUTRAL_VALUES,
    select_served_parameters,
)
from serving.generation.requests import ChatRequest, CompletionRequest, read_request
from serving.generation.responses import ResponsesRequest
from serving.generation.sampling import Sampling

CHAT = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
TEXT = {"model": "m", "prompt": "Hello"}
BODIES: dict[type[ChatRequest | CompletionRequest], dict[str, Any]] = {
    ChatRequest: CHAT,
    CompletionRequest: TEXT,
}
KINDS = pytest.mark.parametrize("kind", BODIES)

# Every parameter of the reference of chat completions, with a value that asks for something.
EFFECTIVE = {
    "audio": {"voice": "alloy", "format": "wav"},
    "frequency_penalty": 0.5,
    "function_call": {"name": "f"},
    "logit_bias": {"50256": -100},
    "modalities": ["text", "audio"],
    "moderation": {"model": "omni-moderation-latest"},
    "n": 2,
    "presence_penalty": 0.5,
    "reasoning_effort": "low",
    "service_tier": "priority",
    "store": True,
    "tool_choice": "required",
    "verbosity": "low",
    "web_search_options": {"search_context_size": "low"},
    # of other servers
    "best_of": 3,
    "bad_words": ["no"],
    "chat_template": "{{ messages }}",
    "chat_template_kwargs": {"enable_thinking": False},
    "continue_final_message": True,
    "documents": [{"text": "x"}],
    "guided_choice": ["a", "b"],
    "guided_regex": "a|b",
    "length_penalty": 2.0,
    "min_p": 0.1,
    "min_tokens": 5,
    "repetition_penalty": 1.1,
    "skip_special_tokens": False,
    "stop_token_ids": [7],
    "structured_outputs": {"choice": ["a", "b"]},
    "suffix": "end",
    "temprature": 1,
    "top_k": 5,
    "use_beam_search": True,
}
SERVED = {
    "max_completion_tokens": (9, Sampling(9)),
    "max_tokens": (9, Sampling(9)),
    "temperature": (0.5, Sampling(512, temperature=0.5)),
    "top_p": (0.5, Sampling(512, top_p=0.5)),
    "seed": (3, Sampling(512, seed=3)),
    "stop": (["a"], Sampling(512, stop=("a",))),
    "logprobs": (True, Sampling(512, logprobs=0)),
    "ignore_eos": (True, Sampling(512, is_end_ignored=True)),
}


@KINDS
@pytest.mark.parametrize(
    "name", sorted({*EFFECTIVE, *SERVED, *NEUTRAL_VALUES, *NEUTRAL_PARAMETERS})
)
@pytest.mark.parametrize("value", [None, [], {}])
def test_null_and_empty_parameters_change_nothing(
    kind: type[ChatRequest | CompletionRequest], name: str, value: object
) -> None:
    if name in kind.model_fields and value is not None and (name, value) != ("tools", []):
        return  # a parameter that is served has a kind of its own
    body = BODIES[kind]
    assert (
        read_request(kind, body | {name: value}).build_sampling()
        == read_request(kind, body).build_sampling()
    )


@pytest.mark.parametrize(
    ("name", "value"), [(n, v) for n, values in NEUTRAL_VALUES.items() for v in values]
)
def test_defaults_change_nothing(name: str, value: object) -> None:
    assert read_request(ChatRequest, CHAT | {name: value}) == read_request(ChatRequest, CHAT)


@pytest.mark.parametrize("name", EFFECTIVE)
def test_a_value_with_an_effect_is_refused_by_its_name(name: str) -> None:
    with pytest.raises(BadRequestError) as refused:
        read_request(ChatRequest, CHAT | {name: EFFECTIVE[name]})
    assert list(refused.value.fields) == [name]


@pytest.mark.parametrize("name", SERVED)
def test_a_served_value_is_honoured(name: str) -> None:
    value, sampling = SERVED[name]
    assert read_request(ChatRequest, CHAT | {name: value}).build_sampling() == sampling


@KINDS
@given(
    st.dictionaries(
        st.sampled_from(sorted(NEUTRAL_PARAMETERS)), st.text() | st.booleans(), min_size=1
    )
)
def test_notes_change_nothing(
    kind: type[ChatRequest | CompletionRequest], notes: dict[str, object]
) -> None:
    assert read_request(kind, BODIES[kind] | notes) == read_request(kind, BODIES[kind])


@given(st.text(min_size=1), st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text())
def test_an_unknown_parameter_is_off_or_refused_by_its_name(name: str, value: object) -> None:
    known = {*ChatRequest.model_fields, *NEUTRAL_VALUES, *NEUTRAL_PARAMETERS}
    if name in known:
        return
    with pytest.raises(BadRequestError) as refused:
        select_served_parameters({name: value}, ChatRequest.model_fields)
    assert list(refused.value.fields) == [name]
    assert select_served_parameters({name: None}, ChatRequest.model_fields) == {}


@pytest.mark.parametrize(
    ("offer", "choice"),
    [
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tool_choice"),
        ({"functions": [{"name": "f"}]}, "function_call"),
    ],
)
@pytest.mark.parametrize("value", [None, "none", "auto"])
def test_what_need_not_be_called_changes_nothing(
    offer: dict[str, Any], choice: str, value: object
) -> None:
    asked = read_request(ChatRequest, CHAT | offer | {choice: value})
    assert (asked.call, asked.build_sampling()) == (None, Sampling(512))
    with pytest.raises(BadRequestError):
        read_request(ChatRequest, CHAT | offer | {choice: {"name": "f"}})


@pytest.mark.parametrize(("name", "value"), [("n", True), ("store", 0), ("min_p", False)])
def test_a_switch_is_no_number(name: str, value: object) -> None:
    with pytest.raises(BadRequestError):
        read_request(ChatRequest, CHAT | {name: value})


@pytest.mark.parametrize("seed", [-1, -(2**63), 2**63 - 1])
def test_any_whole_number_is_a_seed(seed: int) -> None:
    drawn = read_request(ChatRequest, CHAT | {"seed": seed}).build_sampling().seed
    assert drawn is not None
    assert drawn >= 0


CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}


@pytest.mark.parametrize("content", [{"content": None}, {"content": ""}, {}])
def test_calls_of_tools_and_their_results_become_texts(content: dict[str, object]) -> None:
    turns = [
        {"role": "user", "content": "How warm?"},
        {"role": "assistant", **content, "tool_calls": [CALL, CALL | {"id": "c2"}]},
        {"role": "tool", "tool_call_id": "c1", "content": "17"},
        {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "18"}]},
    ]
    assert read_request(ChatRequest, CHAT | {"messages": turns}).list_messages() == [
        {"role": "user", "content": "How warm?"},
        {"role": "assistant", "content": 'f({"a": 1})\nf({"a": 1})'},
        {"role": "user", "content": "f: 17\n\nf: 18"},
    ]
    # Without tools, turns of the same role stay apart.
    asked = CHAT | {"messages": turns[:1] * 2}
    assert read_request(ChatRequest, asked).list_messages() == turns[:1] * 2


def test_responses_take_calls_and_results_as_items() -> None:
    call = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}", "id": "fc_1"}
    result = {"type": "function_call_output", "call_id": "c1"}
    for output in ("17", [{"type": "input_text", "text": "17"}]):
        items = [{"role": "user", "content": "How warm?"}, call, result | {"output": output}]
        asked = read_request(ResponsesRequest, {"model": "m", "input": items}).to_chat()
        assert asked.list_messages() == [
            {"role": "user", "content": "How warm?"},
            {"role": "assistant", "content": "f({})"},
            {"role": "user", "content": "f: 17"},
        ]


@pytest.mark.parametrize(
    ("item", "named"),
    [
        ({"type": "function_call", "call_id": "c1", "name": "f"}, "arguments"),
        ({"type": "function_call_output", "output": "17"}, "call_id"),
        ({"type": "function_call_output", "call_id": "c1", "output": 17}, "output"),
        ({"type": "reasoning", "summary": []}, "type"),
        ({"type": ["function_call"]}, "type"),
    ],
)
def test_items_that_cannot_be_read_are_named(item: dict[str, object], named: str) -> None:
    with pytest.raises(BadRequestError) as refused:
        read_request(ResponsesRequest, {"model": "m", "input": [item]})
    assert list(refused.value.fields) == [f"input.0.{named}"]


@pytest.mark.parametrize(
    ("turn", "text"),
    [
        ({"role": "assistant", "content": None, "refusal": "No."}, "No."),
        ({"role": "assistant", "content": None, "tool_calls": None, "audio": None}, ""),
        ({"role": "assistant", "content": "a", "refusal": None, "annotations": []}, "a"),
        ({"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}, "No."),
        ({"role": "user", "content": "a", "name": "bob", "tool_calls": []}, "a"),
        ({"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {}}]}, "a"),
    ],
)
def test_turns_that_clients_send_back_are_read(turn: dict[str, object], text: str) -> None:
    read_turn = read_request(ChatRequest, CHAT | {"messages": [turn]}).messages[0]
    assert read_turn.plain_message == {"role": turn["role"], "content": text}


@pytest.mark.parametrize(
    ("turn", "named"),
    [
        ({"role": "user", "content": None}, "content"),
        (
            {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
            "tool_calls.0.function",
        ),
        ({"role": "user", "content": "", "tool_calls": [CALL]}, "tool_calls"),
        ({"role": "tool", "content": "17"}, "tool_call_id"),
        ({"role": "function", "content": "17"}, "role"),
        ({"role": "user", "content": [{"type": "text"}]}, "content.0.text"),
        ({"role": "user", "content": [{"type": "image_url", "text": "x"}]}, "content.0.type"),
        ({"role": "user", "content": ["x"]}, "content.0"),
        ({"role": "user", "content": 5}, "content"),
    ],
)
def test_turns_that_cannot_be_read_are_named_once(turn: dict[str, object], named: str) -> None:
    with pytest.raises(BadRequestError) as refused:
        read_request(ChatRequest, CHAT | {"messages": [turn]})
    assert list(refused.value.fields) == [f"messages.0.{named}"]


@pytest.mark.parametrize(
    ("options", "usage"),
    [
        (None, "never"),
        ({}, "never"),
        ({"include_usage": None, "include_obfuscation": False}, "never"),
        ({"include_usage": True}, "last"),
        ({"include_usage": True, "continuous_usage_stats": True}, "always"),
    ],
)
def test_streams_tell_tokens_where_they_are_asked(options: object, usage: str) -> None:
    assert (
        read_request(ChatRequest, CHAT | {"stream": True, "stream_options": options}).usage_reports
        == usage
    )
