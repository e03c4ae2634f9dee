"""One rule for system messages: no template and no server loses them.

Gemma's template refuses a system message, Phi-3's drops it without a word. Where a rendered prompt
lacks the system text, it goes before the first question.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Messages = Sequence[Mapping[str, Any]]


def fold_system(messages: Messages) -> list[Mapping[str, Any]]:
    """Return messages with the system text at the beginning of the first question.

    Content may be a text or parts. Without a question, the system text becomes one.
    """
    system = _system_of(messages)
    other_messages = [message for message in messages if message["role"] != "system"]
    if not system:
        return other_messages
    for place, message in enumerate(other_messages):
        if message["role"] == "user":
            other_messages[place] = {**message, "content": _joined(system, message["content"])}
            return other_messages
    return [{"role": "user", "content": system}, *other_messages]


def _joined(system: str, content: Any) -> Any:
    """Return a question, a text or parts, with the system text before it."""
    if isinstance(content, str):
        return f"{system}\n\n{content}"
    return [{"type": "text", "text": system}, *content]


def render_whole(render: Callable[[Messages], str], messages: Messages) -> str:
    """Return the prompt of a chat template, which always includes the system text.

    Raises the exceptions of `render` if it fails for the messages both with a system turn and with
    the system text in the first question.
    """
    system = _system_of(messages)
    if not system:
        return render(messages)
    try:
        prompt = render(messages)
    except Exception:  # a template may raise anything
        return render(fold_system(messages))
    # Some templates drop a system message without an error.
    if _holds(prompt, system):
        return prompt
    return render(fold_system(messages))


def _system_of(messages: Messages) -> str:
    return "\n\n".join(str(m["content"]) for m in messages if m["role"] == "system")


def _holds(prompt: str, text: str) -> bool:
    """Return whether a prompt contains a text, ignoring white space, which templates change."""
    return " ".join(text.split()) in " ".join(prompt.split())
