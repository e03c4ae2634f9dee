"""Convert between the two protocols of chat servers, /chat/completions and /responses.

Requests are built, and answers are read, in the form of /chat/completions. For a server that has
only /responses both are converted here, so that all else is the same for either. Pure, no Django.

Source: OpenAI's API reference, "Responses".
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from tasks.targets.endpoints.answers import expect_object
from tasks.targets.endpoints.base import build_rubbish_error

Payload = Mapping[str, Any]

SAME_PARAMETERS = ("model", "temperature", "seed", "stop", "stream")
"""Parameters that have one name and form in both protocols."""
FINISH_REASONS = {"max_output_tokens": "length", "max_tokens": "length"}
"""Finish reasons of a chat completion, by the reason why a response is incomplete."""
LAST_EVENTS = ("response.completed", "response.incomplete", "response.failed")
"""The types of a stream's last event, which has the whole response."""


def is_response(answer: Mapping[str, Any]) -> bool:
    """Return whether an answer is one of /responses, not a chat completion."""
    return answer.get("object") == "response" or ("output" in answer and "choices" not in answer)


def build_response_request(payload: Payload) -> dict[str, Any]:
    """Return a request to /responses that asks the same as one to /chat/completions."""
    request = {name: payload[name] for name in SAME_PARAMETERS if name in payload}
    request["input"] = list(chain.from_iterable(map(_convert_message, payload["messages"])))
    # By default the server would keep what people wrote.
    request["store"] = False
    limit = payload.get("max_tokens") or payload.get("max_completion_tokens")
    if limit:
        request["max_output_tokens"] = limit
    if payload.get("logprobs"):
        request["include"] = ["message.output_text.logprobs"]
    if schema_format := payload.get("response_format"):
        request["text"] = {"format": {"type": "json_schema", **schema_format["json_schema"]}}
    return request


def _convert_message(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the items of a message: its text, and each call or result of a tool on its own."""
    content = message["content"]
    if message["role"] == "tool":
        call_id = message["tool_call_id"]
        yield {"type": "function_call_output", "call_id": call_id, "output": content}
        return
    if content is not None:
        if not isinstance(content, str):
            content = [_convert_part(part) for part in content]
        yield {"role": message["role"], "content": content}
    for call in message.get("tool_calls", ()):
        yield {"type": "function_call", "call_id": call["id"], **call["function"]}


def _convert_part(part: Mapping[str, Any]) -> dict[str, Any]:
    if part["type"] == "text":
        return {"type": "input_text", "text": part["text"]}
    if part["type"] == "image_url":
        return {"type": "input_image", "image_url": part["image_url"]["url"]}
    # Recordings have the same form in both protocols.
    return dict(part)


def convert_response(answer: Any) -> dict[str, Any]:
    """Return a response as a chat completion. Raises EndpointError if it is not one."""
    response = expect_object(answer, "The answer")
    if response.get("error"):
        return {"error": response["error"]}
    if not isinstance(response.get("output"), list):
        raise build_rubbish_error("The answer has no output.")
    message: dict[str, Any] = {"content": ""}
    logprobs: list[Any] = []
    for item in response["output"]:
        _add_item(message, logprobs, expect_object(item, "An item of the output"))
    choice = {"message": message, "finish_reason": find_finish_reason(response)}
    if logprobs:
        choice["logprobs"] = {"content": logprobs}
    return {**convert_report(response), "choices": [choice]}


def _add_item(message: dict[str, Any], logprobs: list[Any], item: Mapping[str, Any]) -> None:
    """Add an item of a response's output to the message of a completion."""
    kind = item.get("type")
    if kind == "reasoning":
        message["reasoning"] = "…"
    elif kind == "function_call":
        message.setdefault("tool_calls", []).append(item)
    elif kind == "message":
        parts = item.get("content")
        # Some servers write a text where the protocol has a list of parts.
        if isinstance(parts, str):
            parts = [{"type": "output_text", "text": parts}]
        if not isinstance(parts, list):
            raise build_rubbish_error("A message of the output has no parts.")
        for part in parts:
            _add_part(message, logprobs, expect_object(part, "A part of the message"))


def _add_part(message: dict[str, Any], logprobs: list[Any], part: Mapping[str, Any]) -> None:
    if part.get("type") == "refusal":
        message["refusal"] = part.get("refusal")
        return
    text = part.get("text")
    if not isinstance(text, str):
        raise build_rubbish_error("A part of the message has no text.")
    message["content"] += text
    logprobs += part.get("logprobs") or ()


def find_finish_reason(response: Mapping[str, Any]) -> str:
    """Return the finish reason that a chat completion would give for a response."""
    status = str(response.get("status") or "completed")
    if status == "incomplete":
        details = response.get("incomplete_details")
        reason = str(details.get("reason")) if isinstance(details, Mapping) else ""
        return FINISH_REASONS.get(reason, reason or "length")
    return "stop" if status == "completed" else "error"


def convert_report(response: Mapping[str, Any]) -> dict[str, Any]:
    """Return the model and the tokens that a response reports, by their names in a completion."""
    reported_fields = {}
    if isinstance(response.get("model"), str):
        reported_fields["model"] = response["model"]
    usage = response.get("usage")
    if isinstance(usage, Mapping):
        reported_fields["usage"] = {
            "prompt_tokens": usage.get("input_tokens"),
            "completion_tokens": usage.get("output_tokens"),
        }
    return reported_fields
