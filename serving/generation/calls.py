"""Requests that force the model to call a function with one of few possible arguments. Pure.

Clients request structured output in this form. The model chooses only the arguments, never whether
to call a function or which one. So servers that parse no calls do: they answer with a text.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from serving.errors import build_wrong_field_error
from serving.generation.schemas import find_choices


@dataclass(frozen=True)
class ForcedCall:
    """A function call of which the answer must consist.

    choices: all possible arguments, as JSON texts.
    """

    name: str
    choices: tuple[str, ...]


def find_forced_call(tools: Sequence[Any], choice: Any) -> ForcedCall | None:
    """Return the call of which the answer must consist; None if the answer is a text.

    tools, choice: OpenAI's `tools` and `tool_choice`. Where the model may choose (`auto`, which is
    the default), it answers with a text: it never calls anything by itself. Raises BadRequestError,
    which names the parameter, for a call that can't be forced.
    """
    if choice == "none" or not tools:
        if choice not in (None, "none", "auto"):
            raise build_wrong_field_error("tool_choice", "needs a function in tools.")
        return None
    # All tools are checked, also those that are not called.
    functions = [_read_function(tool, f"tools.{number}") for number, tool in enumerate(tools)]
    if choice in (None, "auto"):
        return None
    names = [function["name"] for function in functions]
    if choice == "required" and len(names) > 1:
        raise build_wrong_field_error(
            "tool_choice",
            "is required, but this model can't choose among several functions. Name one of them, "
            "or send auto.",
        )
    name = names[0] if choice == "required" else _get_chosen_name(choice)
    if names.count(name) != 1:
        raise build_wrong_field_error("tool_choice", "must name one of the functions in tools.")
    number = names.index(name)
    path = f"tools.{number}.function.parameters"
    return ForcedCall(name, find_choices(functions[number].get("parameters"), path))


def _read_function(tool: Any, path: str) -> Mapping[str, Any]:
    """Return the function of a tool. Raises BadRequestError."""
    if not isinstance(tool, Mapping) or tool.get("type") != "function":
        raise build_wrong_field_error(f"{path}.type", "must be function.")
    function = tool.get("function")
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise build_wrong_field_error(f"{path}.function.name", "must be a string.")
    return function


def _get_chosen_name(choice: Any) -> Any:
    """Return the function's name in OpenAI's `tool_choice` object, or None."""
    function = choice.get("function") if isinstance(choice, Mapping) else None
    return function.get("name") if isinstance(function, Mapping) else None
