"""Forced calls, as clients write them whose structured output is a function's arguments."""

import time
from typing import Any

import orjson
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from serving.errors import BadRequestError
from serving.generation.calls import ForcedCall, find_forced_call
from serving.generation.conversation import Piece, create_conversation
from serving.generation.replies import Reply
from serving.generation.requests import ChatRequest, read_request
from serving.generation.sampling import Sampling

CHAT = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
LABEL = {"type": "object", "properties": {"label": {"enum": ["yes", "no"], "title": "Label"}}}
YES_NO = ('{"label": "yes"}', '{"label": "no"}')
NAMED = {"type": "function", "function": {"name": "Answer"}}


def tool(name: str = "Answer", **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": LABEL, **more}}


@pytest.mark.parametrize(
    ("tools", "choice"),
    [
        ([tool(description="The answer.")], NAMED),  # instructor, LangChain
        ([tool(strict=True)], "required"),  # pydantic-ai
        ([tool("other"), tool()], NAMED),
    ],
)
def test_a_forced_function_is_a_choice(tools: list[Any], choice: Any) -> None:
    asked = read_request(ChatRequest, CHAT | {"tools": tools, "tool_choice": choice, "stop": []})
    assert asked.call == ForcedCall("Answer", YES_NO)
    assert asked.build_sampling().choices == YES_NO


@pytest.mark.parametrize("choice", [None, "none", "auto"])
@pytest.mark.parametrize("tools", [[], [tool()], [tool("a"), tool("b", parameters=None)]])
def test_nothing_is_called_where_nothing_has_to_be(tools: list[Any], choice: object) -> None:
    asked = read_request(ChatRequest, CHAT | {"tools": tools, "tool_choice": choice})
    assert asked.call is None
    assert asked.build_sampling().choices == ()


@pytest.mark.parametrize(
    ("tools", "choice", "place"),
    [
        ([{"type": "custom", "custom": {"name": "x"}}], "auto", "tools.0.type"),
        ([{"type": "function", "function": {}}], None, "tools.0.function.name"),
        ([], "required", "tool_choice"),
        ([], NAMED, "tool_choice"),
        ([tool("a"), tool("b")], "required", "tool_choice"),
        ([tool("a"), tool("b")], NAMED, "tool_choice"),
        ([tool(), tool()], NAMED, "tool_choice"),
        ([tool()], {"type": "function"}, "tool_choice"),
        ([tool()], 5, "tool_choice"),
        ([{"type": "custom", "custom": {"name": "x"}}], "required", "tools.0.type"),
        (["x"], "required", "tools.0.type"),
        ([{"type": "function", "function": {}}], "required", "tools.0.function.name"),
        ([{"type": "function"}], "required", "tools.0.function.name"),
        ([tool(parameters=None)], "required", "tools.0.function.parameters"),
        (
            [tool("a"), tool(parameters={"type": "string"})],
            NAMED,
            "tools.1.function.parameters.enum",
        ),
    ],
)
def test_other_calls_are_refused_at_their_place(tools: list[Any], choice: Any, place: str) -> None:
    with pytest.raises(BadRequestError) as refused:
        find_forced_call(tools, choice)
    assert list(refused.value.fields) == [place]


@pytest.mark.parametrize(
    ("more", "named"),
    [
        (
            {
                "response_format": {
                    "type": "json_schema", "json_schema": {"name": "a", "schema": LABEL},
                }
            },
            "tool_choice",
        ),
        ({"stop": ["x"]}, "stop"),
    ],
)  # fmt: skip
def test_a_call_excludes_what_it_cannot_be_with(more: dict[str, Any], named: str) -> None:
    with pytest.raises(BadRequestError) as refused:
        read_request(ChatRequest, CHAT | {"tools": [tool()], "tool_choice": NAMED, **more})
    assert list(refused.value.fields) == [named]


@pytest.fixture
def reply() -> Reply:
    tokenizer = Tokenizer(WordLevel({"a": 0}, unk_token="a"))
    return Reply("chat.completion", "m", "digest", tokenizer, "Answer")


@pytest.mark.parametrize(("reason", "finish"), [("stop", "tool_calls"), ("length", "length")])
def test_the_answer_is_the_call_whole_and_streamed(reply: Reply, reason: Any, finish: str) -> None:
    one = create_conversation(
        [0], Sampling(9), Tokenizer(WordLevel({"a": 0}, unk_token="a")), frozenset(),
        on_piece=print, deadline=time.monotonic(),
    )  # fmt: skip
    (whole,) = reply.build_body([(one, YES_NO[0], reason)], is_prompt_reported=False)["choices"]
    (call,) = whole["message"]["tool_calls"]
    assert (whole["message"]["content"], whole["finish_reason"]) == (None, finish)
    assert call["function"] == {"name": "Answer", "arguments": YES_NO[0]}
    parts = Piece(YES_NO[0][:4]), Piece(YES_NO[0][4:], reason)
    lines = [
        *reply.build_first_events(),
        *(line for part in parts for line in reply.build_piece_events(part)),
    ]
    deltas = [orjson.loads(line.removeprefix(b"data: "))["choices"][0] for line in lines]
    pieces = [one["delta"]["tool_calls"][0] for one in deltas[:-1]]
    assert (pieces[0]["id"], pieces[0]["function"]["name"]) == (call["id"], "Answer")
    assert "".join(one["function"]["arguments"] for one in pieces) == YES_NO[0]
    assert deltas[-1]["finish_reason"] == finish
