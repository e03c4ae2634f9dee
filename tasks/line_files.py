"""Read files with one row per line strictly. Errors say how to correct a line.

Tables are read by `tasks.table_files`.
"""

import codecs
import gzip
import io
import json
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import BufferedReader
from itertools import chain
from typing import Any

from core.files.damage import describe_damage
from tasks.config.values import FORBIDDEN_CHARACTERS

MAX_NESTING = 100
NOT_UTF8 = "not UTF-8; save the file as UTF-8"
MAX_PROBLEMS = 50_000
"""The number of invalid or repeated lines after which reading stops. It takes seconds at most."""
CHUNK_BYTES = 2**16  # bytes that are read at once
GZIP_MAGIC = b"\x1f\x8b"
"""The first bytes of a gzip file."""


@dataclass(frozen=True)
class Row:
    """A row of a file. line: the number of its first line."""

    line: int
    values: Mapping[str, Any]


@dataclass(frozen=True)
class LineError:
    """A line that cannot be stored. message: how to correct it."""

    line: int
    message: str


class FileError(ValueError):
    """Raised if a file cannot be read at all. The message gives the reason."""


class TooManyBadLines(FileError):
    """Raised if a file has so many invalid lines that reading stopped."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(line, message)  # so that it can be pickled
        self._line, self._message = line, message

    def __str__(self) -> str:
        return (
            f"Reading stopped at line {self._line:,} after {MAX_PROBLEMS:,} lines that cannot be "
            f"taken, the last one because: {self._message}. Correct them or leave them out."
        )


class BadRow(ValueError):
    """Raised if a row cannot be read. The message gives the reason."""


def get_ending(name: str) -> str:
    """Return the ending of a file name in lower case, without a final `.gz`.

    >>> get_ending("Übung 1%.CSV"), get_ending("rows.JSONL.GZ"), get_ending("notes.txt. ")
    ('csv', 'jsonl', 'txt')
    """
    return name.lower().rstrip(". ").removesuffix(".gz").rpartition(".")[2]


def iter_unpacked_lines(file: BufferedReader, max_bytes: int) -> Iterator[bytes]:
    """Yield the lines of a plain or gzip file, each cut after `max_bytes` bytes. Raises FileError.

    Lines are UTF-8 with LF line ends, even if the file is UTF-16 with a byte order mark or has CRLF
    or CR.
    """
    is_gzip = file.peek(2)[:2] == GZIP_MAGIC
    unpacked_file: Any = gzip.GzipFile(fileobj=file) if is_gzip else file
    line_count = 0
    try:
        for line in iter_plain_lines(
            iter(lambda: unpacked_file.read1(CHUNK_BYTES), b""), max_bytes
        ):
            line_count += 1
            yield line
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise FileError(
            f"Damaged gzip after line {line_count}: {describe_damage(error)}. Pack it again."
        ) from None


def unpack(data: bytes, max_bytes: int) -> bytes:
    """Return a file's content, decompressed if it is gzip. Raises FileError.

    max_bytes: the maximum size after decompression.
    """
    # By its first bytes, since names of files lie.
    if data[:2] != GZIP_MAGIC:
        return data
    try:
        # One byte more than may be: a bomb of zeros is never unpacked wholly.
        unpacked_data = gzip.GzipFile(fileobj=io.BytesIO(data)).read(max_bytes + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise FileError(f"Damaged gzip: {describe_damage(error)}. Pack it again.") from None
    if len(unpacked_data) > max_bytes:
        raise FileError(f"Unpacked, the file is larger than {max_bytes // 2**20} MiB. Split it.")
    return unpacked_data


def iter_plain_lines(chunks: Iterable[bytes], max_bytes: int = -1) -> Iterator[bytes]:
    """Return the lines of a file as UTF-8 with LF line ends, each cut after `max_bytes` bytes.

    chunks: chunks of the file, of any size. Raises FileError.
    """
    plain_file = io.BufferedReader(_PlainText(iter(chunks)))
    return iter(lambda: plain_file.readline(max_bytes), b"")


UTF16_MARKS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


class _PlainText(io.RawIOBase):
    """A stream of a file's bytes with LF line ends. UTF-16 with a byte order mark becomes UTF-8."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        # The mark has two bytes, and the first part may be a single one.
        beginning = b""
        for chunk in chunks:
            beginning += chunk
            if len(beginning) >= 2:
                break
        encoding = UTF16_MARKS.get(beginning[:2])
        self._parts = chain([beginning], chunks)
        self._rest, self._is_over = b"", False
        # Bytes that are no UTF-16 pass through Latin-1, which has a character for each byte.
        self._encoding = encoding or "latin-1"
        decoder = codecs.getincrementaldecoder(self._encoding)("strict")
        self._decoder = io.IncrementalNewlineDecoder(decoder, translate=True)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest and not self._is_over:
            chunk = next(self._parts, None)
            self._is_over = chunk is None
            self._rest = self._translate_chunk(chunk or b"")
        # The reader asks for any number of bytes, so what does not fit waits for the next call.
        count = min(len(buffer), len(self._rest))
        buffer[:count], self._rest = self._rest[:count], self._rest[count:]
        return count

    def _translate_chunk(self, chunk: bytes) -> bytes:
        try:
            text = self._decoder.decode(chunk, final=self._is_over)
            return text.encode("latin-1" if self._encoding == "latin-1" else "utf-8")
        except UnicodeError:
            raise FileError("The file is damaged UTF-16. Save it as UTF-8.") from None


def read_jsonl(lines: Iterable[bytes]) -> Iterator[Row | LineError]:
    """Yield the JSON object on each line as a row, or an error. Blank lines are skipped."""
    for line_number, line_bytes in enumerate(lines, 1):
        try:
            text = decode_line(line_bytes, is_first=line_number == 1)
            if text.strip():
                yield Row(line_number, _parse_object(text))
        except BadRow as error:
            yield LineError(line_number, str(error))


def read_texts(lines: Iterable[bytes], name: str) -> Iterator[Row | LineError]:
    """Yield the text on each line as a row with the field `name`. Blank lines are skipped."""
    for line_number, line_bytes in enumerate(lines, 1):
        try:
            text = decode_line(line_bytes, is_first=line_number == 1).strip()
        except BadRow as error:
            yield LineError(line_number, str(error))
            continue
        if text:
            yield Row(line_number, {name: text})


def parse_strict_json(text: str) -> Any:
    """Parse JSON without repeated keys and NaN. Raises BadRow."""
    try:
        return json.loads(
            text,
            object_pairs_hook=refuse_repeated_names,
            parse_constant=_refuse_constant,
            parse_int=_parse_integer,
        )
    except json.JSONDecodeError as error:
        reason = f"not JSON at character {error.colno} ({error.msg}); write one {{…}} a line"
        raise BadRow(reason) from None
    except RecursionError:
        raise BadRow("brackets within brackets too many times; nest less deeply") from None


def find_unstorable_reason(value: Any, max_depth: int = MAX_NESTING) -> str | None:
    """Return the reason why a database cannot store a JSON value; None if it can.

    max_depth: the maximum depth of nesting.
    """
    # Level by level, without recursion: nested brackets of an attacker cannot exhaust the stack.
    level = [value]
    for _ in range(max_depth):
        inner_values: list[Any] = []
        for item in level:
            if isinstance(item, str) and FORBIDDEN_CHARACTERS.search(item):
                return "a control character or half a character; delete it"
            if isinstance(item, float) and not math.isfinite(item):
                return "a number that is too large; use a smaller one"
            if isinstance(item, Mapping):
                inner_values += item.keys()
                inner_values += item.values()
            elif isinstance(item, list):
                inner_values += item
        level = inner_values
    if level:
        return f"values more than {max_depth} levels deep; nest less deeply"
    return None


def decode_line(line_bytes: bytes, *, is_first: bool) -> str:
    """Return a line as text, the first one without a byte order mark. Raises BadRow."""
    try:
        return line_bytes.decode("utf-8-sig" if is_first else "utf-8")
    except UnicodeDecodeError:
        raise BadRow(NOT_UTF8) from None


def _parse_object(text: str) -> dict[str, Any]:
    value = parse_strict_json(text)
    if not isinstance(value, dict):
        raise BadRow("not an object; write one {…} a line")
    return value


def refuse_repeated_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of a JSON object as a dict. Raises BadRow for a repeated name."""
    # A dict keeps the last of two equal keys, so it is shorter than the pairs.
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        repeated_name = next(name for name in names if names.count(name) > 1)
        raise BadRow(f"`{repeated_name}` is there twice; remove one of the two")
    return members


def _parse_integer(digits: str) -> int:
    """Return a whole number of at most 64 bits, which databases can store. Raises BadRow."""
    # The length first: int() of a million digits takes long.
    if len(digits) > 20 or abs(int(digits)) >= 2**63:
        raise BadRow("a number with too many digits; shorten it")
    return int(digits)


def _refuse_constant(word: str) -> Any:
    raise BadRow(f"{word} isn't a number in JSON; write a number or null")
