"""Find all values that a JSON schema allows, for schemas that allow only a few. Pure.

The model can write only tokens that continue one of the values, so every model follows the schema.
Clients write the same choice in many ways: with titles, descriptions, references or constants.
"""

import json
from collections.abc import Iterable, Mapping
from itertools import chain, product
from typing import Any, Final
from urllib.parse import unquote

from serving.errors import build_wrong_field_error

MAX_CHOICES: Final = 64
MAX_PARTS: Final = 256  # looked at, so that references cannot multiply the work

NEUTRAL_KEYWORDS: Final = frozenset(
    (
        "$comment",
        "$defs",
        "$id",
        "$schema",
        "default",
        "definitions",
        "deprecated",
        "description",
        "discriminator",
        "examples",
        "readOnly",
        "title",
        "writeOnly",
    )
)
"""Keywords that neither allow nor forbid a value by themselves."""

MODIFIER_KEYWORDS: Final = ("type", "required", "additionalProperties")  # read beside the others
TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
    "integer": (int,),
    "number": (int, float),
    "object": (dict,),
}
VALUES_BY_SMALL_TYPE: Final[Mapping[str, list[Any]]] = {"boolean": [True, False], "null": [None]}
"""All values of each type that has only a few."""


def find_choices(schema: Any, path: str) -> tuple[str, ...]:
    """Return each value that a schema allows, as JSON, in the schema's order.

    Raises BadRequestError, which names the location below `path`, for a schema with more than 64
    values or with unsupported keywords.
    """
    values = _Schema(schema).list_values(schema, path)
    return tuple(json.dumps(value, ensure_ascii=False) for value in values)


class _Schema:
    """A whole schema, in which references are resolved."""

    def __init__(self, root: Any) -> None:
        self._root, self._part_count = root, 0

    def list_values(self, schema: Any, path: str) -> list[Any]:
        """Return the values that a subschema allows, at least one. Raises BadRequestError."""
        if not isinstance(schema, Mapping):
            raise build_wrong_field_error(path, "must be an object.")
        # References may form a circle, or multiply the work.
        self._part_count += 1
        if self._part_count > MAX_PARTS:
            raise build_wrong_field_error(path, f"has over {MAX_PARTS} parts, or refers to itself.")
        types = _read_types(schema, f"{path}.type")
        value_lists: list[list[Any]] = []
        for keyword, value in schema.items():
            if not _is_neutral(keyword, value):
                value_lists += self._find_keyword_values(schema, keyword, path)
        return _intersect_choices(value_lists or [_list_all_values(types, path)], types, path)

    def _find_keyword_values(
        self, schema: Mapping[str, Any], keyword: str, path: str
    ) -> list[list[Any]]:
        """Return the lists of values that one keyword allows; for `allOf`, one per subschema.

        Raises BadRequestError, also for an unsupported keyword.
        """
        value, keyword_path = schema[keyword], f"{path}.{keyword}"
        match keyword:
            case "enum":
                return [_check_list(value, keyword_path)]
            case "const":
                return [[value]]
            case "$ref":
                return [self.list_values(self._resolve_reference(value, keyword_path), path)]
            case "anyOf" | "oneOf":
                return [self._list_alternatives(value, keyword_path)]
            case "allOf":
                schemas = enumerate(_check_list(value, keyword_path))
                return [
                    self.list_values(each, f"{keyword_path}.{number}") for number, each in schemas
                ]
            case "properties":
                return [self._list_objects(schema, path)]
        raise build_wrong_field_error(keyword_path, "is not served here.")

    def _list_alternatives(self, schemas: Any, path: str) -> list[Any]:
        """Return the values of any of these schemas.

        Raises BadRequestError if the schemas of `oneOf` share a value.
        """
        values: list[Any] = []
        for number, schema in enumerate(_check_list(schemas, path)):
            values += self.list_values(schema, f"{path}.{number}")
        # A value in two schemas is allowed by neither, says `oneOf`.
        if path.endswith(".oneOf") and len(_remove_duplicates(values)) < len(values):
            raise build_wrong_field_error(path, "allows a value twice.")
        return values

    def _list_objects(self, schema: Mapping[str, Any], path: str) -> list[Any]:
        """Return all objects that have every property, whether the schema requires it or not.

        Raises BadRequestError if there are more than MAX_CHOICES, or for an invalid schema.
        """
        properties = schema["properties"]
        if not isinstance(properties, Mapping) or not properties:
            raise build_wrong_field_error(
                f"{path}.properties", "must be an object of at least one property."
            )
        required = schema.get("required", [])
        if not isinstance(required, list) or not all(name in properties for name in required):
            raise build_wrong_field_error(
                f"{path}.required", "must be a list of names of properties."
            )
        additional = schema.get("additionalProperties", False)
        if not isinstance(additional, bool | Mapping):
            raise build_wrong_field_error(
                f"{path}.additionalProperties", "must be true, false or a schema."
            )
        value_lists, count = [], 1
        for name, property_schema in properties.items():
            values = self.list_values(property_schema, f"{path}.properties.{name}")
            value_lists.append(values)
            # Counted before the objects are made, which could be far too many.
            count *= len(values)
            if count > MAX_CHOICES:
                raise build_wrong_field_error(path, f"allows more than {MAX_CHOICES} values.")
        return [dict(zip(properties, values, strict=True)) for values in product(*value_lists)]

    def _resolve_reference(self, reference: Any, path: str) -> Any:
        """Return the subschema that a reference such as `#/$defs/Label` points to.

        Raises BadRequestError for references to other documents and to missing parts.
        """
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise build_wrong_field_error(
                path, "must be a reference within the schema, such as #/$defs/Label."
            )
        target = self._root
        for step in unquote(reference[1:]).split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")  # as JSON pointers escape them
            if not isinstance(target, Mapping) or name not in target:
                raise build_wrong_field_error(path, "is a reference to what is not there.")
            target = target[name]
        return target


def _is_neutral(keyword: str, value: Any) -> bool:
    """Return whether a keyword by itself excludes no value."""
    is_off = keyword == "nullable" and value is False
    return (
        keyword in NEUTRAL_KEYWORDS
        or keyword in MODIFIER_KEYWORDS
        or keyword.startswith("x-")
        or is_off
    )


def _intersect_choices(lists: list[list[Any]], types: list[str], path: str) -> list[Any]:
    """Return the values that are in all lists and have one of the types, if there are any types.

    Raises BadRequestError if there is no such value, or if there are more than MAX_CHOICES.
    """
    values = _remove_duplicates(lists[0])
    for other_values in lists[1:]:
        texts = {_format_value(value) for value in other_values}
        values = [value for value in values if _format_value(value) in texts]
    if types:
        values = [value for value in values if any(_has_type(value, kind) for kind in types)]
    if not values:
        raise build_wrong_field_error(path, "allows no value.")
    if len(values) > MAX_CHOICES:
        raise build_wrong_field_error(
            path, f"allows {len(values)} values; at most {MAX_CHOICES} are served."
        )
    return values


def _list_all_values(types: list[str], path: str) -> list[Any]:
    """Return all values of the types. Raises BadRequestError if there are too many."""
    if types and all(name in VALUES_BY_SMALL_TYPE for name in types):
        return list(chain.from_iterable(VALUES_BY_SMALL_TYPE[name] for name in types))
    missing_keyword = "properties" if "object" in types else "enum"
    raise build_wrong_field_error(
        f"{path}.{missing_keyword}",
        f"is missing. Only schemas of at most {MAX_CHOICES} values are served.",
    )


def _check_list(value: Any, path: str) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise build_wrong_field_error(path, "must be a list that is not empty.")
    return value


def _read_types(schema: Mapping[str, Any], path: str) -> list[str]:
    """Return the types that a schema names, or an empty list.

    Raises BadRequestError for types that are not supported.
    """
    type_value = schema.get("type", [])
    types = type_value if isinstance(type_value, list) else [type_value]
    for name in types:
        if not isinstance(name, str) or name not in TYPES:
            raise build_wrong_field_error(path, f"{_format_value(name)} is not served here.")
    return types


def _has_type(value: Any, kind: str) -> bool:
    """Return whether a value has a type of JSON schema.

    As in the standard, true is not a number, and 1.0 is an integer.
    """
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, TYPES[kind])


def _remove_duplicates(values: Iterable[Any]) -> list[Any]:
    """Return the values without repetitions, in order."""
    values_by_text: dict[str, Any] = {}
    for value in values:
        values_by_text.setdefault(_format_value(value), value)
    return list(values_by_text.values())


def _format_value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
