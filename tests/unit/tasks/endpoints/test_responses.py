"""Chat models that are served by /responses, checked against the types of OpenAI's own client."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import Response, ResponseTextDeltaEvent
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from pydantic import TypeAdapter

from tasks.config.components import Component
from tasks.config.field_types.tool_calls import build_message
from tasks.targets.endpoints import chat_routes, openai_chat
from tasks.targets.endpoints.base import CHAT, EndpointConfig, EndpointError
from tasks.targets.endpoints.completions import read_completion
from tasks.targets.endpoints.openai_chat import OpenAIChatEndpoint
from tasks.targets.endpoints.responses import build_response_request
from tasks.targets.endpoints.streams import StreamAssembler, parse_completion
from tasks.targets.endpoints.transport import Transport

from .conftest import Handler, Seen, Server, sentiment

Serve = Callable[[Callable[[Handler, Seen], None]], Server]
ONLY_RESPONSES = "This model is only supported in v1/responses and not in v1/chat/completions."
TEXT = {"type": "output_text", "text": "Half past nine.", "annotations": []}


@pytest.fixture(autouse=True)
def forget_servers() -> Iterator[None]:
    yield
    openai_chat._quirks_by_server.clear()
    chat_routes._urls_without_v1.clear()


def response(*parts: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A response as a server writes it. The client's own type says whether it is one."""
    message = {
        "type": "message", "id": "m1", "role": "assistant", "status": "completed",
        "content": list(parts),
    }  # fmt: skip
    value = {
        "id": "r1", "object": "response", "created_at": 1, "status": "completed",
        "model": "chat-1-2024", "output": [message], "parallel_tool_calls": False,
        "tool_choice": "auto", "tools": [],
        "usage": {
            "input_tokens": 7, "output_tokens": 3, "total_tokens": 10,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }  # fmt: skip
    return Response.model_validate(value | changes).model_dump(mode="json", exclude_none=True)


def event(kind: str, **values: Any) -> bytes:
    data = json.dumps({"type": kind, **values})
    return f"event: {kind}\ndata: {data}\n\n".encode()


def delta(text: str) -> bytes:
    made = ResponseTextDeltaEvent(
        type="response.output_text.delta", delta=text, content_index=0, item_id="m1",
        logprobs=[], output_index=0, sequence_number=1,
    )  # fmt: skip
    return event(**{"kind": made.type, **made.model_dump(exclude={"type"})})


def chat_config(server: Server, path: str = "/v1", **options: Any) -> EndpointConfig:
    return sentiment(f"{server.url}{path}", options={"model": "chat-1", **options})


def ask(config: EndpointConfig) -> Any:
    endpoint = OpenAIChatEndpoint(config, Transport())
    return endpoint.predict([{"text": "fine"}], deadline_seconds=5)[0]


def only_responses(answer: Any) -> Callable[[Handler, Seen], None]:
    """A server without /chat/completions."""

    def behave(handler: Handler, seen: Seen) -> None:
        if seen.path.endswith("/responses"):
            handler.send(answer)
        else:
            handler.send({"detail": "Not Found"}, 404)

    return behave


LABEL = {**TEXT, "text": '{"label": "positive"}'}


@pytest.mark.parametrize(
    ("path", "options"), [("/v1", {"api": "responses"}), ("/v1/responses", {}), ("/v1", {})]
)
def test_a_label_is_asked_for_at_responses(
    serve: Serve, path: str, options: dict[str, str]
) -> None:
    """By the option, by the address that was copied, or since nothing else is served."""
    server = serve(only_responses(response(LABEL)))
    config = chat_config(server, path, instructions="Judge the mood.", **options)
    prediction = ask(config)
    sent = server.seen[-1].body
    assert server.seen[-1].path == "/v1/responses"
    TypeAdapter(ResponseCreateParamsNonStreaming).validate_python(sent)
    assert [turn["role"] for turn in sent["input"]] == ["system", "user"]
    assert sent["store"] is False
    assert sent["text"]["format"]["schema"]["properties"]["label"]["enum"]
    assert (prediction.output, prediction.usage) == ({"label": "positive"}, (7, 3, 1))
    assert prediction.fingerprint["model"] == "chat-1-2024"
    before = len(server.seen)
    ask(config)
    assert len(server.seen) == before + 1  # it is remembered


def test_a_model_that_one_protocol_lacks_is_asked_in_the_other(serve: Serve) -> None:
    def behave(handler: Handler, seen: Seen) -> None:
        if seen.path.endswith("/responses"):
            handler.send(response(LABEL))
        else:
            handler.send({"error": {"message": ONLY_RESPONSES}}, 404)

    server = serve(behave)
    assert ask(chat_config(server)).output == {"label": "positive"}
    with pytest.raises(EndpointError):
        ask(chat_config(server, api="chat"))


def test_a_server_without_either_is_told_as_before(serve: Serve) -> None:
    server = serve(lambda handler, seen: handler.send({"detail": "Not Found"}, 404))
    with pytest.raises(EndpointError) as automatic:
        ask(chat_config(server))
    with pytest.raises(EndpointError) as chosen:
        ask(chat_config(server, api="chat"))
    assert str(automatic.value) == str(chosen.value)
    with pytest.raises(EndpointError) as wrong:
        ask(chat_config(server, api="assistants"))
    assert wrong.value.reason == "misconfigured"


def test_a_parameter_that_is_refused_is_left_out(serve: Serve) -> None:
    def behave(handler: Handler, seen: Seen) -> None:
        if "seed" in seen.body:
            handler.send({"error": {"message": "Unknown parameter: 'seed'."}}, 400)
        else:
            handler.send(response(LABEL))

    prediction = ask(chat_config(serve(behave), api="responses", seed=3))
    assert prediction.fingerprint["adapted"] == "no seed"


REASONING = {"type": "reasoning", "id": "t1", "summary": []}
CALL = {
    "type": "function_call", "id": "c1", "call_id": "c1", "name": "look_up", "arguments": "{}",
}  # fmt: skip
REFUSAL = {"type": "refusal", "refusal": "I cannot help with that."}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (response(REFUSAL), "declined"),
        (response(TEXT, output=[REASONING]), "empty"),
        (response(TEXT, output=[CALL]), "empty"),
        (
            response(
                status="incomplete", incomplete_details={"reason": "max_output_tokens"},
                output=[REASONING],
            ),
            "unfinished",
        ),
        (
            response(status="incomplete", incomplete_details={"reason": "content_filter"}),
            "filtered",
        ),
        (response(status="failed", error={"code": "server_error", "message": "Oh"}), "down"),
        ({"object": "response", "output": "text"}, "rubbish"),
        ({"object": "response", "output": [{"type": "message", "content": 3}]}, "rubbish"),
        ({"object": "response", "output": [3]}, "rubbish"),
    ],
)  # fmt: skip
def test_what_is_no_answer_has_its_reason(answer: Any, reason: str) -> None:
    with pytest.raises(EndpointError) as refused:
        read_completion(parse_completion(json.dumps(answer).encode()))
    assert refused.value.reason == reason


def test_an_answer_that_was_cut_says_so() -> None:
    cut = response(TEXT, status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    completion = read_completion(parse_completion(json.dumps(cut).encode()))
    assert completion == ("Half past nine.", True)


@given(
    texts=st.lists(st.text(min_size=1, alphabet="aé漢 \n"), min_size=1, max_size=4),
    size=st.integers(1, 60),
    is_whole=st.booleans(),
)
def test_a_stream_gives_what_the_whole_answer_gives(
    texts: list[str], size: int, is_whole: bool
) -> None:
    """is_whole: the server sends no pieces, only the response at the end."""
    whole = response({**TEXT, "text": "".join(texts)})
    started = {**whole, "status": "in_progress", "output": []}
    body = event("response.created", response=started)
    body += b"".join(delta(text) for text in texts if not is_whole)
    body += event("response.completed", response=whole)
    heard: list[str] = []
    deltas = StreamAssembler(heard.append)
    for start in range(0, len(body), size):
        deltas.feed(body[start : start + size])
    answer = deltas.answer
    assert answer == parse_completion(body)
    expected = parse_completion(json.dumps(whole).encode())
    assert answer["usage"] == expected["usage"]
    contents = [each["choices"][0]["message"]["content"] for each in (answer, expected)]
    assert contents[0] == contents[1] == "".join(texts)


@pytest.mark.parametrize(
    ("last", "reason"),
    [
        (b"", "down"),
        (event("error", code="rate_limit_exceeded", message="Rate limit reached"), "busy"),
        (
            event("response.failed", response={"error": {"code": "server_error", "message": "x"}}),
            "down",
        ),
    ],
)
def test_a_stream_that_breaks_off_has_its_reason(last: bytes, reason: str) -> None:
    with pytest.raises(EndpointError) as broken:
        parse_completion(delta("Half") + last)
    assert broken.value.reason == reason


def test_a_conversation_is_streamed(serve: Serve) -> None:
    body = delta("Half") + delta(" past.") + event("response.completed", response=response(TEXT))
    server = serve(only_responses(body))
    config = replace(
        chat_config(server, "/v1/responses"), kind=CHAT, labels=None, fields=("messages",),
        output="answer", answer=Component(name="answer", type="long_text"),
    )  # fmt: skip
    heard: list[str] = []
    messages = [{"role": "user", "content": "When?"}]
    endpoint = OpenAIChatEndpoint(config, Transport())
    prediction = endpoint.write({"messages": messages}, heard.append, deadline_seconds=5)
    assert heard == ["Half", "Half past."]
    assert prediction.output == {"answer": "Half past."}
    assert server.seen[-1].body["stream"] is True
    assert server.seen[-1].body["input"] == messages


def test_pictures_and_recordings_keep_their_contents() -> None:
    recording = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
    parts = [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        recording,
    ]
    request = build_response_request(
        {"model": "m", "messages": [{"role": "user", "content": parts}], "logprobs": True}
    )
    assert request["input"][0]["content"] == [
        {"type": "input_text", "text": "What is it?"},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
        recording,
    ]
    assert request["include"] == ["message.output_text.logprobs"]


def test_calls_of_tools_are_items_of_their_own() -> None:
    turns = [
        {"role": "user", "text": "How warm is it?"},
        {
            "role": "assistant",
            "text": "One moment.",
            "calls": [{"id": "c1", "name": "look_up", "arguments": {"city": "Oslo"}}],
        },
        {"role": "tool", "text": "17", "call": "c1"},
    ]
    messages = [build_message(turn) for turn in turns]
    request = build_response_request({"model": "m", "messages": messages})
    TypeAdapter(ResponseCreateParamsNonStreaming).validate_python(request)
    kinds = [item.get("type", item.get("role")) for item in request["input"]]
    assert kinds == ["user", "assistant", "function_call", "function_call_output"]
    assert request["input"][2]["call_id"] == request["input"][3]["call_id"] == "c1"
