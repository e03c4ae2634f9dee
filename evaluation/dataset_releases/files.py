"""Write a dataset's rows as files: JSON lines and Parquet, row by row."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluation.dataset_releases.columns import Field, list_fields
from evaluation.dataset_releases.media_files import (
    MediaFiles,
    MediaValues,
    encode_features,
    make_media_columns,
)
from tasks.config.schema import TaskConfig

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK_BYTES = 4 * 1024 * 1024
"""The number of bytes to buffer before writing. Each block is a row group of the Parquet file."""


def make_arrow_schema(config: TaskConfig) -> "pa.Schema":
    """Return the schema of a task's files, without the columns of pictures and recordings."""
    import pyarrow as pa

    return pa.schema([(field.name, _find_arrow_type(field)) for field in list_fields(config)])


def _add_media_columns(schema: "pa.Schema", config: TaskConfig) -> "pa.Schema":
    import pyarrow as pa

    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    for column in make_media_columns(config):
        schema = schema.append(pa.field(column.name, kind))
    return schema.with_metadata({"huggingface": encode_features(config)})


def _find_arrow_type(field: Field) -> Any:
    import pyarrow as pa

    kinds = {"text": pa.string(), "whole": pa.int64(), "number": pa.float64(), "flag": pa.bool_()}
    arrow_type = kinds.get(field.kind)
    if arrow_type is None:
        arrow_type = pa.struct([(column.name, _find_arrow_type(column)) for column in field.parts])
    for _ in range(field.depth):
        arrow_type = pa.list_(arrow_type)
    return arrow_type


class SplitWriter:
    """A writer of `<name>.jsonl` and `<name>.parquet` in a folder, both with the same rows.

    Arrow parses the Parquet rows from the bytes of the JSON lines, in C++. At most `BLOCK_BYTES`
    are buffered. media: a reader of the files that rows name, which become columns of the Parquet
    file.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        config: TaskConfig,
        media: MediaFiles | None = None,
        is_public: bool = True,
    ):
        import pyarrow.parquet as pq

        self._schema, self._media, self._is_public = make_arrow_schema(config), media, is_public
        self._whole = _add_media_columns(self._schema, config) if media else self._schema
        # Both files stay open until `close`, because rows of all splits are mixed.
        self._lines = (folder / f"{name}.jsonl").open("wb")
        self._table = pq.ParquetWriter(folder / f"{name}.parquet", self._whole, compression="zstd")
        self._buffered_lines: list[bytes] = []
        self._files: list[MediaValues] = []
        self._size = 0

    def write(self, line: str) -> None:
        """Add a row, given as JSON without a line end."""
        data = line.encode() + b"\n"
        self._buffered_lines.append(data)
        self._size += len(data)
        if self._media:
            media_values = self._media.read_row(line, self._is_public)
            self._files.append(media_values)
            self._size += sum(len(value["bytes"]) for value in media_values.values() if value)
        if self._size >= BLOCK_BYTES:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa
        import pyarrow.json

        if not self._buffered_lines:
            return
        # Arrow parses exactly the bytes of the JSON lines.
        block = b"".join(self._buffered_lines)
        self._buffered_lines, self._size = [], 0
        self._lines.write(block)
        table = pyarrow.json.read_json(
            pa.BufferReader(block),
            # One block, so that Arrow does not split it within a line.
            read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=len(block) + 1),
            parse_options=pyarrow.json.ParseOptions(
                explicit_schema=self._schema, unexpected_field_behavior="error"
            ),
        )
        for column in self._whole.names[len(self._schema.names) :]:
            values = pa.array([row[column] for row in self._files], self._whole.field(column).type)
            table = table.append_column(self._whole.field(column), values)
        self._files = []
        self._table.write_table(table.cast(self._whole))

    def close(self) -> None:
        """Write the buffered rows and close both files."""
        self._flush()
        self._lines.close()
        self._table.close()


def compute_digest(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
