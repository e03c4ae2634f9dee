"""The data formats of published datasets and annotation tools. Each module here adds one.

A module of this folder that defines `FORMAT` adds a format with the module's name. Pure: no
database.
"""

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from io import StringIO
from pkgutil import iter_modules

from core.plugins import load_plugins
from tasks.formats.base import Format, Item, LeftOutCounts, Record

FORMATS: dict[str, Format] = {
    module_info.name: module.FORMAT
    for module_info in iter_modules(__path__)
    if hasattr(module := import_module(f"{__name__}.{module_info.name}"), "FORMAT")
}
LEFT_OUT_ROWS = "rows"
EXPORT_FORMATS = {
    name: data_format for name, data_format in FORMATS.items() if data_format.build_record
}
"""The formats in which a round can be exported."""


def register_format(name: str, data_format: Format) -> None:
    """Register the format of a plug-in. Raises ValueError if the name is taken."""
    if name in FORMATS:
        raise ValueError(f"The site has a format {name} itself.")
    FORMATS[name] = data_format
    if data_format.build_record:
        EXPORT_FORMATS[name] = data_format


load_plugins("dynabench.formats", Format, register_format)


def write_tool_file(
    items: Iterable[Item], tool: str, left_out_counts: LeftOutCounts | None = None
) -> Iterator[str]:
    """Yield the export for a tool in pieces.

    left_out_counts: counts the rows that the format cannot express.
    """
    data_format = EXPORT_FORMATS[tool]
    records = _write_records(
        items, data_format, LeftOutCounts() if left_out_counts is None else left_out_counts
    )
    if data_format.columns:
        yield from _write_table(records, data_format.columns)
        return
    encoded_records = (json.dumps(record, ensure_ascii=False) for record in records)
    frame_start, frame_end = data_format.frame
    # One record a line.
    if not frame_start:
        yield from (f"{record}\n" for record in encoded_records)
        return
    yield frame_start
    # A list of JSON, with a comma before all records but the first.
    for number, text in enumerate(encoded_records):
        yield f",\n{text}" if number else f"\n{text}"
    yield f"\n{frame_end}\n"


def _write_records(
    items: Iterable[Item], data_format: Format, left_out_counts: LeftOutCounts
) -> Iterator[Record]:
    assert data_format.build_record
    for item in items:
        record = (
            data_format.build_record(item)
            if set(data_format.required_fields) <= item.texts.keys()
            else None
        )
        # A trace has a record for each of its judgements.
        if isinstance(record, Sequence):
            yield from record
        elif record:
            yield record
        if not record:
            left_out_counts[LEFT_OUT_ROWS] += 1


def _write_table(records: Iterable[Record], columns: Sequence[str]) -> Iterator[str]:
    """Yield records as a CSV table, one row at a time."""
    line = StringIO()
    writer = csv.DictWriter(line, columns)
    writer.writeheader()
    for record in records:
        writer.writerow(record)
        yield line.getvalue()
        line.seek(0)
        line.truncate()
    yield line.getvalue()


def build_file_name(stem: str, tool: str) -> str:
    """Return the name of the exported file for a tool."""
    data_format = EXPORT_FORMATS[tool]
    ending = "csv" if data_format.columns else "json" if data_format.frame[0] else "jsonl"
    return f"{stem}-{tool}.{ending}"
