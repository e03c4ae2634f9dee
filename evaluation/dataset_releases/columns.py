"""The fields of a dataset's rows, read from `columns.yaml`. Files, cards and checks use them.

Fields of Dynabench's own export keep their names; docs/datasets.md lists the differences.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tasks.config.schema import TaskConfig


class Field(NamedTuple):
    """A field of a dataset's rows.

    kind: text, whole, number, flag, image or audio. parts: the fields of a value that is an object.
    needs: the verdict of the tasks whose rows have the field; "": of all.
    """

    name: str
    kind: str
    meaning: str
    parts: tuple["Field", ...] = ()
    depth: int = 0  # 1: a list of such values, 2: a list of lists
    needs: str = ""


def _make_field(*, parts: Sequence[Mapping[str, Any]] = (), **attributes: Any) -> Field:
    return Field(**attributes, parts=tuple(_make_field(**column) for column in parts))


_TABLE = Path(__file__).with_suffix(".yaml").read_text()
FIELDS = tuple(_make_field(**attributes) for attributes in yaml.safe_load(_TABLE))


def list_fields(config: TaskConfig) -> tuple[Field, ...]:
    """Return the fields of the rows of a task, in their order."""
    return tuple(field for field in FIELDS if field.needs in ("", config.verdict.type))


FEATURE_NAMES = (
    "uid", "split", "task", "round", "cid", "context", "tag", "input_json", "withdrawn", "canary",
)  # fmt: skip
"""The fields of a row without its label."""
