"""The rows of one file, whatever its format: flat names, plain values, labels by their names.

A column within a column gets a name with a dot. Columns of bytes (pictures, recordings) are left
out.
"""

import datetime
import gzip
import io
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from io import BufferedReader
from typing import Any, cast
from uuid import UUID

from core.files.damage import damage_of
from core.text.words import label_text, whole_label
from tasks.formats.reading import make_json_reader, make_table_reader, read_json_lines
from tasks.line_files import BadRow, FileError, strict_json

Row = dict[str, Any]
Names = Mapping[str, list[str]]
"""The names of a column's labels, which its values count from 0; -1 is none."""
BATCH_ROWS = 256
BUFFER_BYTES = 2**20
LARGEST_INTEGER = 2**63
# OverflowError and SystemError: sizes in a damaged file that no object of Python can have.
READ_ERRORS = (
    *(AttributeError, EOFError, LookupError, OSError, OverflowError),
    *(RuntimeError, SystemError, TypeError, ValueError),
)
"""What readers raise where a file is damaged, or says of itself what makes no sense."""


def iter_rows(name: str, file: BufferedReader, names: Names) -> Iterator[Row]:
    """Yield the rows of a file in the format of its ending, with None for missing values.

    names: label names by column, for files that do not include them. Raises FileError.
    """
    read = READERS[find_format(name)]
    try:
        yield from read(file, names)
    except FileError as error:
        raise FileError(f"{name}: {error}") from None
    except READ_ERRORS as error:
        raise FileError(f"{name} cannot be read: {damage_of(error)}. Make it again.") from None


def find_format(name: str) -> str:
    """Return the format of a file name, such as parquet; "" if no reader supports it."""
    plain = name.lower().removesuffix(".gz")
    ending = plain.rpartition(".")[2]
    is_packed = plain != name.lower()
    readers: Mapping[str, Any] = READERS
    if is_packed:
        readers = TEXT_READERS
    if ending in readers:
        return ending
    return ""


def map_label_names(features: Any, at: str = "") -> dict[str, list[str]]:
    """Return the label names of the library's `features`, by flattened column name."""
    if not isinstance(features, Mapping):
        return {}
    if features.get("_type") == "ClassLabel" and isinstance(features.get("names"), list):
        return {at: [str(name) for name in features["names"]]}
    if "_type" in features:
        return map_label_names(features.get("feature"), at)
    names_by_column: dict[str, list[str]] = {}
    for name, feature in features.items():
        names_by_column |= map_label_names(feature, f"{at}.{name}" if at else name)
    return names_by_column


def _read_parquet(file: BufferedReader, names: Names) -> Iterator[Row]:
    from pyarrow import parquet

    # Without reading ahead, which would fetch more of a hub's file than the rows need.
    parquet_file = parquet.ParquetFile(file, pre_buffer=False, buffer_size=BUFFER_BYTES)
    schema = parquet_file.schema_arrow
    columns = _list_readable_columns(schema)
    yield from _iter_batch_rows(
        parquet_file.iter_batches(BATCH_ROWS, columns=columns, use_threads=False), schema, names
    )


def _read_arrow(file: BufferedReader, names: Names) -> Iterator[Row]:
    from pyarrow import ipc

    opened = ipc.open_stream(file)
    columns = _list_readable_columns(opened.schema)
    yield from _iter_batch_rows(_split_batches(opened, columns), opened.schema, names)


def _split_batches(batches: Iterable[Any], columns: list[str]) -> Iterator[Any]:
    """Yield some columns of record batches, at most BATCH_ROWS rows at a time.

    The writer of a file chooses the size of its batches, which may not fit our memory as Python
    objects.
    """
    for batch in batches:
        for start in range(0, batch.num_rows, BATCH_ROWS):
            yield batch.slice(start, BATCH_ROWS).select(columns)


def _iter_batch_rows(batches: Iterable[Any], schema: Any, names: Names) -> Iterator[Row]:
    metadata = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
    features = None
    if isinstance(metadata, dict):
        features = metadata.get("info", {}).get("features")
    labels_by_column = {**names, **map_label_names(features)}
    for batch in batches:
        for row in batch.to_pylist():
            yield _name_labels(_flatten(row), labels_by_column)


def _list_readable_columns(schema: Any) -> list[str]:
    """Return the names of the columns without binary data."""
    return [field.name for field in schema if not _has_bytes(field.type)]


def _has_bytes(kind: Any) -> bool:
    from pyarrow import types

    if types.is_binary_view(kind) or types.is_binary(kind) or types.is_large_binary(kind):
        return True
    # Hashes and the like.
    if types.is_fixed_size_binary(kind):
        return True
    return any(_has_bytes(kind.field(place).type) for place in range(kind.num_fields))


def _make_text_reader(read_lines: Callable[[BufferedReader], Iterator[tuple[int, bytes]]]) -> Any:
    """Return a reader for the rows of a text file, which may be compressed with gzip."""

    def rows(file: BufferedReader, names: Names) -> Iterator[Row]:
        is_gzip = file.peek(2)[:2] == b"\x1f\x8b"
        packed: Any = gzip.GzipFile(fileobj=file) if is_gzip else file
        for number, line in read_lines(io.BufferedReader(packed) if is_gzip else file):
            try:
                row = strict_json(line.decode())
            except BadRow as error:
                raise FileError(f"row {number}: {error}.") from None
            except UnicodeDecodeError as error:
                raise FileError(f"row {number}: {damage_of(error)}.") from None
            if not isinstance(row, dict):
                raise FileError(f"row {number} is no object; each row must be one.")
            yield _name_labels(_flatten(row), names)

    return rows


def _flatten(row: Mapping[str, Any], at: str = "") -> Row:
    flat_row: Row = {}
    for name, value in row.items():
        if isinstance(value, Mapping):
            flat_row |= _flatten(value, f"{at}{name}.")
        else:
            flat_row[f"{at}{name}"] = _to_plain(value)
    return flat_row


def _to_plain(value: Any) -> Any:
    """Convert a value to one that JSON and a database can hold."""
    if isinstance(value, list | tuple):
        return [_to_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(name): _to_plain(item) for name, item in value.items()}
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return None
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, Decimal | datetime.timedelta | UUID):
        return str(value)
    # Databases hold 64 bits.
    if isinstance(value, int) and abs(value) >= LARGEST_INTEGER:
        return str(value)
    return value


def _name_labels(row: Row, names: Names) -> Row:
    for column, labels in names.items():
        if column in row:
            row[column] = _name_label(row[column], labels)
    return row


def _name_label(value: Any, names: list[str]) -> Any:
    if isinstance(value, list):
        return [_name_label(item, names) for item in value]
    text = None
    if isinstance(value, str | float):
        text = label_text(value)
    if text is not None and text not in names and whole_label(text).isdecimal():
        value = int(whole_label(text))  # a cell of a table
    # `type` and not isinstance: true is no label number.
    if type(value) is not int:
        return value
    if 0 <= value < len(names):
        return names[value]
    return None


TEXT_READERS = {
    "jsonl": _make_text_reader(read_json_lines),
    "ndjson": _make_text_reader(read_json_lines),
    "json": _make_text_reader(make_json_reader()),
    "csv": _make_text_reader(make_table_reader()),
    "tsv": _make_text_reader(make_table_reader("tsv")),
}
READERS = cast(
    "dict[str, Callable[[BufferedReader, Names], Iterator[Row]]]",
    {"parquet": _read_parquet, "arrow": _read_arrow, **TEXT_READERS},
)
