"""Convert pydantic's errors to the owner's words, with the position and a fix."""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from tasks.config.parsing import Document, Finding, Loc, Problem, locate_inside, suggest_nearest

_BOUND_MESSAGES = {
    "greater_than": ("gt", "use a number above {:g}"),
    "greater_than_equal": ("ge", "use {:g} or more"),
    "less_than": ("lt", "use a number below {:g}"),
    "less_than_equal": ("le", "use {:g} or less"),
    "string_too_long": ("max_length", "use at most {} characters"),
    "too_short": ("min_length", "give at least {}"),
    "too_long": ("max_length", "give at most {}"),
}
_TYPE_MESSAGES = {
    "string_type": ("is not a text", "write it in quotes"),
    "int_type": ("is not a whole number", "write a number such as 3, without quotes"),
    "int_from_float": ("is not a whole number", "write a number such as 3"),
    "float_type": ("is not a number", "write a number such as 0.4, without quotes"),
    "bool_type": ("is neither true nor false", "write true or false, without quotes"),
    "tuple_type": ("is not a list", "write [a, b], or one item a line that begins with `- `"),
    "dict_type": ("is not a mapping", "write keys and values, such as {a: 1}"),
    "model_type": ("is not a mapping", "write keys and values, such as {name: x, type: text}"),
    "dataclass_type": ("is not a mapping", "write keys and values, such as {a: 1}"),
    "model_attributes_type": ("is not a mapping", "write keys and values, such as {type: x}"),
    "string_too_short": ("is empty", "write something, or remove the key"),
    "finite_number": ("is not a finite number", "use a number"),
}
_PATTERN_FIXES = {
    "language": "use a language tag such as en or pt-BR",
    "name": "use letters, digits and underscores, beginning with a letter",
}


def list_problems(
    error: ValidationError, document: Document, schema: Mapping[str, Any]
) -> list[Problem]:
    """Return pydantic's errors as problems in document order.

    schema: the JSON Schema, which lists the possible keys.
    """
    details = error.errors(include_url=False)
    return sort_problems(
        document.build_problem(_build_finding(detail, document, schema)) for detail in details
    )


def sort_problems(problems: Iterable[Problem]) -> list[Problem]:
    """Return the problems sorted by their position in the document."""
    return sorted(problems, key=lambda problem: (problem.line, problem.column))


def _build_finding(detail: ErrorDetails, document: Document, schema: Mapping[str, Any]) -> Finding:
    # Pydantic's location also names members of unions, which are not in the document.
    error_type, context, loc = (
        detail["type"],
        detail.get("ctx", {}),
        document.resolve_location(detail["loc"])[0],
    )
    last_key = str(detail["loc"][-1]) if detail["loc"] else ""
    # The place of a missing key is that of the mapping around it.
    if error_type == "missing":
        return Finding(
            locate_inside(loc, last_key),
            f'the key "{last_key}" is missing',
            f"add `{last_key}: ...`",
        )
    if error_type in ("extra_forbidden", "unexpected_keyword_argument"):
        fix = "remove it; " + suggest_nearest(
            last_key, _list_known_keys(schema, detail["loc"][:-1])
        )
        return Finding(loc, f'there is no key "{last_key}" here', fix)
    return _build_value_finding(error_type, context, loc, detail)


def _build_value_finding(
    error_type: str, context: Mapping[str, Any], loc: Loc, detail: ErrorDetails
) -> Finding:
    value = detail["input"]
    quoted_value = f'"{value}"' if isinstance(value, str) else _format_value(value)
    if error_type == "literal_error":
        choices = []
        for word in context["expected"].replace(" or ", ", ").split(", "):
            choices.append(word.strip("'"))
        return Finding(
            loc, f"{quoted_value} is not possible here", suggest_nearest(str(value), choices)
        )
    if error_type == "union_tag_invalid":
        choices = [word.strip("'") for word in context["expected_tags"].split(", ")]
        tag = str(context["tag"])
        return Finding(
            locate_inside(loc, "type"), f'there is no type "{tag}"', suggest_nearest(tag, choices)
        )
    if error_type == "union_tag_not_found":
        return Finding(loc, 'the key "type" is missing', "add `type: exact_match`")
    if error_type in _BOUND_MESSAGES:
        key, fix = _BOUND_MESSAGES[error_type]
        return Finding(loc, f"{quoted_value} is out of range", fix.format(context[key]))
    if error_type == "string_pattern_mismatch":
        last_key = str(loc[-1]) if loc else ""
        fix = _PATTERN_FIXES["language" if last_key == "language" else "name"]
        return Finding(loc, f"{quoted_value} is not allowed", fix)
    problem, fix = _TYPE_MESSAGES.get(
        error_type, (f"is not possible here ({detail['msg']})", "change it")
    )
    return Finding(loc, f"{quoted_value} {problem}", fix)


def _format_value(value: object) -> str:
    """Return a scalar as YAML writes it; for other values "a mapping or list"."""
    if value is None:
        return "an empty value"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    return "a mapping or list"


def _list_known_keys(schema: Mapping[str, Any], loc: Loc) -> list[str]:
    """Return the keys that the JSON Schema allows at `loc`."""
    node = _follow_reference(schema, schema)
    for key in loc:
        if isinstance(key, int):
            node = _follow_reference(schema, node.get("items", {}))
        elif key in node.get("properties", {}):
            node = _follow_reference(schema, node["properties"][key])
        else:  # the name of a union's member
            reference = node.get("discriminator", {}).get("mapping", {}).get(key)
            node = _follow_reference(schema, {"$ref": reference} if reference else {})
    return list(node.get("properties", {}))


def _follow_reference(schema: Mapping[str, Any], node: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the node that `node`, a reference or an optional reference, points to.

    Other nodes are returned unchanged. schema: the whole JSON Schema.
    """
    # Pydantic writes an optional part as "a reference, or null".
    for option in node.get("anyOf", ()):
        if "$ref" in option:
            node = option
    if "$ref" in node:
        target: Mapping[str, Any] = schema["$defs"][node["$ref"].rpartition("/")[2]]
        return target
    return node
