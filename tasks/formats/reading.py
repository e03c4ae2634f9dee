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
from tasks.formats.base import (
    FREE_TEXT_KEY,
    LEFT_OUT_KEY,
    NOTES_KEY,
    QUESTIONS_KEY,
    Format,
    Numbered,
    Part,
    Record,
    RecordLine,
)
from tasks.line_files import (
    CHUNK_BYTES,
    MAX_NESTING,
    NOT_UTF8,
    BadRow,
    FileError,
    LineError,
    find_unstorable,
    iter_plain_lines,
    strict_json,
)
from tasks.table_files import read_table

MAX_LINE_BYTES = 16 * 2**20
PEEK_BYTES = 2**12
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""What some programs put before UTF-8."""
ONE_OBJECT_MESSAGE = "It is one JSON object over several lines, not a list of records."
OPENING, CLOSING = ("start_map", "start_array"), ("end_map", "end_array")
ENCRYPTED_FLAG = 1
ALLOWED_COMPRESSION = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
ABOUT_KEYS = (LEFT_OUT_KEY, FREE_TEXT_KEY, QUESTIONS_KEY, NOTES_KEY)
NO_QUESTION = "\0"
"""The name of no question: answers are not read, whatever they are."""
NamedOpener = tuple[str, Callable[[], IO[bytes]]]
FoundRecord = tuple[str, str, bytes]
"""Where a record stands, the name of its file, and the record as JSON."""


class _LimitExceeded(Exception):
    """Raised for a record that exceeds the limit in the message."""


class _LimitedFile:
    """A file that stops being read if one record takes more than MAX_LINE_BYTES bytes."""

    def __init__(self, file: BufferedReader):
        self._file = file
        self.since = 0

    def read(self, size: int) -> bytes:
        self.since += size
        # Counted since the last record, as the parser reads ahead in blocks.
        if self.since > MAX_LINE_BYTES:
            raise _LimitExceeded(f"{MAX_LINE_BYTES >> 20} MiB")
        return self._file.read(size)


def _limit_depth(events: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Yield the parser's events. Raises _LimitExceeded above MAX_NESTING open brackets."""
    depth = 0
    for event in events:
        depth += (event[0] in OPENING) - (event[0] in CLOSING)
        if depth > MAX_NESTING:
            raise _LimitExceeded(f"{MAX_NESTING} brackets within brackets")
        yield event


def looks_like_json(file: BufferedReader) -> bool:
    """Return whether a file begins like JSON or is empty."""
    return file.peek(PEEK_BYTES).removeprefix(BYTE_ORDER_MARK).lstrip()[:1] in (b"", b"[", b"{")


def read_json_lines(file: BufferedReader) -> Iterator[Numbered]:
    """Yield the numbered lines of a file. An endless line is cut, and so is not valid JSON."""
    _skip_mark(file)
    for number, line in enumerate(_iter_lines(file), 1):
        if line.strip():
            yield number, line


def make_json_reader(prefix: str = "item") -> Callable[[BufferedReader], Iterator[Numbered]]:
    """Return a reader for a list within one large JSON value, one element at a time.

    prefix: the path of the elements, as in ijson. A file of JSON lines is read, too.
    """

    def read(file: BufferedReader) -> Iterator[Numbered]:
        _skip_mark(file)
        if prefix == "item" and file.peek(PEEK_BYTES).lstrip()[:1] != b"[":
            if file.peek(PEEK_BYTES).lstrip().splitlines()[:1] == [b"{"]:
                raise FileError(ONE_OBJECT_MESSAGE)
            yield from read_json_lines(file)
            return
        number, limited_file = 0, _LimitedFile(file)
        events = ijson.parse(_limit_depth(ijson.basic_parse(limited_file, use_float=True)))
        try:
            for number, item in enumerate(ijson.items(events, prefix), 1):
                yield number, json.dumps(item).encode()
                limited_file.since = 0
        except _LimitExceeded as error:
            raise FileError(f"Record {number + 1} has more than {error}; leave it out.") from None
        except (ijson.JSONError, ValueError):
            raise FileError(f"No JSON in UTF-8 after record {number}; export it again.") from None

    return read


def make_table_reader(ending: str = "csv") -> Callable[[BufferedReader], Iterator[Numbered]]:
    """Return a reader for rows under a header."""

    def read(file: BufferedReader) -> Iterator[Numbered]:
        for row in read_table(_iter_lines(file), list, lambda name, cell: cell, ending):
            if isinstance(row, LineError):
                raise FileError(f"line {row.line}: {row.message}.")
            yield row.line, json.dumps(row.values).encode()

    return read


def iter_record_lines(path: Path, form: Format, question: str = "") -> Iterator[RecordLine]:
    """Yield the records of a file, folder or archive, each with its row.

    question: the only question whose answers are read, if the layout names questions.
    Raises FileError, OSError.
    """
    records = _iter_records(path, form)
    if not form.row_of_all:
        form = _limit_to_question(form, question)
    # Each record is an item of its own.
    if not form.same:
        for place, name, text in records:
            yield _build_line(place, [(name, text)], form)
        return
    # Records of one item may be anywhere in the files, so all are kept until they are joined.
    with closing(sqlite3.connect("")) as items:  # a temporary file once it grows
        _store_records(items, records, form)
        # What a record means depends on all others, so they are read twice.
        if form.row_of_all:
            row = form.row_of_all(_iter_stored_parts(items))
            form = _limit_to_question(replace(form, row=row), question)
        stored = items.execute("SELECT place, name, text, first FROM part ORDER BY first, rowid")
        for _, parts in itertools.groupby(stored, lambda part: part[3]):
            yield _join_records(parts, form)


def _limit_to_question(form: Format, question: str) -> Format:
    """Return the layout limited to answers to the question, if one is given."""
    select_answers, row = form.only, form.row
    if not (question and select_answers):
        return form

    def row_of_question(parts: Sequence[Part]) -> Record | None:
        return row([(name, select_answers(record, question)) for name, record in parts])

    return replace(form, row=row_of_question)


def _iter_stored_parts(items: sqlite3.Connection) -> Iterator[Part]:
    """Yield all stored records that can be parsed."""
    for name, text in items.execute("SELECT name, text FROM part"):
        with suppress(BadRow):
            yield name, _parse_record(text)


def _join_records(parts: Iterator[tuple[str, str, bytes, int]], form: Format) -> RecordLine:
    """Return the line for all records of one item."""
    place, name, text, _ = next(parts)
    texts, size = [(name, text)], len(text)
    for _, name, record_bytes, _ in parts:
        size += len(record_bytes)
        # Beyond the limit they are only counted, so that an item never takes all the memory.
        if size <= MAX_LINE_BYTES:
            texts.append((name, record_bytes))
    if size > MAX_LINE_BYTES:
        wrong = f"its records have more than {MAX_LINE_BYTES >> 20} MiB together; leave some out"
        return RecordLine(place, text, None, wrong)
    return _build_line(place, texts, form)


def _store_records(items: sqlite3.Connection, records: Iterator[FoundRecord], form: Format) -> None:
    """Store all records. `first` is the number of the first record of the same item."""
    items.execute("CREATE TABLE part (place, name, text, first)")
    items.execute("CREATE TABLE item (same PRIMARY KEY, first) WITHOUT ROWID")
    for number, (place, name, text) in enumerate(records):
        item_id = _find_item_id(text, form) or f"{number} has no name"
        items.execute("INSERT OR IGNORE INTO item VALUES (?, ?)", (item_id, number))
        items.execute(
            "INSERT INTO part SELECT ?, ?, ?, first FROM item WHERE same = ?",
            (place, name, text, item_id),
        )


def _find_item_id(text: bytes, form: Format) -> str:
    """Return the id of the item that a record describes; "" without one."""
    try:
        return cast("Callable[[Record], str]", form.same)(_parse_record(text))
    except (BadRow, KeyError):
        return ""


def _build_line(place: str, texts: list[tuple[str, bytes]], form: Format) -> RecordLine:
    try:
        parts: list[Part] = [(name, _parse_record(text)) for name, text in texts]
        row = form.row(parts)
        about: dict[str, Any] = {}
        for key in ABOUT_KEYS:
            if row is not None and key in row:
                about[key] = row.pop(key)
        return RecordLine(
            place,
            texts[0][1],
            row,
            left=about.get(LEFT_OUT_KEY, {}),
            is_free=about.get(FREE_TEXT_KEY, False),
            questions=about.get(QUESTIONS_KEY, ()),
            noted=about.get(NOTES_KEY, {}),
        )
    except BadRow as error:
        return RecordLine(place, texts[0][1], None, str(error))


def _parse_record(text: bytes) -> Record:
    """Parse a JSON object. Raises BadRow."""
    try:
        record = strict_json(text.decode())
    except UnicodeDecodeError as error:
        raise BadRow(f"byte {error.start + 1} is {NOT_UTF8}") from None
    if not isinstance(record, dict):
        raise BadRow("it must be an object with one example")
    if reason := find_unstorable(record):
        raise BadRow(reason)
    return record


def _iter_records(path: Path, form: Format) -> Iterator[FoundRecord]:
    """Yield every record of the files, ordered by file name. Raises FileError."""
    if not path.is_dir() and path.suffix.lower() != ".zip":
        yield from _read_member("", (str(path.absolute()), partial(_open, path)), form)
        return
    _check_members([name for name, _ in _iter_members(path)], form)
    for member in _iter_members(path):
        if _matches_name(form.files, member[0]):
            yield from _read_member(f"{member[0]}:", member, form)


def _check_members(names: Sequence[str], form: Format) -> None:
    """Raise FileError for a folder without files of the layout, or with only its other exports."""
    if not any(_matches_name(form.files, name) for name in names):
        raise FileError(f"It holds no file of {form.title}.{_advise_export(form)}")
    if not form.others or any(_matches_name(form.answers, name) for name in names):
        return
    unread = []
    for name in names:
        if _matches_name(form.others, name):
            unread.append(name)
    if unread:
        listed = ", ".join(unread[:3])
        raise FileError(f"The answers are in {listed}, which are not read.{_advise_export(form)}")


def _matches_name(names: str, name: str) -> bool:
    return re.search(names, name, re.IGNORECASE) is not None


def _advise_export(form: Format) -> str:
    """Return advice about which export to choose instead."""
    if form.choose:
        return f" Choose {form.choose} where {form.title} exports."
    if form.instead:
        return f" {form.instead}."
    return f" Their names match {form.files}."


def _read_member(at: str, member: NamedOpener, form: Format) -> Iterator[FoundRecord]:
    """Yield the records of one file. Raises FileError.

    at: the prefix of their positions.
    """
    name, open_member = member
    # The name becomes a part of messages and rows.
    if reason := find_unstorable(name):
        raise FileError(f"The file's name {name!a} has {reason}.")
    try:
        with open_member() as packed, io.BufferedReader(cast(Any, packed)) as file:
            plain = _unpack(file)
            _check_json(plain, form)
            for number, record in form.read(plain):
                yield f"{at}{number}", name, record
    except FileError as error:
        cure = ""
        if str(error) == ONE_OBJECT_MESSAGE:
            cure = _advise_export(form)
        raise FileError(f"{at} {error}{cure}".strip()) from None
    except (EOFError, gzip.BadGzipFile, zipfile.BadZipFile, zlib.error) as error:
        raise FileError(f"{at} Damaged file: {damage_of(error)}. Pack it again.".strip()) from None


def _check_json(file: BufferedReader, form: Format) -> None:
    """Raise FileError if a file is not JSON and the tool also exports other formats."""
    if form.choose and not looks_like_json(file):
        raise FileError(f"It is no JSON.{_advise_export(form)}")


def _iter_members(path: Path) -> Iterator[NamedOpener]:
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
                if info.flag_bits & ENCRYPTED_FLAG or info.compress_type not in ALLOWED_COMPRESSION:
                    raise FileError(f"{info.filename!a} is locked or packed oddly; pack it again.")
                # What macOS adds to archives.
                if not info.filename.startswith("__MACOSX/"):
                    yield info.filename, partial(archive.open, info)
    except zipfile.BadZipFile:
        raise FileError("No .zip archive that can be read. Pack it again.") from None


def _open(path: Path) -> IO[bytes]:
    return path.open("rb")


def _unpack(file: BufferedReader) -> BufferedReader:
    is_gzip = file.peek(2)[:2] == b"\x1f\x8b"
    if is_gzip:
        return io.BufferedReader(cast(Any, gzip.GzipFile(fileobj=file)))
    return file


def _iter_lines(file: BufferedReader) -> Iterator[bytes]:
    """Yield the lines of a file. An endless line is cut."""
    return iter_plain_lines(iter(partial(file.read1, CHUNK_BYTES), b""), MAX_LINE_BYTES)


def _skip_mark(file: BufferedReader) -> None:
    if file.peek(len(BYTE_ORDER_MARK))[: len(BYTE_ORDER_MARK)] == BYTE_ORDER_MARK:
        file.read(len(BYTE_ORDER_MARK))
