"""Read the rows of one file of any format, with flat names, plain values and named labels.

The name of a nested column contains a dot. Columns of bytes (pictures, recordings) are left
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

from core.files.damage import describe_damage
from core.text.words import drop_zero_decimals, format_label
from tasks.formats.reading import make_json_reader, make_table_reader, read_json_lines
from tasks.line_files import BadRow, FileError, parse_strict_json

Row = dict[str, Any]
LabelNames = Mapping[str, list[str]]
"""The label names by column. The column's values are indices into this list; -1 means no label."""
BATCH_ROWS = 256
BUFFER_BYTES = 2**20
MAX_INTEGER = 2**63
# OverflowError and SystemError: sizes in a damaged file that no object of Python can have.
READ_ERRORS = (
    *(AttributeError, EOFError, LookupError, OSError, OverflowError),
    *(RuntimeError, SystemError, TypeError, ValueError),
)
"""Exceptions that readers raise for damaged or inconsistent files."""


def iter_rows(name: str, file: BufferedReader, names: LabelNames) -> Iterator[Row]:
    """Yield the rows of a file in the format of its ending, with None for missing values.

    names: label names by column, for files that do not include them. Raises FileError.
    """
    reader = READERS[find_format(name)]
    try:
        yield from reader(file, names)
    except FileError as error:
        raise FileError(f"{name}: {error}") from None
    except READ_ERRORS as error:
        raise FileError(
            f"{name} cannot be read: {describe_damage(error)}. Make it again."
        ) from None


def find_format(name: str) -> str:
    """Return the format of a file by its name, such as parquet; "" if no reader supports it."""
    unpacked_name = name.lower().removesuffix(".gz")
    ending = unpacked_name.rpartition(".")[2]
    is_packed = unpacked_name != name.lower()
    readers: Mapping[str, Any] = READERS
    if is_packed:
        readers = TEXT_READERS
    if ending in readers:
        return ending
    return ""


def map_label_names(features: Any, prefix: str = "") -> dict[str, list[str]]:
    """Return the label names by column from the library's `features`. Nested names have dots."""
    if not isinstance(features, Mapping):
        return {}
    if features.get("_type") == "ClassLabel" and isinstance(features.get("names"), list):
        return {prefix: [str(name) for name in features["names"]]}
    if "_type" in features:
        return map_label_names(features.get("feature"), prefix)
    names_by_column: dict[str, list[str]] = {}
    for name, feature in features.items():
        names_by_column |= map_label_names(feature, f"{prefix}.{name}" if prefix else name)
    return names_by_column


def _read_parquet(file: BufferedReader, names: LabelNames) -> Iterator[Row]:
    from pyarrow import parquet

    # Without reading ahead, which would fetch more of a hub's file than the rows need.
    parquet_file = parquet.ParquetFile(file, pre_buffer=False, buffer_size=BUFFER_BYTES)
    schema = parquet_file.schema_arrow
    columns = _list_readable_columns(schema)
    yield from _iter_batch_rows(
        parquet_file.iter_batches(BATCH_ROWS, columns=columns, use_threads=False), schema, names
    )


def _read_arrow(file: BufferedReader, names: LabelNames) -> Iterator[Row]:
    from pyarrow import ipc

    stream = ipc.open_stream(file)
    columns = _list_readable_columns(stream.schema)
    yield from _iter_batch_rows(_split_batches(stream, columns), stream.schema, names)


def _split_batches(batches: Iterable[Any], columns: list[str]) -> Iterator[Any]:
    """Yield the given columns of record batches, at most BATCH_ROWS rows at a time.

    The writer of a file chooses the size of its batches, which may not fit into our memory as
    Python objects.
    """
    for batch in batches:
        for start in range(0, batch.num_rows, BATCH_ROWS):
            yield batch.slice(start, BATCH_ROWS).select(columns)


def _iter_batch_rows(batches: Iterable[Any], schema: Any, names: LabelNames) -> Iterator[Row]:
    metadata = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
    features = None
    if isinstance(metadata, dict):
        features = metadata.get("info", {}).get("features")
    labels_by_column = {**names, **map_label_names(features)}
    for batch in batches:
        for row in batch.to_pylist():
            yield _name_labels(_flatten_row(row), labels_by_column)


def _list_readable_columns(schema: Any) -> list[str]:
    """Return the names of the columns without binary data."""
    return [field.name for field in schema if not _has_bytes(field.type)]


def _has_bytes(arrow_type: Any) -> bool:
    from pyarrow import types

    if (
        types.is_binary_view(arrow_type)
        or types.is_binary(arrow_type)
        or types.is_large_binary(arrow_type)
    ):
        return True
    # Hashes and the like.
    if types.is_fixed_size_binary(arrow_type):
        return True
    return any(_has_bytes(arrow_type.field(index).type) for index in range(arrow_type.num_fields))


def _make_text_reader(read_lines: Callable[[BufferedReader], Iterator[tuple[int, bytes]]]) -> Any:
    """Return a reader for the rows of a text file, which may be compressed with gzip.

    read_lines: yields the numbered lines.
    """

    def read_rows(file: BufferedReader, names: LabelNames) -> Iterator[Row]:
        is_gzip = file.peek(2)[:2] == b"\x1f\x8b"
        unpacked_file: Any = gzip.GzipFile(fileobj=file) if is_gzip else file
        for number, line in read_lines(io.BufferedReader(unpacked_file) if is_gzip else file):
            try:
                row = parse_strict_json(line.decode())
            except BadRow as error:
                raise FileError(f"row {number}: {error}.") from None
            except UnicodeDecodeError as error:
                raise FileError(f"row {number}: {describe_damage(error)}.") from None
            if not isinstance(row, dict):
                raise FileError(f"row {number} isn't an object; each row must be one.")
            yield _name_labels(_flatten_row(row), names)

    return read_rows


def _flatten_row(row: Mapping[str, Any], prefix: str = "") -> Row:
    flat_row: Row = {}
    for name, value in row.items():
        if isinstance(value, Mapping):
            flat_row |= _flatten_row(value, f"{prefix}{name}.")
        else:
            flat_row[f"{prefix}{name}"] = _convert_to_plain(value)
    return flat_row


def _convert_to_plain(value: Any) -> Any:
    """Return the value in a form that JSON and databases can represent."""
    if isinstance(value, list | tuple):
        return [_convert_to_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(name): _convert_to_plain(item) for name, item in value.items()}
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return None
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, Decimal | datetime.timedelta | UUID):
        return str(value)
    # Databases hold 64 bits.
    if isinstance(value, int) and abs(value) >= MAX_INTEGER:
        return str(value)
    return value


def _name_labels(row: Row, names: LabelNames) -> Row:
    for column, labels in names.items():
        if column in row:
            row[column] = _name_label(row[column], labels)
    return row


def _name_label(value: Any, names: list[str]) -> Any:
    if isinstance(value, list):
        return [_name_label(item, names) for item in value]
    text = None
    if isinstance(value, str | float):
        text = format_label(value)
    if text is not None and text not in names and drop_zero_decimals(text).isdecimal():
        value = int(drop_zero_decimals(text))  # a cell of a table
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
    "dict[str, Callable[[BufferedReader, LabelNames], Iterator[Row]]]",
    {"parquet": _read_parquet, "arrow": _read_arrow, **TEXT_READERS},
)
