"""Parse the command-line arguments that name models."""

import re
from typing import Any

from .spec import ModelSpec

ARGUMENT_KEYS = (
    "backend",
    "precision",
    "revision",
    "kind",
    "fields",
    "output",
    "labels",
    "max_length",
)


def parse_model(argument: str) -> ModelSpec:
    """Parse `NAME=PATH[,key=value]...` into a spec. Raises ValueError.

    In a value, `+` separates the items of a list.
    """
    name_and_source, *options = argument.split(",")
    name, equals, source = name_and_source.partition("=")
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*", name) or not equals or not source:
        raise ValueError(
            f"{argument!r}: write NAME=PATH, a name of letters, digits, '.', '_', '-'."
        )
    values: dict[str, Any] = {}
    for option in options:
        key, equals, value = option.partition("=")
        if key not in ARGUMENT_KEYS or not equals or not value:
            raise ValueError(
                f"{argument!r}: {option!r} is not KEY=VALUE with one of {ARGUMENT_KEYS}."
            )
        values[key] = tuple(value.split("+")) if key in ("fields", "labels") else value
    if "max_length" in values:
        if not re.fullmatch("[0-9]*[1-9][0-9]*", values["max_length"]):
            raise ValueError(f"{argument!r}: max_length must be a whole number of tokens.")
        values["max_length"] = int(values["max_length"])
    return ModelSpec(name, source, **values)
