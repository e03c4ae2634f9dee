"""Read the records of a file, a folder or a .zip archive in a published format."""

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

from core.files.damage import describe_damage
from core.files.zip_members import ZIP_ZSTANDARD, DamagedMember, open_member
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
    find_unstorable_reason,
    iter_plain_lines,
    parse_strict_json,
)
from tasks.table_files import read_table

MAX_LINE_BYTES = 16 * 2**20
PEEK_BYTES = 2**12
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""The bytes that some programs write before UTF-8."""
ONE_OBJECT_MESSAGE = "It is one JSON object over several lines, not a list of records."
OPENING, CLOSING = ("start_map", "start_array"), ("end_map", "end_array")
ARCHIVE_SUFFIXES = (".zip", ".eval")
"""The endings of archives; Inspect packs its logs as `.eval`."""
ENCRYPTED_FLAG = 1
ALLOWED_COMPRESSION = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, ZIP_ZSTANDARD)
ROW_METADATA_KEYS = (LEFT_OUT_KEY, FREE_TEXT_KEY, QUESTIONS_KEY, NOTES_KEY)
NO_QUESTION = "\0"
"""A name that no question has, so that no answers are read."""
NamedOpener = tuple[str, Callable[[], IO[bytes]]]
FoundRecord = tuple[str, str, bytes]
"""A record's position, the name of its file, and the record as JSON."""


class _LimitExceeded(Exception):
    """Raised if a record exceeds a limit, which the message names."""


class _LimitedFile:
    """A file that raises _LimitExceeded if a single record takes more than MAX_LINE_BYTES bytes."""

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
    """Yield the numbered lines of a file. Overlong lines are cut, so they are not valid JSON."""
    skip_byte_order_mark(file)
    for number, line in enumerate(_iter_lines(file), 1):
        if line.strip():
            yield number, line


def make_json_reader(prefix: str = "item") -> Callable[[BufferedReader], Iterator[Numbered]]:
    """Return a reader for a list within one large JSON value, which reads one element at a time.

    prefix: the path of the elements, as in ijson. With "item", the reader also accepts JSON lines.
    """

    def read(file: BufferedReader) -> Iterator[Numbered]:
        skip_byte_order_mark(file)
        if prefix == "item" and file.peek(PEEK_BYTES).lstrip()[:1] != b"[":
            if file.peek(PEEK_BYTES).lstrip().splitlines()[:1] == [b"{"]:
                raise FileError(ONE_OBJECT_MESSAGE)
            yield from read_json_lines(file)
            return
        number, limited_file = 0, _LimitedFile(file)
        # Floats, because `json.dumps` cannot write ijson's decimals.
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
    """Return a reader for the rows of a table with a header."""

    def read(file: BufferedReader) -> Iterator[Numbered]:
        for row in read_table(_iter_lines(file), list, lambda name, cell: cell, ending):
            if isinstance(row, LineError):
                raise FileError(f"line {row.line}: {row.message}.")
            yield row.line, json.dumps(row.values).encode()

    return read


def iter_record_lines(path: Path, data_format: Format, question: str = "") -> Iterator[RecordLine]:
    """Yield the records of a file, folder or archive, each with its row.

    question: the only question whose answers are read, if the format names questions; "" for all.
    Raises FileError, OSError.
    """
    records = _iter_records(path, data_format)
    if not data_format.bind_row_parser:
        data_format = _limit_to_question(data_format, question)
    # Each record is an item of its own.
    if not data_format.find_item_id:
        for location, name, text in records:
            yield _build_line(location, [(name, text)], data_format)
        return
    # Records of one item may be anywhere in the files, so all are kept until they are joined.
    with closing(sqlite3.connect("")) as items:  # a temporary file once it grows
        _store_records(items, records, data_format)
        # What a record means depends on all others, so they are read twice.
        if data_format.bind_row_parser:
            row_parser = data_format.bind_row_parser(_iter_stored_parts(items))
            data_format = _limit_to_question(replace(data_format, parse_row=row_parser), question)
        stored_parts = items.execute(
            "SELECT place, name, text, first FROM part ORDER BY first, rowid"
        )
        for _, parts in itertools.groupby(stored_parts, lambda part: part[3]):
            yield _join_records(parts, data_format)


def _limit_to_question(data_format: Format, question: str) -> Format:
    """Return the format limited to answers to the question; unchanged if `question` is ""."""
    select_answers, parse_row = data_format.select_answers, data_format.parse_row
    if not (question and select_answers):
        return data_format

    def parse_answers_to_question(parts: Sequence[Part]) -> Record | None:
        return parse_row([(name, select_answers(record, question)) for name, record in parts])

    return replace(data_format, parse_row=parse_answers_to_question)


def _iter_stored_parts(items: sqlite3.Connection) -> Iterator[Part]:
    """Yield all stored records that can be parsed."""
    for name, text in items.execute("SELECT name, text FROM part"):
        # Left out here only: the second reading reports them.
        with suppress(BadRow):
            yield name, _parse_record(text)


def _join_records(parts: Iterator[tuple[str, str, bytes, int]], data_format: Format) -> RecordLine:
    """Return the line for all records of one item.

    parts: the position, the file name, the text and the item's number of each record.
    """
    location, name, text, _ = next(parts)
    texts, size = [(name, text)], len(text)
    for _, name, record_bytes, _ in parts:
        size += len(record_bytes)
        # Beyond the limit they are only counted, so that an item never takes all the memory.
        if size <= MAX_LINE_BYTES:
            texts.append((name, record_bytes))
    if size > MAX_LINE_BYTES:
        error = f"its records have more than {MAX_LINE_BYTES >> 20} MiB together; leave some out"
        return RecordLine(location, text, None, error)
    return _build_line(location, texts, data_format)


def _store_records(
    items: sqlite3.Connection, records: Iterator[FoundRecord], data_format: Format
) -> None:
    """Store all records in a table. `first` is the number of the first record of the same item."""
    items.execute("CREATE TABLE part (place, name, text, first)")
    items.execute("CREATE TABLE item (same PRIMARY KEY, first) WITHOUT ROWID")
    for number, (location, name, text) in enumerate(records):
        # A record without an id is an item of its own.
        item_id = _find_item_id(text, data_format) or f"{number} has no name"
        items.execute("INSERT OR IGNORE INTO item VALUES (?, ?)", (item_id, number))
        items.execute(
            "INSERT INTO part SELECT ?, ?, ?, first FROM item WHERE same = ?",
            (location, name, text, item_id),
        )


def _find_item_id(text: bytes, data_format: Format) -> str:
    """Return the id of the item that a record describes; "" if it has none."""
    try:
        return cast("Callable[[Record], str]", data_format.find_item_id)(_parse_record(text))
    except (BadRow, KeyError):
        return ""


def _build_line(location: str, texts: list[tuple[str, bytes]], data_format: Format) -> RecordLine:
    try:
        parts: list[Part] = [(name, _parse_record(text)) for name, text in texts]
        row = data_format.parse_row(parts)
        row_metadata: dict[str, Any] = {}
        for key in ROW_METADATA_KEYS:
            if row is not None and key in row:
                row_metadata[key] = row.pop(key)
        return RecordLine(
            location,
            texts[0][1],
            row,
            left_out_counts=row_metadata.get(LEFT_OUT_KEY, {}),
            has_free_text=row_metadata.get(FREE_TEXT_KEY, False),
            questions=row_metadata.get(QUESTIONS_KEY, ()),
            note_counts=row_metadata.get(NOTES_KEY, {}),
        )
    except BadRow as error:
        return RecordLine(location, texts[0][1], None, str(error))


def _parse_record(text: bytes) -> Record:
    """Return a JSON object that a database can store. Raises BadRow."""
    try:
        record = parse_strict_json(text.decode())
    except UnicodeDecodeError as error:
        raise BadRow(f"byte {error.start + 1} is {NOT_UTF8}") from None
    if not isinstance(record, dict):
        raise BadRow("it must be an object with one example")
    if reason := find_unstorable_reason(record):
        raise BadRow(reason)
    return record


def _iter_records(path: Path, data_format: Format) -> Iterator[FoundRecord]:
    """Yield every record of the files, ordered by file name. Raises FileError."""
    if not path.is_dir() and path.suffix.lower() not in ARCHIVE_SUFFIXES:
        yield from _read_member("", (str(path.absolute()), partial(_open_file, path)), data_format)
        return
    _check_members([name for name, _ in _iter_members(path)], data_format)
    for member in _iter_members(path):
        if _matches_name(data_format.file_pattern, member[0]):
            yield from _read_member(f"{member[0]}:", member, data_format)


def _check_members(names: Sequence[str], data_format: Format) -> None:
    """Raise FileError if a folder has no files of the format, or only answers that are not read."""
    if not any(_matches_name(data_format.file_pattern, name) for name in names):
        raise FileError(f"It holds no file of {data_format.title}.{_advise_export(data_format)}")
    if not data_format.unread_file_pattern or any(
        _matches_name(data_format.answer_file_pattern, name) for name in names
    ):
        return
    unread_names = []
    for name in names:
        if _matches_name(data_format.unread_file_pattern, name):
            unread_names.append(name)
    if unread_names:
        name_list = ", ".join(unread_names[:3])
        raise FileError(
            f"The answers are in {name_list}, which are not read.{_advise_export(data_format)}"
        )


def _matches_name(names: str, name: str) -> bool:
    return re.search(names, name, re.IGNORECASE) is not None


def _advise_export(data_format: Format) -> str:
    """Return a sentence that says which export to choose."""
    if data_format.export_advice:
        return f" Choose {data_format.export_advice} where {data_format.title} exports."
    if data_format.missing_answers_advice:
        return f" {data_format.missing_answers_advice}."
    return f" Their names match {data_format.file_pattern}."


def _read_member(location: str, member: NamedOpener, data_format: Format) -> Iterator[FoundRecord]:
    """Yield the records of one file. Raises FileError.

    location: the prefix of their positions. member: the file's name and a function that opens it.
    """
    name, open_member = member
    # The name becomes a part of messages and rows.
    if reason := find_unstorable_reason(name):
        raise FileError(f"The file's name {name!a} has {reason}.")
    try:
        with open_member() as packed_file, io.BufferedReader(cast(Any, packed_file)) as file:
            plain_file = _unpack_file(file)
            _check_json(plain_file, data_format)
            for number, record in data_format.read_records(plain_file):
                yield f"{location}{number}", name, record
    except FileError as error:
        advice = ""
        if str(error) == ONE_OBJECT_MESSAGE:
            advice = _advise_export(data_format)
        raise FileError(f"{location} {error}{advice}".strip()) from None
    except (EOFError, gzip.BadGzipFile, zipfile.BadZipFile, zlib.error, DamagedMember) as error:
        raise FileError(
            f"{location} Damaged file: {describe_damage(error)}. Pack it again.".strip()
        ) from None


def _check_json(file: BufferedReader, data_format: Format) -> None:
    """Raise FileError if a file should be JSON, because the tool also exports other formats."""
    if data_format.export_advice and not looks_like_json(file):
        raise FileError(f"This isn't JSON.{_advise_export(data_format)}")


def _iter_members(path: Path) -> Iterator[NamedOpener]:
    """Yield the name of each file in a folder or an archive, in order, with a function to open it.

    Raises FileError.
    """
    if not path.is_dir():
        yield from _iter_packed_members(path)
        return
    for file in sorted(path.rglob("*")):
        name = file.relative_to(path).as_posix()
        if file.is_file() and file.suffix.lower() == ".eval":
            for member_name, opener in _iter_packed_members(file):
                yield f"{name}/{member_name}", opener
        elif file.is_file():
            yield name, partial(_open_file, file)


def _iter_packed_members(path: Path) -> Iterator[NamedOpener]:
    """Yield the name of each file in an archive, in order, with a function to open it."""
    try:
        with zipfile.ZipFile(path) as archive:
            for info in sorted(archive.infolist(), key=lambda info: info.filename):
                # Before anything is read, so that the message names the file.
                if info.flag_bits & ENCRYPTED_FLAG or info.compress_type not in ALLOWED_COMPRESSION:
                    raise FileError(f"{info.filename!a} is locked or packed oddly; pack it again.")
                # What macOS adds to archives.
                if not info.filename.startswith("__MACOSX/"):
                    yield info.filename, partial(open_member, path, archive, info)
    except zipfile.BadZipFile:
        raise FileError("No .zip archive that can be read. Pack it again.") from None


def _open_file(path: Path) -> IO[bytes]:
    return path.open("rb")


def _unpack_file(file: BufferedReader) -> BufferedReader:
    is_gzip = file.peek(2)[:2] == b"\x1f\x8b"
    if is_gzip:
        return io.BufferedReader(cast(Any, gzip.GzipFile(fileobj=file)))
    return file


def _iter_lines(file: BufferedReader) -> Iterator[bytes]:
    """Return the lines of a file. Lines longer than MAX_LINE_BYTES are cut."""
    return iter_plain_lines(iter(partial(file.read1, CHUNK_BYTES), b""), MAX_LINE_BYTES)


def skip_byte_order_mark(file: BufferedReader) -> None:
    """Skip the bytes that some programs write before UTF-8."""
    if file.peek(len(BYTE_ORDER_MARK))[: len(BYTE_ORDER_MARK)] == BYTE_ORDER_MARK:
        file.read(len(BYTE_ORDER_MARK))
