"""Files in a published layout, alone, in a folder or in a .zip archive, record by record."""

import gzip
import io
import itertools
import json
import re
import sqlite3
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, cast

import ijson

from core.files.damage import damage_of
from tasks.formats.base import ASKED, FREE, LEFT, NOTED, Format, Line, Numbered, Part, Record
from tasks.line_files import (
    DEEPEST,
    NOT_UTF8,
    PART,
    BadRow,
    FileError,
    LineError,
    plain_lines,
    strict_json,
    unstorable,
)
from tasks.table_files import read_table

LONGEST_LINE = 16 * 2**20
PEEKED = 2**12
MARK = b"\xef\xbb\xbf"
"""What some programs put before UTF-8."""
ONE_OBJECT = "It is one JSON object over several lines, not a list of records."
OPENING, CLOSING = ("start_map", "start_array"), ("end_map", "end_array")
ENCRYPTED = 1
PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
ABOUT = (LEFT, FREE, ASKED, NOTED)
NO_QUESTION = "\0"
"""The name of no question: answers are not read, whatever they are."""
Named = tuple[str, Callable[[], IO[bytes]]]
Found = tuple[str, str, bytes]
"""Where a record stands, the name of its file, and the record as JSON."""


class _Refused(Exception):
    """Raised for a record that exceeds the limit in the message."""


class _Measured:
    """A file that stops being read if one record takes more than LONGEST_LINE bytes."""

    def __init__(self, file: BufferedReader):
        self._file = file
        self.since = 0

    def read(self, size: int) -> bytes:
        self.since += size
        # Counted since the last record, as the parser reads ahead in blocks.
        if self.since > LONGEST_LINE:
            raise _Refused(f"{LONGEST_LINE >> 20} MiB")
        return self._file.read(size)


def _shallow(events: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Yield the parser's events. Raises _Refused above DEEPEST open brackets, which cost memory."""
    depth = 0
    for event in events:
        depth += (event[0] in OPENING) - (event[0] in CLOSING)
        if depth > DEEPEST:
            raise _Refused(f"{DEEPEST} brackets within brackets")
        yield event


def starts_as_json(file: BufferedReader) -> bool:
    """Return whether a file begins like JSON or is empty."""
    return file.peek(PEEKED).removeprefix(MARK).lstrip()[:1] in (b"", b"[", b"{")


def json_lines(file: BufferedReader) -> Iterator[Numbered]:
    """Yield the numbered lines of a file. An endless line is cut, and so is not valid JSON."""
    _skip_mark(file)
    for number, line in enumerate(_lines(file), 1):
        if line.strip():
            yield number, line


def json_items(prefix: str = "item") -> Callable[[BufferedReader], Iterator[Numbered]]:
    """Return a reader for a list within one large JSON value, one element at a time.

    prefix: the path of the elements, as in ijson. A file of JSON lines is read, too.
    """

    def read(file: BufferedReader) -> Iterator[Numbered]:
        _skip_mark(file)
        if prefix == "item" and file.peek(PEEKED).lstrip()[:1] != b"[":
            if file.peek(PEEKED).lstrip().splitlines()[:1] == [b"{"]:
                raise FileError(ONE_OBJECT)
            yield from json_lines(file)
            return
        number, measured = 0, _Measured(file)
        events = ijson.parse(_shallow(ijson.basic_parse(measured, use_float=True)))
        try:
            for number, item in enumerate(ijson.items(events, prefix), 1):
                yield number, json.dumps(item).encode()
                measured.since = 0
        except _Refused as error:
            raise FileError(f"Record {number + 1} has more than {error}; leave it out.") from None
        except (ijson.JSONError, ValueError):
            raise FileError(f"No JSON in UTF-8 after record {number}; export it again.") from None

    return read


def table(ending: str = "csv") -> Callable[[BufferedReader], Iterator[Numbered]]:
    """Return a reader for rows under a header."""

    def read(file: BufferedReader) -> Iterator[Numbered]:
        for row in read_table(_lines(file), list, lambda name, cell: cell, ending):
            if isinstance(row, LineError):
                raise FileError(f"line {row.line}: {row.message}.")
            yield row.line, json.dumps(row.values).encode()

    return read


def lines_of(path: Path, form: Format, question: str = "") -> Iterator[Line]:
    """Yield the records of a file, folder or archive, each with its row.

    question: the only question whose answers are read, if the layout names questions.
    Raises FileError, OSError.
    """
    records = _records(path, form)
    if not form.row_of_all:
        form = _asking(form, question)
    # Each record is an item of its own.
    if not form.same:
        for place, name, text in records:
            yield _line(place, [(name, text)], form)
        return
    # Records of one item may be anywhere in the files, so all are kept until they are joined.
    with closing(sqlite3.connect("")) as items:  # a temporary file once it grows
        _keep(items, records, form)
        # What a record means depends on all others, so they are read twice.
        if form.row_of_all:
            row = form.row_of_all(_kept_parts(items))
            form = _asking(replace(form, row=row), question)
        stored = items.execute("SELECT place, name, text, first FROM part ORDER BY first, rowid")
        for _, parts in itertools.groupby(stored, lambda part: part[3]):
            yield _joined(parts, form)


def _asking(form: Format, question: str) -> Format:
    """Return the layout limited to answers to the question, if one is given."""
    only, row = form.only, form.row
    if not (question and only):
        return form

    def row_of_question(parts: Sequence[Part]) -> Record | None:
        return row([(name, only(record, question)) for name, record in parts])

    return replace(form, row=row_of_question)


def _kept_parts(items: sqlite3.Connection) -> Iterator[Part]:
    """Yield all stored records that can be parsed."""
    for name, text in items.execute("SELECT name, text FROM part"):
        with suppress(BadRow):
            yield name, _record(text)


def _joined(parts: Iterator[tuple[str, str, bytes, int]], form: Format) -> Line:
    """Return the line for all records of one item."""
    place, name, text, _ = next(parts)
    texts, size = [(name, text)], len(text)
    for _, name, more, _ in parts:
        size += len(more)
        # Beyond the limit they are only counted, so that an item never takes all the memory.
        if size <= LONGEST_LINE:
            texts.append((name, more))
    if size > LONGEST_LINE:
        wrong = f"its records have more than {LONGEST_LINE >> 20} MiB together; leave some out"
        return Line(place, text, None, wrong)
    return _line(place, texts, form)


def _keep(items: sqlite3.Connection, records: Iterator[Found], form: Format) -> None:
    """Store all records. `first` is the number of the first record of the same item."""
    items.execute("CREATE TABLE part (place, name, text, first)")
    items.execute("CREATE TABLE item (same PRIMARY KEY, first) WITHOUT ROWID")
    for number, (place, name, text) in enumerate(records):
        same = _named_by(text, form) or f"{number} has no name"
        items.execute("INSERT OR IGNORE INTO item VALUES (?, ?)", (same, number))
        items.execute(
            "INSERT INTO part SELECT ?, ?, ?, first FROM item WHERE same = ?",
            (place, name, text, same),
        )


def _named_by(text: bytes, form: Format) -> str:
    """Return the id of the item that a record describes; "" without one."""
    try:
        return cast("Callable[[Record], str]", form.same)(_record(text))
    except (BadRow, KeyError):
        return ""


def _line(place: str, texts: list[tuple[str, bytes]], form: Format) -> Line:
    try:
        parts: list[Part] = [(name, _record(text)) for name, text in texts]
        row = form.row(parts)
        about: dict[str, Any] = {}
        for key in ABOUT:
            if row is not None and key in row:
                about[key] = row.pop(key)
        return Line(
            place,
            texts[0][1],
            row,
            left=about.get(LEFT, {}),
            is_free=about.get(FREE, False),
            questions=about.get(ASKED, ()),
            noted=about.get(NOTED, {}),
        )
    except BadRow as error:
        return Line(place, texts[0][1], None, str(error))


def _record(text: bytes) -> Record:
    """Parse a JSON object. Raises BadRow."""
    try:
        record = strict_json(text.decode())
    except UnicodeDecodeError as error:
        raise BadRow(f"byte {error.start + 1} is {NOT_UTF8}") from None
    if not isinstance(record, dict):
        raise BadRow("it must be an object with one example")
    if reason := unstorable(record):
        raise BadRow(reason)
    return record


def _records(path: Path, form: Format) -> Iterator[Found]:
    """Yield every record of the files, ordered by file name. Raises FileError."""
    if not path.is_dir() and path.suffix.lower() != ".zip":
        yield from _read("", (str(path.absolute()), partial(_open, path)), form)
        return
    _check_members([name for name, _ in _members(path)], form)
    for member in _members(path):
        if _is_named(form.files, member[0]):
            yield from _read(f"{member[0]}:", member, form)


def _check_members(names: Sequence[str], form: Format) -> None:
    """Raise FileError for a folder without files of the layout, or with only its other exports."""
    if not any(_is_named(form.files, name) for name in names):
        raise FileError(f"It holds no file of {form.title}.{_cure(form)}")
    if not form.others or any(_is_named(form.answers, name) for name in names):
        return
    unread = []
    for name in names:
        if _is_named(form.others, name):
            unread.append(name)
    if unread:
        listed = ", ".join(unread[:3])
        raise FileError(f"The answers are in {listed}, which are not read.{_cure(form)}")


def _is_named(names: str, name: str) -> bool:
    return re.search(names, name, re.IGNORECASE) is not None


def _cure(form: Format) -> str:
    """Return advice about which export to choose instead."""
    if form.choose:
        return f" Choose {form.choose} where {form.title} exports."
    if form.instead:
        return f" {form.instead}."
    return f" Their names match {form.files}."


def _read(at: str, member: Named, form: Format) -> Iterator[Found]:
    """Yield the records of one file. Raises FileError.

    at: the prefix of their positions.
    """
    name, opened = member
    # The name becomes a part of messages and rows.
    if reason := unstorable(name):
        raise FileError(f"The file's name {name!a} has {reason}.")
    try:
        with opened() as packed, io.BufferedReader(cast(Any, packed)) as file:
            plain = _unpacked(file)
            _check_json(plain, form)
            for number, record in form.read(plain):
                yield f"{at}{number}", name, record
    except FileError as error:
        cure = ""
        if str(error) == ONE_OBJECT:
            cure = _cure(form)
        raise FileError(f"{at} {error}{cure}".strip()) from None
    except (EOFError, gzip.BadGzipFile, zipfile.BadZipFile, zlib.error) as error:
        raise FileError(f"{at} Damaged file: {damage_of(error)}. Pack it again.".strip()) from None


def _check_json(file: BufferedReader, form: Format) -> None:
    """Raise FileError if a file is not JSON and the tool also exports other formats."""
    if form.choose and not starts_as_json(file):
        raise FileError(f"It is no JSON.{_cure(form)}")


def _members(path: Path) -> Iterator[Named]:
    """Yield the files of a folder or an archive, ordered by name. Raises FileError."""
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.is_file():
                yield file.relative_to(path).as_posix(), partial(_open, file)
        return
    try:
        with zipfile.ZipFile(path) as archive:
            for info in sorted(archive.infolist(), key=lambda info: info.filename):
                # Before anything is read, so that the message names the file.
                if info.flag_bits & ENCRYPTED or info.compress_type not in PACKED:
                    raise FileError(f"{info.filename!a} is locked or packed oddly; pack it again.")
                # What macOS adds to archives.
                if not info.filename.startswith("__MACOSX/"):
                    yield info.filename, partial(archive.open, info)
    except zipfile.BadZipFile:
        raise FileError("No .zip archive that can be read. Pack it again.") from None


def _open(path: Path) -> IO[bytes]:
    return path.open("rb")


def _unpacked(file: BufferedReader) -> BufferedReader:
    is_gzip = file.peek(2)[:2] == b"\x1f\x8b"
    if is_gzip:
        return io.BufferedReader(cast(Any, gzip.GzipFile(fileobj=file)))
    return file


def _lines(file: BufferedReader) -> Iterator[bytes]:
    """Yield the lines of a file. An endless line is cut."""
    return plain_lines(iter(partial(file.read1, PART), b""), LONGEST_LINE)


def _skip_mark(file: BufferedReader) -> None:
    if file.peek(len(MARK))[: len(MARK)] == MARK:
        file.read(len(MARK))
