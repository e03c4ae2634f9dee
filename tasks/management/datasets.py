"""Command arguments for reading a dataset from a hub or a folder."""

from argparse import ArgumentParser
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from tasks.datasets.reading import RowsQuery, WrittenRows
from tasks.datasets.spool import spool_rows

FOLDER_SOURCE, HUB_SOURCE = "datasets", "hub"
DATASET_SOURCES = (FOLDER_SOURCE, HUB_SOURCE)
ARGUMENT_NAMES = ("revision", "config", "split", "rows", "columns")


def add_dataset_arguments(parser: ArgumentParser) -> None:
    """Add arguments for choosing rows of a dataset, named as in the library `datasets`."""
    argument_group = parser.add_argument_group(
        f"with --from {FOLDER_SOURCE} or --from {HUB_SOURCE}"
    )
    argument_group.add_argument("--config", default="", metavar="NAME", help="its configuration")
    argument_group.add_argument("--split", default="", metavar="NAME", help="such as train")
    argument_group.add_argument(
        "--revision", default="", metavar="COMMIT", help="of the hub; default: the newest"
    )
    argument_group.add_argument("--rows", type=int, default=0, metavar="N", help="only the first N")
    argument_group.add_argument(
        "--columns",
        type=_parse_columns,
        default={},
        metavar="FIELD=COLUMN,...",
        help="the column that fills each field, and no others; default: all of them",
    )


def is_dataset_source(options: Mapping[str, Any], ignored_names: Collection[str] = ()) -> bool:
    """Return whether the rows come from a dataset.

    ignored_names: dataset arguments that other sources accept, too. Raises CommandError if another
    dataset argument is given without a dataset.
    """
    if options["source"] in DATASET_SOURCES:
        return True
    for name in ARGUMENT_NAMES:
        if options[name] and name not in ignored_names:
            raise CommandError(f"--{name} goes with --from {FOLDER_SOURCE} or --from {HUB_SOURCE}.")
    return False


@contextmanager
def open_dataset(
    options: Mapping[str, Any], *, is_plain: bool
) -> Iterator[tuple[WrittenRows, Path]]:
    """Open the dataset that the arguments name, and yield what `spool_rows` yields.

    Raises FileError.
    """
    arguments = {name: options[name] for name in ARGUMENT_NAMES}
    query = RowsQuery(source=options["file"], is_plain=is_plain, **arguments)
    with spool_rows(query, is_on_hub=options["source"] == HUB_SOURCE) as dataset:
        yield dataset


def _parse_columns(text: str) -> Mapping[str, str]:
    pairs = [pair.partition("=") for pair in text.split(",")]
    columns = {field.strip(): column.strip() for field, _, column in pairs}
    # A field that is named twice is one key, so there are fewer keys than pairs.
    if not all(columns) or not all(columns.values()) or len(columns) < len(pairs):
        raise CommandError("--columns: write it as text=sentence,label=label; each field once.")
    return columns
