"""The layouts in which the field publishes data and tools export it: a new module is a new one.

A module of this folder with a `FORMAT` is one, by the module's name. Pure: no database.
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
TOOL_FORMATS = {name: form for name, form in FORMATS.items() if form.write}
"""Those in which a round goes out again."""


def register_format(name: str, form: Format) -> None:
    """Register the format of a plug-in. Raises ValueError if the name is taken."""
    if name in FORMATS:
        raise ValueError(f"The site has a format {name} itself.")
    FORMATS[name] = form
    if form.write:
        TOOL_FORMATS[name] = form


load_plugins("dynabench.formats", Format, register_format)


def write_tool_file(
    items: Iterable[Item], tool: str, left_out_counts: LeftOutCounts | None = None
) -> Iterator[str]:
    """Yield the file of a tool in pieces.

    left_out_counts: counts the rows that the layout cannot express.
    """
    form = TOOL_FORMATS[tool]
    records_found = _write_records(
        items, form, LeftOutCounts() if left_out_counts is None else left_out_counts
    )
    if form.columns:
        yield from _write_table(records_found, form.columns)
        return
    records = (json.dumps(record, ensure_ascii=False) for record in records_found)
    frame_start, frame_end = form.frame
    # One record a line.
    if not frame_start:
        yield from (f"{record}\n" for record in records)
        return
    yield frame_start
    # A list of JSON, with a comma before all records but the first.
    for number, text in enumerate(records):
        yield f",\n{text}" if number else f"\n{text}"
    yield f"\n{frame_end}\n"


def _write_records(
    items: Iterable[Item], form: Format, left_out_counts: LeftOutCounts
) -> Iterator[Record]:
    assert form.write
    for item in items:
        record = form.write(item) if set(form.needs) <= item.texts.keys() else None
        if record:
            yield record
        else:
            left_out_counts[LEFT_OUT_ROWS] += 1


def _write_table(records: Iterable[Record], columns: Sequence[str]) -> Iterator[str]:
    """Yield a table in CSV, one row at a time."""
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
    """Return the name of a tool's file."""
    form = TOOL_FORMATS[tool]
    ending = "csv" if form.columns else "json" if form.frame[0] else "jsonl"
    return f"{stem}-{tool}.{ending}"
