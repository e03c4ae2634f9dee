"""Conversations: given in the context, or between a person and the round's target."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from core.text.words import gettext_noop
from tasks.config.components import Component, FieldType, FormInput, format_value
from tasks.config.field_types.tool_calls import (
    describe_calls,
    find_call_error,
    find_tool_names,
)
from tasks.config.parsing import Finding, Loc, locate_inside
from tasks.config.values import FORBIDDEN_CHARACTERS, format_characters, format_subject

ROLE_LABELS = {"system": "System", "user": "User", "assistant": "Assistant", "tool": "Tool"}
MAX_CONTEXT_TURNS = 300
"""The maximum number of turns of a conversation in the context."""
DEFAULT_MAX_TURNS, DEFAULT_MAX_CHARS = 20, 2000
"""The default limits on a person's turns and on the characters of each turn."""
SECRET_PLACEHOLDER = "{secret}"  # noqa: S105
"""The placeholder for the secret in the system text."""


class Chat(FieldType, name="chat"):
    """A list of turns, each `{role, text}`. Turns may call tools (`field_types.tool_calls`).

    As an input, it ends with the person's last message, and the output is the target's reply. The
    text of a `system` turn may contain a secret, which is also stored under its key `secret`.
    """

    title = gettext_noop("Conversation")
    place = 10
    keys = ("max_turns", "max_length", "system")
    sections = ("context", "input")
    missing_message = "Talk to the model and mark its answer in {title}"

    def check(self, component: Component, value: Any, context: Mapping[str, Any]) -> list[str]:
        subject = format_subject(component)
        if not isinstance(value, list | tuple):
            return [f"{subject} must be a list of turns"]
        if len(value) > MAX_CONTEXT_TURNS:
            return [f"{subject} has {len(value)} turns; the most is {MAX_CONTEXT_TURNS}"]
        for number, turn in enumerate(value, 1):
            if error := _find_turn_error(turn, number):
                return [f"{subject}, turn {number}: {error}"]
        if error := find_call_error(value):
            return [f"{subject}, {error}"]
        return []

    def is_list(self, component: Component) -> bool:
        return True

    def build_form_input(self, component: Component) -> FormInput:
        return FormInput("ChoiceField", "RadioSelect")

    def display(self, component: Component, value: Any) -> str:
        turns = value
        if not isinstance(value, list | tuple):
            turns = [value]
        tool_names = find_tool_names(turns)
        return "\n\n".join(_format_turn(turn, tool_names) for turn in turns)

    def describe_value(self, component: Component) -> str:
        return (
            "a list of turns, each with role (system, user, assistant or tool) and text. An "
            "assistant's turn may have calls, each with id, name and arguments. A tool's turn has "
            "in call the id of the call that it answers."
        )

    def extract_authored_text(self, value: Any) -> str:
        return "\n".join(turn["text"] for turn in value or () if turn["role"] == "user")

    def build_placeholder(self, component: Component) -> Any:
        return [{"role": "user", "text": f"({component.title})"}]

    def find_unsupported_settings(
        self, loc: Loc, component: Component, groups: Mapping[str, Sequence[Component]]
    ) -> Iterator[Finding]:
        if loc[0] == "context":
            for key in self.keys:
                if key in component.model_fields_set:
                    message = "only a conversation that people have is limited"
                    yield Finding(locate_inside(loc, key), message, f"remove {key}")
            return
        if component.when is not None or not component.required:
            message = "the conversation is what the model answers in"
            yield Finding(loc, message, "remove when and required")
        conversations = []
        for field in groups["input"]:
            if field.type == "chat":
                conversations.append(field)
        if component is not conversations[0]:
            message = "people have one conversation at a time"
            yield Finding(loc, message, f"remove {component.name}, or put it into the context")
        yield from _find_output_errors(groups)


def _find_output_errors(groups: Mapping[str, Sequence[Component]]) -> Iterator[Finding]:
    """Yield a finding unless the only output is a text that the target writes."""
    names_above = {component.name for component in chain(groups["context"], groups["input"])}
    output = groups["output"]
    if len(output) != 1 or not output[0].kind.is_text or output[0].name in names_above:
        message = "in a conversation the model answers with a text of its own"
        fix = "let the output be one field of type text that is not in the input"
        yield Finding(("output",), message, fix)


def _find_turn_error(turn: Any, number: int) -> str:
    if not isinstance(turn, Mapping) or not {"role", "text"} <= set(turn) <= set(_TURN_KEYS):
        return "needs role and text"
    if turn["role"] not in ROLE_LABELS:
        return f"the role must be one of {', '.join(ROLE_LABELS)}"
    # Chat templates of most models take a system message at the beginning only.
    if turn["role"] == "system" and number > 1:
        return "only the first turn can be the system's"
    if not isinstance(turn["text"], str):
        return "the text is missing"
    # A call needs no text beside it, and a tool may return nothing.
    if not turn["text"].strip() and turn["role"] != "tool" and not turn.get("calls"):
        return "the text is missing"
    if FORBIDDEN_CHARACTERS.search(turn["text"]):
        return "the text contains a control character; delete it"
    # The server writes it, beside the text that tells it to the model.
    if "secret" in turn and (turn["role"] != "system" or not isinstance(turn["secret"], str)):
        return "only the system's turn has a secret, a text"
    return ""


_TURN_KEYS = ("role", "text", "secret", "calls", "call")


def strip_secrets(value: Any) -> Any:
    """Return a field's value as models receive it, with only role and text of each turn.

    The text of the system turn contains the secret, too. The separate copy is only for the verdict
    rule.
    """
    if not isinstance(value, list | tuple):
        return value
    return [_remove_secret(turn) if isinstance(turn, Mapping) else turn for turn in value]


def _remove_secret(turn: Mapping[str, Any]) -> dict[str, Any]:
    return {name: content for name, content in turn.items() if name != "secret"}


def get_max_turns(component: Component) -> int:
    """Return the maximum number of turns that a person may write in one conversation."""
    return component.max_turns or DEFAULT_MAX_TURNS


def find_text_error(component: Component, text: str) -> str:
    """Return the reason why a person cannot send this text; "" if they can."""
    max_length = component.max_length or DEFAULT_MAX_CHARS
    if not text.strip():
        return "Write something first"
    if len(text) > max_length:
        return f"Your turn must be at most {format_characters(max_length)}; it is {len(text)}"
    if FORBIDDEN_CHARACTERS.search(text):
        return "Your turn contains a control character; delete it"
    return ""


def _format_turn(turn: Any, tool_names: Mapping[str, str]) -> str:
    if not isinstance(turn, Mapping) or turn.get("role") not in ROLE_LABELS:
        return format_value(turn)
    label = ROLE_LABELS[turn["role"]]
    if name := tool_names.get(turn.get("call", "")):
        label = f"{label} {name}"
    lines = []
    if turn["text"] or not turn.get("calls"):
        lines.append(f"{label}: {format_value(turn)}")
    lines += [f"{label} calls {call}" for call in describe_calls(turn)]
    return "\n".join(lines)
