"""A dataset's rows as files: JSON lines and Parquet, written as they are read."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluation.releases.columns import FIELDS, Field

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK = 4 * 1024 * 1024
"""Bytes of lines that are kept before they are written; a row group of the Parquet file."""


def arrow_schema() -> "pa.Schema":
    """The columns of the Parquet files."""
    import pyarrow as pa

    return pa.schema([(field.name, _arrow_type(field)) for field in FIELDS])


def _arrow_type(field: Field) -> Any:
    import pyarrow as pa

    kinds = {"text": pa.string(), "whole": pa.int64(), "number": pa.float64(), "flag": pa.bool_()}
    found = kinds.get(field.kind) or pa.struct([(p.name, _arrow_type(p)) for p in field.parts])
    for _ in range(field.depth):
        found = pa.list_(found)
    return found


class SplitFiles:
    """`<name>.jsonl` and `<name>.parquet` in a folder, written side by side.

    Lines go out as they come in, so both files say the same; Arrow reads the Parquet rows from
    those very bytes, in C++. At most `BLOCK` bytes wait in memory.
    """

    def __init__(self, folder: Path, name: str):
        import pyarrow.parquet as pq

        self._schema = arrow_schema()
        self._lines = (folder / f"{name}.jsonl").open("wb")
        self._table = pq.ParquetWriter(folder / f"{name}.parquet", self._schema, compression="zstd")
        self._waiting: list[bytes] = []
        self._size = 0

    def write(self, line: str) -> None:
        """Add a row, as JSON without a line end."""
        data = line.encode() + b"\n"
        self._waiting.append(data)
        self._size += len(data)
        if self._size >= BLOCK:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa
        import pyarrow.json

        if not self._waiting:
            return
        block = b"".join(self._waiting)
        self._waiting, self._size = [], 0
        self._lines.write(block)
        table = pyarrow.json.read_json(
            pa.BufferReader(block),
            read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=len(block) + 1),
            parse_options=pyarrow.json.ParseOptions(
                explicit_schema=self._schema, unexpected_field_behavior="error"
            ),
        )
        self._table.write_table(table)

    def close(self) -> None:
        """Write what waits, and the ends of both files."""
        self._flush()
        self._lines.close()
        self._table.close()


def digest_of(path: Path) -> str:
    """The sha256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
