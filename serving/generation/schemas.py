"""JSON schemas that allow only a few values. Pure.

The model writes one of the values, token by token, so the schema holds whatever the model is.
Clients write the same choice in many ways: titles, descriptions, references, constants.
"""

import json
from collections.abc import Iterable, Mapping
from itertools import chain, product
from typing import Any, Final
from urllib.parse import unquote

from serving.errors import wrong_field

MAX_CHOICES: Final = 64
MAX_PARTS: Final = 256  # looked at, so that references cannot multiply the work

NOTES: Final = frozenset(
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
"""Keywords that allow and forbid no value by themselves."""

WITH_OTHERS: Final = ("type", "required", "additionalProperties")  # read beside the others
TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
    "integer": (int,),
    "number": (int, float),
    "object": (dict,),
}
SMALL: Final[Mapping[str, list[Any]]] = {"boolean": [True, False], "null": [None]}
"""All values of the types that have few."""


def choices_of(schema: Any, path: str) -> tuple[str, ...]:
    """Return each value that a schema allows, as JSON, in the schema's order.

    Raises BadRequestError, which names the location below `path`, for a schema with more than 64
    values or with unsupported keywords.
    """
    values = _Schema(schema).values(schema, path)
    return tuple(json.dumps(value, ensure_ascii=False) for value in values)


class _Schema:
    """A whole schema, in which references are resolved."""

    def __init__(self, root: Any) -> None:
        self._root, self._parts = root, 0

    def values(self, schema: Any, path: str) -> list[Any]:
        """Return the values that a subschema allows, at least one. Raises BadRequestError."""
        if not isinstance(schema, Mapping):
            raise wrong_field(path, "must be an object.")
        # References may form a circle, or multiply the work.
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise wrong_field(path, f"has over {MAX_PARTS} parts, or refers to itself.")
        types = _types(schema, f"{path}.type")
        value_lists: list[list[Any]] = []
        for keyword, value in schema.items():
            if not _allows_all(keyword, value):
                value_lists += self._of_keyword(schema, keyword, path)
        return _allowed_by_all(value_lists or [_all_of(types, path)], types, path)

    def _of_keyword(self, schema: Mapping[str, Any], keyword: str, path: str) -> list[list[Any]]:
        """Return the lists of values that one keyword allows; for `allOf`, one per subschema."""
        value, keyword_path = schema[keyword], f"{path}.{keyword}"
        match keyword:
            case "enum":
                return [_listed(value, keyword_path)]
            case "const":
                return [[value]]
            case "$ref":
                return [self.values(self._target(value, keyword_path), path)]
            case "anyOf" | "oneOf":
                return [self._alternatives(value, keyword_path)]
            case "allOf":
                schemas = enumerate(_listed(value, keyword_path))
                return [self.values(each, f"{keyword_path}.{number}") for number, each in schemas]
            case "properties":
                return [self._objects(schema, path)]
        raise wrong_field(keyword_path, "is not served here.")

    def _alternatives(self, schemas: Any, path: str) -> list[Any]:
        """Return the values of any of these schemas. Those of `oneOf` must be disjoint."""
        values: list[Any] = []
        for number, schema in enumerate(_listed(schemas, path)):
            values += self.values(schema, f"{path}.{number}")
        # A value in two schemas is allowed by neither, says `oneOf`.
        if path.endswith(".oneOf") and len(_distinct(values)) < len(values):
            raise wrong_field(path, "allows a value twice.")
        return values

    def _objects(self, schema: Mapping[str, Any], path: str) -> list[Any]:
        """Return all objects that have every property, whether required or not."""
        properties = schema["properties"]
        if not isinstance(properties, Mapping) or not properties:
            raise wrong_field(f"{path}.properties", "must be an object of at least one property.")
        required = schema.get("required", [])
        if not isinstance(required, list) or not all(name in properties for name in required):
            raise wrong_field(f"{path}.required", "must be a list of names of properties.")
        more = schema.get("additionalProperties", False)
        if not isinstance(more, bool | Mapping):
            raise wrong_field(f"{path}.additionalProperties", "must be true, false or a schema.")
        by_property, count = [], 1
        for name, property_schema in properties.items():
            values = self.values(property_schema, f"{path}.properties.{name}")
            by_property.append(values)
            # Counted before the objects are made, which could be far too many.
            count *= len(values)
            if count > MAX_CHOICES:
                raise wrong_field(path, f"allows more than {MAX_CHOICES} values.")
        return [dict(zip(properties, values, strict=True)) for values in product(*by_property)]

    def _target(self, reference: Any, path: str) -> Any:
        """Return the subschema that a reference such as `#/$defs/Label` points to."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise wrong_field(path, "must be a reference within the schema, such as #/$defs/Label.")
        target = self._root
        for step in unquote(reference[1:]).split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")  # as JSON pointers escape them
            if not isinstance(target, Mapping) or name not in target:
                raise wrong_field(path, "is a reference to what is not there.")
            target = target[name]
        return target


def _allows_all(keyword: str, value: Any) -> bool:
    """Return whether a keyword by itself excludes no value."""
    is_off = keyword == "nullable" and value is False
    return keyword in NOTES or keyword in WITH_OTHERS or keyword.startswith("x-") or is_off


def _allowed_by_all(lists: list[list[Any]], types: list[str], path: str) -> list[Any]:
    """Return the values that are in all lists and have one of the types, if there are any types."""
    values = _distinct(lists[0])
    for others in lists[1:]:
        texts = {_text(value) for value in others}
        values = [value for value in values if _text(value) in texts]
    if types:
        values = [value for value in values if any(_has_type(value, kind) for kind in types)]
    if not values:
        raise wrong_field(path, "allows no value.")
    if len(values) > MAX_CHOICES:
        raise wrong_field(path, f"allows {len(values)} values; at most {MAX_CHOICES} are served.")
    return values


def _all_of(types: list[str], path: str) -> list[Any]:
    """Return all values of the types. Raises BadRequestError if there are too many."""
    if types and all(name in SMALL for name in types):
        return list(chain.from_iterable(SMALL[name] for name in types))
    lacking = "properties" if "object" in types else "enum"
    raise wrong_field(
        f"{path}.{lacking}",
        f"is missing. Only schemas of at most {MAX_CHOICES} values are served.",
    )


def _listed(value: Any, path: str) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise wrong_field(path, "must be a list that is not empty.")
    return value


def _types(schema: Mapping[str, Any], path: str) -> list[str]:
    """Return the types that a schema names, or an empty list."""
    named = schema.get("type", [])
    types = named if isinstance(named, list) else [named]
    for name in types:
        if not isinstance(name, str) or name not in TYPES:
            raise wrong_field(path, f"{_text(name)} is not served here.")
    return types


def _has_type(value: Any, kind: str) -> bool:
    """Return whether a value has a type of JSON schema. true is no number; 1.0 is an integer."""
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, TYPES[kind])


def _distinct(values: Iterable[Any]) -> list[Any]:
    """Return the values without repetitions, in order."""
    by_text: dict[str, Any] = {}
    for value in values:
        by_text.setdefault(_text(value), value)
    return list(by_text.values())


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
