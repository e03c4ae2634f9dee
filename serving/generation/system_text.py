"""Keep the text of system messages in prompts, even if a template or server drops such messages.

Gemma's template refuses a system message, and Phi-3's drops it silently. If a rendered prompt lacks
the system text, the text goes before the first question.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Messages = Sequence[Mapping[str, Any]]


def move_system_text(messages: Messages) -> list[Mapping[str, Any]]:
    """Return messages with the system text at the beginning of the first question.

    A message's content may be a text or parts. Without a question, the system text becomes one.
    """
    system = _join_system_texts(messages)
    other_messages = [message for message in messages if message["role"] != "system"]
    if not system:
        return other_messages
    for index, message in enumerate(other_messages):
        if message["role"] == "user":
            other_messages[index] = {**message, "content": _join_texts(system, message["content"])}
            return other_messages
    return [{"role": "user", "content": system}, *other_messages]


def _join_texts(system: str, content: Any) -> Any:
    """Return a question with the system text before it.

    content: the question as a text or as parts.
    """
    if isinstance(content, str):
        return f"{system}\n\n{content}"
    return [{"type": "text", "text": system}, *content]


def render_with_system_text(render: Callable[[Messages], str], messages: Messages) -> str:
    """Return the prompt that a chat template renders, always including the system text.

    Raises the exceptions of `render` if it fails for the messages both with a system turn and with
    the system text in the first question.
    """
    system = _join_system_texts(messages)
    if not system:
        return render(messages)
    try:
        prompt = render(messages)
    except Exception:  # a template may raise anything
        return render(move_system_text(messages))
    # Some templates drop a system message without an error.
    if _is_text_in_prompt(prompt, system):
        return prompt
    return render(move_system_text(messages))


def _join_system_texts(messages: Messages) -> str:
    return "\n\n".join(str(m["content"]) for m in messages if m["role"] == "system")


def _is_text_in_prompt(prompt: str, text: str) -> bool:
    """Return whether a prompt contains a text.

    Ignores the amount of white space, because templates change it.
    """
    return " ".join(text.split()) in " ".join(prompt.split())
