"""Reads of datasets' rows."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from annotation.models import Example
from evaluation.models import Dataset
from evaluation.releases.rows import Freezer, to_json
from tasks.models import Round

DECODED = ("input_json", "output_json", "metadata_json")


def split_rows(dataset: Dataset, split: str) -> Iterator[Mapping[str, Any]]:
    """The rows of `train`, `dev` or `test` in their order, labels included, without tombstones.

    Streams, so any size fits into memory. Fields as in docs/datasets.md, but for `context`, which
    is the context's own fields here, and the JSON in `DECODED`, which is read.
    """
    items = dataset.items.filter(split=split, is_withdrawn=False).order_by("position")
    for line in items.values_list("line", flat=True).iterator(chunk_size=2000):
        row = json.loads(line)
        decoded = {name: json.loads(row[name]) for name in DECODED if row[name]}
        yield {**row, **decoded, "context": json.loads(row["context"]["context_json"])}


def standing_lines(round: Round) -> Iterator[str]:
    """Every example of a round that stands, judged or not, as a line of JSON; streams.

    Fields as in a dataset, people's names too; `split` is empty.
    """
    examples = Example.objects.filter(round=round, retracted_at__isnull=True)
    for chunk in Freezer(round).chunks(examples):
        yield "".join(f"{to_json(frozen.row)}\n" for frozen in chunk)
