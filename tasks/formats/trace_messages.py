"""Messages of models in the forms of their makers and tracers. Pure."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.config.field_types.tool_calls import parse_arguments
from tasks.formats.base import LeftOutCounts
from tasks.line_files import BadRow

ROLES: Mapping[str, str] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "tool": "tool",
    "function": "tool",
}
TEXT_TYPES = ("text", "input_text", "output_text")
CALL_TYPES = ("tool_call", "tool_use", "function_call")
RESULT_TYPES = ("tool_call_response", "tool_result")
THOUGHT_TYPES = ("reasoning", "thinking", "redacted_thinking")
THOUGHTS = "thoughts of models"


@dataclass(frozen=True, slots=True)
class Message:
    """A message: who says it, its text and calls.

    calls: objects with id, name and arguments; an id may be None. call: the id of the call that a
    tool's message answers, if known. name: the tool's name, if known.
    """

    role: str
    text: str = ""
    calls: Sequence[Mapping[str, Any]] = ()
    call: str = ""
    name: str = ""


class MessageReader:
    """A reader for messages. Errors name the span; what is left out is counted."""

    def __init__(self, left_out: LeftOutCounts) -> None:
        self._left_out = left_out

    def read_list(self, value: Any, role: str, location: str) -> list[Message]:
        """Return messages given as a list, one message, or a text; the texts in `role`.

        A text may be the JSON of messages. Raises BadRow.
        """
        value = _parse_json_text(value)
        if value is None or value == "":
            return []
        if isinstance(value, str):
            return [Message(role, value)]
        if isinstance(value, Mapping):
            return self._read_object(value, role, location)
        if not isinstance(value, list):
            raise BadRow(f"{location}: the messages are {json.dumps(value)}; give a list or a text")
        messages: list[Message] = []
        # The parts of one message, without a message around them.
        if value and all(isinstance(part, Mapping) and _is_part(part) for part in value):
            return list(self._read_message({"role": role, "content": value}, location))
        for item in value:
            if isinstance(item, str):
                messages.append(Message(role, item))
            elif isinstance(item, Mapping):
                messages += self._read_object(item, role, location)
            else:
                raise BadRow(f"{location}: a message is {json.dumps(item)}; give an object")
        return messages

    def _read_object(self, value: Mapping[str, Any], role: str, location: str) -> list[Message]:
        # A request as servers get it.
        if isinstance(value.get("messages"), list):
            return self.read_list(value["messages"], role, location)
        # A completion as servers answer it.
        if isinstance(value.get("choices"), list) and value["choices"]:
            first = value["choices"][0]
            if isinstance(first, Mapping) and isinstance(first.get("message"), Mapping):
                return self._read_object(first["message"], role, location)
        # Frameworks name the role `type`.
        if "role" in value or str(value.get("type")) in ROLES:
            return list(self._read_message(value, location))
        if {"content", "parts"} & value.keys() or value.get("tool_calls"):
            return list(self._read_message({**value, "role": role}, location))
        return [Message(role, json.dumps(value, ensure_ascii=False))]

    def _read_message(self, value: Mapping[str, Any], location: str) -> Iterator[Message]:
        given_role = value.get("role", value.get("type"))
        role = ROLES.get(given_role) if isinstance(given_role, str) else None
        if role is None:
            raise BadRow(
                f"{location}: a message has the role {json.dumps(given_role)}; roles are "
                f"{', '.join(ROLES)}"
            )
        name = value.get("name") if isinstance(value.get("name"), str) else ""
        content = value.get("parts", value.get("content"))
        texts, calls, results = self._read_content(content, location)
        calls += self._read_calls(value, location)
        call = value.get("tool_call_id", value.get("id") if role == "tool" else "")
        for result_call, text in results:
            yield Message("tool", text, call=result_call)
        text = "\n".join(texts)
        if role == "tool":
            if not results:
                yield Message("tool", text, call=_read_id(call, location), name=str(name or ""))
            return
        # Results alone are no message of the person who passes them on.
        if texts or calls or not results:
            yield Message(role, text, calls=tuple(calls))

    def _read_content(
        self, content: Any, location: str
    ) -> tuple[list[str], list[dict[str, Any]], list[tuple[str, str]]]:
        """Return the texts, the calls, and the results with their calls of a message's content."""
        texts: list[str] = []
        calls: list[dict[str, Any]] = []
        results: list[tuple[str, str]] = []
        if content is None:
            return texts, calls, results
        if isinstance(content, str | Mapping):
            content = [content]
        if not isinstance(content, list):
            raise BadRow(f"{location}: the content is {json.dumps(content)}; give a text or parts")
        for part in content:
            if isinstance(part, str):
                texts.append(part)
            elif isinstance(part, Mapping):
                self._read_part(part, texts, calls, results, location)
            else:
                raise BadRow(f"{location}: a part is {json.dumps(part)}; give an object")
        return texts, calls, results

    def _read_part(
        self,
        part: Mapping[str, Any],
        texts: list[str],
        calls: list[dict[str, Any]],
        results: list[tuple[str, str]],
        location: str,
    ) -> None:
        """Add a part of a message to its texts, calls or results. Raises BadRow."""
        kind = part.get("type", "text")
        if kind in TEXT_TYPES:
            text = part.get("content", part.get("text"))
            if not isinstance(text, str):
                raise BadRow(f"{location}: a part of the type {kind} has no text")
            texts.append(text)
        elif kind in CALL_TYPES and "result" not in part:
            arguments = parse_arguments(part.get("arguments", part.get("input")))
            call_id = part.get("id", part.get("call_id"))
            calls.append({"id": call_id, "name": part.get("name"), "arguments": arguments})
        elif kind in RESULT_TYPES:
            call = part.get("id", part.get("tool_use_id"))
            result = part.get("response", part.get("result", part.get("content")))
            results.append((_read_id(call, location), format_result(result)))
        elif kind in THOUGHT_TYPES:
            self._left_out[THOUGHTS] += 1
        else:
            self._left_out[f"parts of the type {kind}"] += 1

    def _read_calls(self, value: Mapping[str, Any], location: str) -> list[dict[str, Any]]:
        given = value.get("tool_calls")
        more = value.get("additional_kwargs")
        # As older messages of LangChain have them.
        if not given and isinstance(more, Mapping):
            given = more.get("tool_calls")
        if not given:
            return []
        if not isinstance(given, list):
            raise BadRow(f"{location}: tool_calls is {json.dumps(given)}; give a list")
        calls = []
        for call in given:
            if not isinstance(call, Mapping):
                raise BadRow(f"{location}: a call is {json.dumps(call)}; give an object")
            function = call.get("function")
            # The forms of servers, of Inspect, and of frameworks.
            if isinstance(function, Mapping):
                name, arguments = function.get("name"), function.get("arguments")
            else:
                name = function or call.get("name", call.get("function_name"))
                arguments = call.get("arguments", call.get("args"))
            call_id = call.get("id", call.get("tool_call_id"))
            calls.append({"id": call_id, "name": name, "arguments": parse_arguments(arguments)})
        return calls


def format_result(result: Any) -> str:
    """Return what a tool returned as a text; texts in parts become one, other values JSON."""
    if result is None:
        return ""
    if isinstance(result, str):
        return result
    if isinstance(result, list) and result:
        texts = []
        for part in result:
            is_text = isinstance(part, Mapping) and part.get("type") in TEXT_TYPES
            text = part.get("text", part.get("content")) if is_text else None
            if not isinstance(text, str):
                return json.dumps(result, ensure_ascii=False)
            texts.append(text)
        return "\n".join(texts)
    return json.dumps(result, ensure_ascii=False)


def _is_part(value: Mapping[str, Any]) -> bool:
    """Return whether an object is a part of a message rather than a message."""
    kinds = (*TEXT_TYPES, *CALL_TYPES, *RESULT_TYPES, *THOUGHT_TYPES)
    return "role" not in value and value.get("type") in kinds


def _read_id(value: Any, location: str) -> str:
    if value in (None, ""):
        return ""
    if not isinstance(value, str):
        raise BadRow(f"{location}: the id of a call is {json.dumps(value)}; give a text")
    return value


def _parse_json_text(value: Any) -> Any:
    """Return the JSON list or object in a text; other values unchanged."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("[", "{"):
        return value
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return parsed if isinstance(parsed, list | dict) else value
