"""Read the objects at given paths of JSON of any size, one at a time."""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from io import BufferedReader
from typing import Any

import ijson
from ijson.common import ObjectBuilder

from tasks.config.values import FORBIDDEN_CHARACTERS
from tasks.formats.base import Numbered
from tasks.formats.reading import MAX_LINE_BYTES, skip_byte_order_mark
from tasks.line_files import MAX_NESTING, FileError

MAX_READ_BYTES = 256 * 2**20
"""The maximum size of what is read for one object, with the keys that are left out."""
BUFFER_BYTES = 4096
"""What the parser reads at a time.

It makes the paths of all values in it before we see the first, and a path grows with each bracket.
"""
OPENING, CLOSING = ("start_map", "start_array"), ("end_map", "end_array")
# Colours and titles, as programs write them to a terminal.
_TERMINAL_PATTERN = re.compile(r"\x1b\[[0-9;:?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")


def remove_control_characters(text: str) -> str:
    """Return the text without colours of a terminal and characters that no database stores.

    >>> remove_control_characters("\x1b[31mfailed\x1b[0m\x07 at\tline 3")
    'failed at\tline 3'
    """
    if not FORBIDDEN_CHARACTERS.search(text):
        return text
    return FORBIDDEN_CHARACTERS.sub("", _TERMINAL_PATTERN.sub("", text))


def make_object_reader(
    paths: Mapping[str, str], skipped: Collection[str] = ()
) -> Callable[[BufferedReader], Iterator[Numbered]]:
    """Return a reader for the objects at some paths of one JSON value or of several, as in lines.

    Texts lose control characters, as the output of terminals has them.

    paths: a key by path, as in ijson; "" is the path of a whole value, unless there are objects at
    another path in it. With a key, the object becomes the value of an object with this key.
    skipped: keys of the objects that are left out.
    """

    def read(file: BufferedReader) -> Iterator[Numbered]:
        skip_byte_order_mark(file)
        number = 0
        try:
            limited_file = _LimitedFile(file)
            events = ijson.parse(
                limited_file, multiple_values=True, use_float=True, buf_size=BUFFER_BYTES
            )
            for path, value in _build_objects(events, paths, skipped):
                number += 1
                limited_file.since = 0
                key = paths[path]
                yield number, json.dumps({key: value} if key else value).encode()
        except _TooLarge as error:
            raise FileError(f"Record {number + 1} has more than {error}; leave it out.") from None
        except (ijson.JSONError, ValueError):
            raise FileError(f"No JSON in UTF-8 after record {number}; export it again.") from None

    return read


class _TooLarge(Exception):
    """Raised if an object exceeds a limit, which the message names."""


class _LimitedFile:
    """A file that raises _TooLarge if one object takes more than MAX_READ_BYTES bytes."""

    def __init__(self, file: BufferedReader):
        self._file = file
        self.since = 0

    def read(self, size: int) -> bytes:
        self.since += size
        if self.since > MAX_READ_BYTES:
            raise _TooLarge(f"{MAX_READ_BYTES >> 20} MiB")
        return self._file.read(size)


def _build_objects(
    events: Iterator[tuple[str, str, Any]], paths: Collection[str], skipped: Collection[str]
) -> Iterator[tuple[str, Any]]:
    """Yield each object at one of the paths, with its path."""
    built: _Object | None = None
    depth = 0
    for path, event, value in events:
        depth += (event in OPENING) - (event in CLOSING)
        if depth > MAX_NESTING:
            raise _TooLarge(f"{MAX_NESTING} brackets within brackets")
        # A whole value that only holds objects is none itself.
        if path in paths and event == "start_map" and (built is None or not built.path):
            built = _Object(path, depth, skipped)
        elif built is None and path in paths and event not in (*OPENING, *CLOSING, "map_key"):
            yield path, value  # to be refused where an object is expected
        if built is None:
            continue
        built.add(event, value, depth)
        if event in CLOSING and depth < built.depth:
            yield built.path, built.value
            built = None


class _Object:
    """An object under construction. depth: the number of brackets that are open in it."""

    def __init__(self, path: str, depth: int, skipped: Collection[str]) -> None:
        self.path, self.depth = path, depth
        self._skipped = skipped
        self._builder: Any = ObjectBuilder()
        self._size = 0
        self._is_left_out = False

    @property
    def value(self) -> Any:
        """Return the object once it is complete."""
        return self._builder.value

    def add(self, event: str, value: Any, depth: int) -> None:
        """Add an event of the parser. Raises _TooLarge."""
        # A key of the object itself, not of an object in it.
        if depth == self.depth and event == "map_key":
            self._is_left_out = value in self._skipped
        if self._is_left_out and depth >= self.depth:
            return
        # Numbers and brackets count as a few bytes each.
        self._size += 8
        if isinstance(value, str):
            value = remove_control_characters(value)
            self._size += len(value)
        if self._size > MAX_LINE_BYTES:
            raise _TooLarge(f"{MAX_LINE_BYTES >> 20} MiB")
        self._builder.event(event, value)
