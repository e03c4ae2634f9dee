"""What the client's methods take and return, as the text of a module."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

NAMES = {
    "CurrentBoard": "Leaderboard",
    "WebhookShown": "Webhook",
    "DeliveryShown": "Delivery",
}
"""Clearer names at the client, by the name of the schema."""
FEWEST = 4
"""Fields that a class has at least which is the base of another one."""
HEAD = '''"""What methods return, and some take: plain dictionaries, with the keys of the API.

Times are ISO 8601, in UTC.
"""

from __future__ import annotations  # they name each other

from typing import Any, Literal, NotRequired, TypedDict

ModelResults = dict[str, Any]
"""Of `get_results`. No TypedDict, as each task has its rounds. Its keys:

- `model`, `name`, `task`; `phase` (one word), `sentence`, `is_over`: how far it is;
- `dynascore`, `dynascore_low`, `dynascore_high` in percent, `rank`; where a metric was not measured
  `dynascore` is None, and `dynascore_least` and `dynascore_most` are the worst and the best case;
- `round1_acc`, `round2_acc` …: accuracy, 0 to 1; None where there is none, and `notes` say why;
- `scores`: set, metric, and of it `value`, `low`, `high`, `n`; `throughput`, `memory`, `fairness`,
  `robustness`;
- `error`: None, or `outcome`, `sentence`, `limit`, `measured`, `log`.
"""


class Card(TypedDict, total=False):
    """A model's card; `description` is Markdown."""

    description: str
    languages: str
    trained_on: str
    trained_until: str | None
    license: str
    paper_url: str
    parameters: int | None


class Flag(TypedDict, total=False):
    """Why an example cannot be used; or what is said of each criterion, in place of a vote."""

    flag_reason: str
    comment: str
    criteria: list[str]
'''
BY_HAND = ("Card", "Flag", "ModelResults")
"""Classes of the head."""
PLAIN = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
    "object": "dict[str, Any]",
    "array": "list[Any]",
}
Schema = Mapping[str, Any]


class Shape(NamedTuple):
    """A class: its docstring, and its fields' types by name."""

    doc: str
    fields: Mapping[str, str]


Classes = Mapping[str, Shape]


def write_types(api: Schema) -> str:
    """Return the text of a module with a class for each object of an OpenAPI schema."""
    schemas = api["components"]["schemas"]
    classes = {}
    # The longer names first, so that of a request and an answer with one name the answer stays.
    for schema_name in sorted(schemas, key=lambda name: (-len(name), name)):
        schema = schemas[schema_name]
        name = name_class(schema_name)
        if "properties" in schema and not schema_name.startswith("Paginated"):
            summary = schema.get("description", "").partition("\n")[0]
            classes[name] = Shape(summary, _fields(schema, schemas))
    for name in BY_HAND:
        classes.pop(name, None)
    families = sorted(_family(name, classes) for name in classes)
    return "\n\n\n".join([HEAD.rstrip(), *(_class(family, classes) for family in families), ""])


def _fields(schema: Schema, schemas: Schema) -> dict[str, str]:
    """The types of a schema's fields by name."""
    kinds = {key: write_type(part, schemas) for key, part in schema["properties"].items()}
    required = schema.get("required", ())
    return {k: kind if k in required else f"NotRequired[{kind}]" for k, kind in kinds.items()}


def _family(name: str, classes: Classes) -> list[str]:
    """A class behind its base, the largest one whose fields it has all, and so on."""
    mine = classes[name].fields.items()
    bases = [
        one
        for one, its in classes.items()
        if len(its.fields) >= FEWEST and its.fields.items() < mine
    ]
    if not bases:
        return [name]
    return [*_family(max(bases, key=lambda one: len(classes[one].fields)), classes), name]


def _class(family: Sequence[str], classes: Classes) -> str:
    base, name = family[-2:] if len(family) > 1 else ("TypedDict", *family)
    known = classes[base].fields if base in classes else {}
    own = {key: kind for key, kind in classes[name].fields.items() if key not in known}
    lines = [f"class {name}({base}):", f'    """{classes[name].doc}"""']
    return "\n".join([*lines, *(f"    {key}: {kind}" for key, kind in own.items())])


def name_class(schema_name: str) -> str:
    """Return the name of the class for a schema."""
    return NAMES.get(schema_name, schema_name.removeprefix("Patched").removesuffix("Request"))


def write_type(part: Schema, schemas: Schema, prefix: str = "") -> str:
    """Return the type of a part of a schema in Python.

    prefix: stands before the names of classes, such as `types.`.
    """
    match part:
        case {"$ref": ref}:
            name = ref.rpartition("/")[2]
            if "properties" in schemas[name]:
                return prefix + name_class(name)
            return write_type(schemas[name], schemas, prefix)
        case {"enum": values}:
            return f"Literal[{', '.join(json.dumps(value) for value in values)}]"
        case {"allOf": [only]}:
            return write_type(only, schemas, prefix)
        case {"oneOf": kinds} | {"anyOf": kinds}:
            return " | ".join(write_type(kind, schemas, prefix) for kind in kinds)
        case {"type": [*kinds]}:
            return " | ".join(write_type({**part, "type": kind}, schemas, prefix) for kind in kinds)
        case {"type": "array", "items": items}:
            return f"list[{write_type(items, schemas, prefix)}]"
        case {"type": "object", "additionalProperties": dict(values)}:
            return f"dict[str, {write_type(values, schemas, prefix)}]"
    return PLAIN.get(part.get("type", ""), "Any")
