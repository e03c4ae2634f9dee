"""What the client gives back and takes, as the text of dynabench/client/types.py."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

CLIENT = Path(__file__).resolve().parents[1] / "dynabench" / "client"
TYPES = CLIENT / "types.py"
NAMES = {
    "Seen": "Leaderboard",
    "WebhookShown": "Webhook",
    "DeliveryShown": "Delivery",
}
"""Clearer names at the client, by the name of the schema."""
FEWEST = 4
"""Fields that a class has at least which is the base of another one."""
HEAD = '''"""What methods return, and some take: plain dictionaries, with the keys of the API.

Made by scripts/client_types.py from the schema of the API. Times are ISO 8601, in UTC.
"""

from __future__ import annotations  # they name each other

from typing import Any, Literal, NotRequired, TypedDict

Results = dict[str, Any]
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
    """Why an example cannot be used."""

    flag_reason: str
    comment: str
'''
BY_HAND = {"Card", "Flag", "Results"}
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


def made(api: Schema) -> str:
    """The text of the file for an OpenAPI schema: what the client's modules use, and all below.

    Raises ValueError for a name that is no schema.
    """
    schemas = api["components"]["schemas"]
    imported = [_schema_of(name, schemas) for name in _used() - BY_HAND]
    classes = {
        _named(name): Shape(
            schemas[name].get("description", "").partition("\n")[0],
            _fields(schemas[name], schemas),
        )
        for name in sorted(_with_all_below(schemas, imported))
    }
    families = sorted(_family(name, classes) for name in classes)
    text = "\n\n".join([HEAD, *(_class(family, classes) for family in families)])
    formatted = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--stdin-filename", TYPES, "-"],
        input=text, text=True, capture_output=True, check=True,
    )  # fmt: skip
    return formatted.stdout


def _used() -> set[str]:
    """The names that the client's modules have from the file, as `types.Model`."""
    return {
        node.attr
        for module in CLIENT.rglob("*.py")
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "types"
    }


def _schema_of(name: str, schemas: Schema) -> str:
    """The schema for a name of the client; the answer's where a request has one too."""
    return min((one for one in schemas if _named(one) == name), key=len)


def _with_all_below(schemas: Schema, names: Iterable[str]) -> set[str]:
    found: set[str] = set()
    waiting = [*names]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _referred(schemas[name])
    return {name for name in found if "properties" in schemas[name]}


def _referred(part: Any) -> Iterator[str]:
    """The names of schemas anywhere in a part."""
    if isinstance(part, dict):
        if "$ref" in part:
            yield part["$ref"].rpartition("/")[2]
        for value in part.values():
            yield from _referred(value)
    elif isinstance(part, list):
        for value in part:
            yield from _referred(value)


def _fields(schema: Schema, schemas: Schema) -> dict[str, str]:
    """The types of a schema's fields by name."""
    kinds = {key: _type(part, schemas) for key, part in schema["properties"].items()}
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


def _named(name: str) -> str:
    """The name of the class for a schema."""
    return NAMES.get(name, name.removeprefix("Patched").removesuffix("Request"))


def _type(part: Schema, schemas: Schema) -> str:
    """A part of a schema as Python says it."""
    match part:
        case {"$ref": ref}:
            name = ref.rpartition("/")[2]
            has_class = "properties" in schemas[name]
            return _named(name) if has_class else _type(schemas[name], schemas)
        case {"enum": values}:
            return f"Literal[{', '.join(json.dumps(value) for value in values)}]"
        case {"allOf": [one]}:
            return _type(one, schemas)
        case {"oneOf": kinds} | {"anyOf": kinds}:
            return _either(_type(kind, schemas) for kind in kinds)
        case {"type": [*kinds]}:
            return _either(_type({**part, "type": kind}, schemas) for kind in kinds)
        case {"type": "array", "items": items}:
            return f"list[{_type(items, schemas)}]"
        case {"type": "object", "additionalProperties": dict(values)}:
            return f"dict[str, {_type(values, schemas)}]"
    return PLAIN.get(part.get("type", ""), "Any")


def _either(kinds: Iterable[str]) -> str:
    return " | ".join(kinds)
