"""Reads of datasets' rows."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from evaluation.models import Dataset


def split_rows(dataset: Dataset, split: str) -> Iterator[Mapping[str, Any]]:
    """The rows of `train`, `dev` or `test` in their order, labels included, without tombstones.

    Streams, so any size fits into memory. docs/datasets.md has the fields.
    """
    items = dataset.items.filter(split=split, is_withdrawn=False).order_by("position")
    for line in items.values_list("line", flat=True).iterator(chunk_size=2000):
        yield json.loads(line)
