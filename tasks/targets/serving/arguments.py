"""The model arguments of the command line."""

import re

from .spec import ModelSpec

KEYS = ("backend", "precision", "revision", "kind", "fields", "output", "labels", "max_length")


def parse_model(argument: str) -> ModelSpec:
    """`NAME=PATH[,key=value]...` as a spec; lists are joined by `+`. Raises ValueError."""
    place, *options = argument.split(",")
    name, equals, source = place.partition("=")
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*", name) or not equals or not source:
        raise ValueError(
            f"{argument!r}: write NAME=PATH, a name of letters, digits, '.', '_', '-'."
        )
    values: dict[str, str] = {}
    for option in options:
        key, equals, value = option.partition("=")
        if key not in KEYS or not equals or not value:
            raise ValueError(f"{argument!r}: {option!r} is not KEY=VALUE with one of {KEYS}.")
        values[key] = value
    length = values.get("max_length", "1")
    if not length.isdigit() or not int(length):
        raise ValueError(f"{argument!r}: max_length must be a whole number of tokens.")
    return ModelSpec(
        name=name,
        source=source,
        revision=values.get("revision"),
        kind=values.get("kind"),
        fields=_several(values, "fields"),
        output=values.get("output"),
        labels=_several(values, "labels"),
        backend=values.get("backend", "onnx"),
        precision=values.get("precision", "fp32"),
        max_length=int(length) if "max_length" in values else None,
    )


def _several(values: dict[str, str], key: str) -> tuple[str, ...] | None:
    return tuple(values[key].split("+")) if key in values else None
