"""Find the files of a released version that contain the rows of its splits."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from evaluation.models import Dataset, DatasetFile

FORMATS = {"jsonl": "JSONL", "parquet": "Parquet"}
"""The displayed names of the formats of rows, by file name extension."""
UNLABELLED = "-unlabelled"
"""The end of a split's file name if the file contains no labels."""


@dataclass(frozen=True)
class SplitFile:
    """A file with a split's rows, and its displayed name."""

    file: DatasetFile
    words: str


@dataclass(frozen=True)
class ReleaseSplit:
    """A split of a released version: its name, its numbers of rows and authors, its files."""

    name: str
    rows: int
    authors: int
    withdrawn: int
    files: list[SplitFile]


def list_splits(dataset: Dataset, files: Sequence[DatasetFile]) -> list[ReleaseSplit]:
    """Return the splits of a finished version, with those of the files that contain their rows.

    No query. files: the files of the version that the reader may download.
    """
    numbers = dataset.numbers
    splits = []
    for name, rows in numbers.get("rows", {}).items():
        splits.append(
            ReleaseSplit(
                name=name,
                rows=rows,
                authors=numbers.get("authors", {}).get(name, 0),
                withdrawn=numbers.get("withdrawn", {}).get(name, 0),
                files=_find_split_files(files, name),
            )
        )
    return splits


def _find_split_files(files: Sequence[DatasetFile], split: str) -> list[SplitFile]:
    split_files = []
    for file in files:
        stem, _dot, ending = file.name.partition(".")
        # A private test split has labels for members alone, and a public file without them.
        if ending not in FORMATS or stem.removesuffix(UNLABELLED) != split:
            continue
        words = FORMATS[ending]
        if stem.endswith(UNLABELLED):
            words = _("%(format)s without labels") % {"format": words}
        split_files.append(SplitFile(file, words))
    return split_files
