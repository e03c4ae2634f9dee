"""What the client gives back and takes, as the text of dynabench/client/types.py."""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TYPES = ROOT / "dynabench" / "client" / "types.py"
SHAPES = (
    *("Me", "Task", "FullTask", "Round", "Statistics"),
    *("Dataset", "EvaluationSet", "Check", "Upload", "Quota"),
    *("Model", "WholeModel", "Run", "WholeRun", "Score"),
    *("Assignment", "Example", "JudgedExample", "Item", "OwnValidation"),
    *("Seen", "Compared", "ListedSnapshot", "OneSnapshot"),
    *("Config", "ChangedConfig", "RoundPlanRequest", "Context", "ImportedContexts"),
    *("Release", "NewReleaseRequest", "Training", "WholeTraining", "NewTrainingRequest"),
    *("PatchedAboutSetRequest", "ReviewItem", "Decision"),
    *("Policy", "ChangedPolicy", "NewPolicyRequest"),
    *("WebhookShown", "WebhookMade", "WebhookNewRequest", "PatchedWebhookChangeRequest"),
    *("DeliveryShown", "NewTaskRequest", "MadeTask", "PatchedTaskChangeRequest", "Member"),
    *("ContextBatch", "TargetModel", "TargetSettingsRequest", "TargetTest", "Generator"),
    "GeneratorRequest",
    *("PastDecision", "Gold", "Report", "Author", "Validator", "Activity", "SecondOpinion"),
    "WrongPage",
)
"""The schemas that methods return or take; those that they refer to come along."""
NAMES = {
    "Seen": "Leaderboard",
    "WebhookShown": "Webhook",
    "DeliveryShown": "Delivery",
    "GeneratorRequest": "GeneratorSettings",
}
"""What people read elsewhere, where a name of the server says little at the client."""
HEAD = '''"""What methods return, and some take: plain dictionaries, with the keys of the API.

Made by scripts/client_types.py from the schema of the API. Times are ISO 8601, in UTC.
"""

from __future__ import annotations  # they name each other

from typing import Any, Literal, NotRequired, TypedDict

Results = dict[str, Any]
"""Of `get_results`. No TypedDict, as each task has its rounds. Its keys:

- `model`, `name`, `task`; `phase` (one word), `sentence`, `is_over`: how far it is;
- `dynascore`, `dynascore_low`, `dynascore_high` in percent, `rank`;
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
    license: str
    paper_url: str
    parameters: int | None


class Flag(TypedDict, total=False):
    """Why an example cannot be used."""

    flag_reason: str
    comment: str
'''
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


def made(api: Schema) -> str:
    """The text of the file for an OpenAPI schema."""
    schemas = api["components"]["schemas"]
    wanted = sorted(_with_all_below(schemas, SHAPES), key=_named)
    text = "\n\n".join([HEAD, *(_class(name, schemas) for name in wanted)])
    formatted = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--stdin-filename", TYPES, "-"],
        input=text, text=True, capture_output=True, check=True,
    )  # fmt: skip
    return formatted.stdout


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


def _class(name: str, schemas: Schema) -> str:
    schema = schemas[name]
    said = schema.get("description", "").partition("\n")[0]
    lines = [f"class {_named(name)}(TypedDict):", f'    """{said}"""']
    for key, part in schema["properties"].items():
        kind = _type(part, schemas)
        may_lack = key not in schema.get("required", ())
        lines.append(f"    {key}: " + (f"NotRequired[{kind}]" if may_lack else kind))
    return "\n".join(lines)


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
