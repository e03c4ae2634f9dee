"""Calls of tools and their results as plain turns, for models that know no tools. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

Message = Mapping[str, Any]


def has_tool_turns(messages: Sequence[Message]) -> bool:
    """Return whether messages of a chat contain calls of tools or their results."""
    return any(message["role"] == "tool" or message.get("tool_calls") for message in messages)


def fold_tool_turns(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return messages in which calls are part of the assistant's text, and results are questions.

    Turns of the same role are joined, because many chat templates want alternating roles.
    """
    names: dict[str, str] = {}
    folded_messages: list[dict[str, Any]] = []
    for message in messages:
        role, content = message["role"], message["content"]
        # With the name, because several results may follow one another.
        if role == "tool":
            role, content = "user", f"{names.get(message['tool_call_id'], 'tool')}: {content}"
        lines = [content] if content else []
        for call in message.get("tool_calls") or ():
            function = call["function"]
            # A result has only the id of its call.
            names[call["id"]] = function["name"]
            lines.append(f"{function['name']}({function['arguments']})")
        # Pictures are parts of a list, which no call has beside it.
        text = content if isinstance(content, list) else "\n".join(lines)
        last = folded_messages[-1] if folded_messages else None
        if last and last["role"] == role and isinstance(last["content"], str) and lines:
            last["content"] += f"\n\n{text}"
        else:
            folded_messages.append({"role": role, "content": text})
    return folded_messages
