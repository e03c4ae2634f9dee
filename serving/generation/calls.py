"""Forced calls: a function that must be called, whose arguments have few values. Pure.

Clients ask for structured output in this form. The model chooses among the arguments; whether to
call, and what, is never its choice here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from serving.errors import wrong_field
from serving.generation.schemas import choices_of


@dataclass(frozen=True)
class Call:
    """A function call, with every text that its arguments may be, as JSON."""

    name: str
    choices: tuple[str, ...]


def forced_call(tools: Sequence[Any], choice: Any) -> Call | None:
    """Return the call that the answer must be; None if the answer is a text.

    tools, choice: OpenAI's `tools` and `tool_choice`. Raises BadRequestError, which names the
    parameter, unless a single function is forced.
    """
    if choice == "none" or not tools:
        if choice not in (None, "none", "auto"):
            raise wrong_field("tool_choice", "needs a function in tools.")
        return None
    if choice in (None, "auto"):
        raise wrong_field(
            "tools",
            "are served only where tool_choice names the function to call. "
            'Send tool_choice "none" for a text.',
        )
    # All tools are checked, also those that are not called.
    functions = [_function(tool, f"tools.{number}") for number, tool in enumerate(tools)]
    names = [function["name"] for function in functions]
    name = names[0] if choice == "required" and len(names) == 1 else _named(choice)
    if names.count(name) != 1:
        raise wrong_field("tool_choice", "must name one of the functions in tools.")
    number = names.index(name)
    path = f"tools.{number}.function.parameters"
    return Call(name, choices_of(functions[number].get("parameters"), path))


def _function(tool: Any, path: str) -> Mapping[str, Any]:
    """Return the function of a tool. Raises BadRequestError."""
    if not isinstance(tool, Mapping) or tool.get("type") != "function":
        raise wrong_field(f"{path}.type", "must be function.")
    function = tool.get("function")
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise wrong_field(f"{path}.function.name", "must be a string.")
    return function


def _named(choice: Any) -> Any:
    """Return the name in `{"type": "function", "function": {"name": "…"}}`, or None."""
    function = choice.get("function") if isinstance(choice, Mapping) else None
    return function.get("name") if isinstance(function, Mapping) else None
