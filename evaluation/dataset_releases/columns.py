"""The fields of a dataset's rows: one table, `columns.yaml`, for files, cards and checks.

Names that Dynabench's export has are Dynabench's; docs/datasets.md lists the differences.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml


class Field(NamedTuple):
    """A field of a dataset's rows.

    kind: text, whole, number or flag. parts: the fields of a value that is an object.
    """

    name: str
    kind: str
    meaning: str
    parts: tuple["Field", ...] = ()
    depth: int = 0  # 1: a list of such values, 2: a list of lists


def _make_field(*, parts: Sequence[Mapping[str, Any]] = (), **about: Any) -> Field:
    return Field(**about, parts=tuple(_make_field(**column) for column in parts))


_TABLE = Path(__file__).with_suffix(".yaml").read_text()
FIELDS = tuple(_make_field(**about) for about in yaml.safe_load(_TABLE))
FEATURES = (
    "uid", "split", "task", "round", "cid", "context", "tag", "input_json", "withdrawn", "canary",
)  # fmt: skip
"""What a row without its label has."""
