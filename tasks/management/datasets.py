"""Arguments of commands that read a data set of a hub or of a folder."""

from argparse import ArgumentParser
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from tasks.datasets.reading import RowsQuery, WrittenRows
from tasks.datasets.spool import spool_rows

FOLDER, HUB = "datasets", "hub"
DATASET_SOURCES = (FOLDER, HUB)
ARGUMENT_NAMES = ("revision", "config", "split", "rows", "columns")


def add_dataset_arguments(parser: ArgumentParser) -> None:
    """Add the arguments that choose rows of a dataset, named as in the library `datasets`."""
    about = parser.add_argument_group(f"with --from {FOLDER} or --from {HUB}")
    about.add_argument("--config", default="", metavar="NAME", help="its configuration")
    about.add_argument("--split", default="", metavar="NAME", help="such as train")
    about.add_argument(
        "--revision", default="", metavar="COMMIT", help="of the hub; default: the newest"
    )
    about.add_argument("--rows", type=int, default=0, metavar="N", help="the first N alone")
    about.add_argument(
        "--columns",
        type=_parse_columns,
        default={},
        metavar="FIELD=COLUMN,...",
        help="the column that fills each field, and no others; default: all of them",
    )


def is_dataset(options: Mapping[str, Any], ignored_names: Collection[str] = ()) -> bool:
    """Return whether the rows come from a dataset.

    ignored_names: dataset arguments that other sources accept, too. Raises CommandError if another
    dataset argument is given without a dataset.
    """
    if options["source"] in DATASET_SOURCES:
        return True
    for name in ARGUMENT_NAMES:
        if options[name] and name not in ignored_names:
            raise CommandError(f"--{name} goes with --from {FOLDER} or --from {HUB}.")
    return False


@contextmanager
def open_dataset(
    options: Mapping[str, Any], *, is_plain: bool
) -> Iterator[tuple[WrittenRows, Path]]:
    """Yield the rows that the arguments name, as `spool_rows` does. Raises FileError."""
    arguments = {name: options[name] for name in ARGUMENT_NAMES}
    query = RowsQuery(where=options["file"], is_plain=is_plain, **arguments)
    with spool_rows(query, of_hub=options["source"] == HUB) as dataset:
        yield dataset


def _parse_columns(text: str) -> Mapping[str, str]:
    pairs = [pair.partition("=") for pair in text.split(",")]
    columns = {field.strip(): column.strip() for field, _, column in pairs}
    # A field that is named twice is one key, so there are fewer keys than pairs.
    if not all(columns) or not all(columns.values()) or len(columns) < len(pairs):
        raise CommandError("--columns: write it as text=sentence,label=label; each field once.")
    return columns
