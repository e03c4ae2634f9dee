"""Calls of tools in conversations: `calls` of an assistant's turn, and turns of the role `tool`.

A call is `{id, name, arguments}`. A `tool` turn has the result as its text, and the id of the call
in `call`. Chat models read and write the same as `tool_calls` and `tool_call_id`. Pure.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tasks.config.values import FORBIDDEN_CHARACTERS

MAX_CALLS = 50
"""The maximum number of calls in one turn."""
MAX_NAME_CHARS = 200
_CALL_KEYS = {"id", "name", "arguments"}

Turn = Mapping[str, Any]


def find_call_error(turns: Sequence[Turn]) -> str:
    """Return what is wrong with the calls and results of a conversation; "" if nothing is.

    turns: each an object with a valid role. The message begins with the turn's number.
    """
    known_ids: set[str] = set()
    for number, turn in enumerate(turns, 1):
        if turn["role"] == "tool":
            if turn.get("call") not in known_ids:
                return f"turn {number}: call must be the id of a call in an earlier turn"
        elif "call" in turn:
            return f"turn {number}: only a tool's turn answers a call"
        if "calls" not in turn:
            continue
        if turn["role"] != "assistant":
            return f"turn {number}: only the assistant calls tools"
        if error := _find_list_error(turn["calls"], known_ids):
            return f"turn {number}: {error}"
        known_ids |= {call["id"] for call in turn["calls"]}
    return ""


def _find_list_error(calls: Any, known_ids: set[str]) -> str:
    if not isinstance(calls, list | tuple) or not 1 <= len(calls) <= MAX_CALLS:
        return f"calls must be a list of 1 to {MAX_CALLS} calls"
    ids = set(known_ids)
    for call in calls:
        if not isinstance(call, Mapping) or set(call) != _CALL_KEYS:
            return "a call needs id, name and arguments"
        for key in ("id", "name"):
            if not isinstance(call[key], str) or not 1 <= len(call[key]) <= MAX_NAME_CHARS:
                return f"the {key} of a call must be a text of 1 to {MAX_NAME_CHARS} characters"
        if call["id"] in ids:
            return f"two calls have the id {call['id']}"
        ids.add(call["id"])
        if not isinstance(call["arguments"], str | Mapping):
            return "the arguments of a call must be an object or a text"
        if FORBIDDEN_CHARACTERS.search(call["name"] + format_arguments(call)):
            return "a call contains a control character; delete it"
    return ""


def format_arguments(call: Mapping[str, Any]) -> str:
    """Return the arguments of a call as a text, usually JSON."""
    arguments = call["arguments"]
    if isinstance(arguments, str):
        return arguments
    return json.dumps(arguments, ensure_ascii=False)


def build_message(turn: Turn) -> dict[str, Any]:
    """Return a turn as a message of /chat/completions."""
    message: dict[str, Any] = {"role": turn["role"], "content": turn["text"]}
    if turn["role"] == "tool":
        message["tool_call_id"] = turn["call"]
    if calls := turn.get("calls"):
        # Models learnt that a message with calls and no text has none, not an empty one.
        message["content"] = turn["text"] or None
        message["tool_calls"] = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": format_arguments(call)},
            }
            for call in calls
        ]
    return message


def read_message(message: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a message of /chat/completions as a turn; None if it is not one that we can store."""
    content = message.get("content")
    turn: dict[str, Any] = {"role": message.get("role"), "text": content or ""}
    if not isinstance(turn["text"], str):
        return None
    if turn["role"] == "tool":
        turn["call"] = message.get("tool_call_id")
    if message.get("tool_calls"):
        calls = _read_calls(message["tool_calls"])
        if calls is None:
            return None
        turn["calls"] = calls
    return turn


def _read_calls(tool_calls: Any) -> list[dict[str, Any]] | None:
    if not isinstance(tool_calls, list):
        return None
    # Calls are kept as they came. `find_call_error` says what is wrong with them.
    calls = []
    for tool_call in tool_calls:
        function = tool_call.get("function") if isinstance(tool_call, Mapping) else None
        if not isinstance(function, Mapping):
            return None
        arguments = parse_arguments(function.get("arguments", ""))
        calls.append(
            {"id": tool_call.get("id"), "name": function.get("name"), "arguments": arguments}
        )
    return calls


def parse_arguments(arguments: Any) -> Any:
    """Return arguments as an object if they are the JSON of one, otherwise unchanged."""
    # Models also write arguments that are no JSON. What they wrote is kept.
    try:
        value = json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        return arguments
    return value if isinstance(value, Mapping) else arguments


def describe_calls(turn: Turn) -> list[str]:
    """Return a line for each call of a turn: `look_up: {"city": "Oslo"}`."""
    return [f"{call['name']}: {format_arguments(call)}" for call in turn.get("calls", ())]


def find_tool_names(turns: Sequence[Any]) -> dict[str, str]:
    """Return the names of the called tools by the ids of the calls."""
    # The result names only the call's id, which people cannot read.
    names = {}
    for turn in turns:
        if isinstance(turn, Mapping):
            for call in turn.get("calls") or ():
                names[call["id"]] = call["name"]
    return names
