"""Read the small YAML files of a folder: names with values, and nothing that surprises.

The client has no YAML library, because it should install in a second. These files need only a part
of YAML: `name: value` with texts, numbers, true, false and null; values in quotes; JSON on one
line; texts of several lines after `|`; and names below a name, indented. All else is refused with
its line. What is read here means the same to every YAML 1.1 and 1.2 parser.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

MAX_CHARS = 256 * 1024
MAX_DEPTH = 8
NAME = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_-]*)[ ]*:(?=[ ]|$)[ ]*")
WHOLE_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,15})")
DECIMAL_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,15})\.[0-9]{1,15}")
DAY_OR_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.]+(Z|[+-][0-9]{2}:[0-9]{2})?)?")
NUMBER_LIKE = re.compile(r"[-+.]?[0-9][0-9a-fA-FxXoO_.,:eE+-]*|[-+]?\.(inf|nan)", re.IGNORECASE)
"""Texts that some parsers of YAML read as numbers."""
WORDS = {"true": True, "false": False, "null": None}
WORD_LIKE = {"yes", "no", "on", "off", "y", "n", "~", "=", "<<", *WORDS}
"""Texts that some parsers of YAML read as true, false or null, in any case."""
FORBIDDEN_STARTS = "&*!|>@%`{}[],#?:-\"'"
SINGLE_QUOTED = re.compile(r"'((?:[^']|'')*)'")
COMMENT = re.compile(r"\s*(?:\s#.*)?")
CONTROL_CHARACTER = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]"
)
"""Characters that YAML forbids or reads as line ends, and halves of characters."""


class SettingsError(ValueError):
    """Raised for a text that cannot be read. line, column: its place, counted from 1."""

    def __init__(self, message: str, line: int, column: int = 1) -> None:
        """Create an error with its place."""
        super().__init__(message)
        self.line, self.column = line, column


@dataclass
class Settings:
    """The values of a text by name, and the place (line, column) of each of its top names."""

    values: dict[str, Any] = field(default_factory=dict)
    places: dict[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Line:
    """A line that is neither blank nor a comment."""

    number: int
    indent: int
    text: str


def read_settings(text: str) -> Settings:
    """Return the settings in a text. Raises SettingsError."""
    if len(text) > MAX_CHARS:
        raise SettingsError("The file is larger than 256 KiB. Shorten it.", 1)
    # By LF only: `splitlines` also splits at characters that are no line ends in YAML.
    all_lines = text.split("\n")
    for number, line in enumerate(all_lines, 1):
        if found := CONTROL_CHARACTER.search(line):
            message = f"Delete the invisible character U+{ord(found[0]):04X}."
            raise SettingsError(message, number, found.start() + 1)
    reader = _Reader(all_lines)
    settings = Settings()
    settings.values = reader.read_names(0, 1, settings.places)
    # The reader stops at a line that is indented, as a continued text would be in YAML.
    if (line_left := reader.peek()) is not None:
        raise SettingsError("Begin this name in the first column.", line_left.number)
    return settings


class _Reader:
    """A reader of lines, from the first to the last."""

    def __init__(self, all_lines: Sequence[str]) -> None:
        self.all_lines, self.position = all_lines, 0

    def peek(self) -> _Line | None:
        """Return the next line that is neither blank nor a comment; None at the end."""
        while self.position < len(self.all_lines):
            line = self.all_lines[self.position]
            stripped_line = line.strip(" \t")
            if stripped_line and not stripped_line.startswith("#"):
                indent = len(line) - len(line.lstrip(" "))
                # Parsers disagree on how wide a tab is.
                if line[indent] == "\t":
                    message = "Indent with spaces instead of a tab."
                    raise SettingsError(message, self.position + 1, indent + 1)
                return _Line(self.position + 1, indent, line[indent:].rstrip(" \t"))
            self.position += 1
        return None

    def read_names(
        self, indent: int, depth: int, places: dict[str, tuple[int, int]] | None = None
    ) -> dict[str, Any]:
        """Return the values of the names that are indented by `indent`.

        places: receives the place of each name.
        """
        values: dict[str, Any] = {}
        while (line := self.peek()) is not None and line.indent == indent:
            found = NAME.match(line.text)
            if found is None:
                message = "Write a name, a colon, a space and a value, such as `name: my-model`."
                raise SettingsError(message, line.number, indent + 1)
            name = found["name"]
            # To some parsers it is the value true, and no name.
            if name.lower() in WORD_LIKE:
                raise SettingsError(f"{name!r} can't be a name.", line.number, indent + 1)
            if name in values:
                message = f"{name!r} is there twice. Delete one."
                raise SettingsError(message, line.number, indent + 1)
            if places is not None:
                places[name] = (line.number, indent + 1)
            self.position += 1
            values[name] = self._read_value(line, found.end(), depth)
        return values

    def _read_value(self, line: _Line, start: int, depth: int) -> Any:
        """Return the value that begins at `start` of the line, or on the lines below it."""
        text = line.text[start:]
        column = line.indent + start + 1
        if not text or text.startswith("#"):
            return self._read_below(line, depth)
        if text == "|":
            return self._read_lines(line)
        return read_scalar(text, line.number, column)

    def _read_below(self, line: _Line, depth: int) -> Any:
        """Return the names that are indented below a line; None if there are none."""
        next_line = self.peek()
        if next_line is None or next_line.indent <= line.indent:
            return None
        if depth == MAX_DEPTH:
            message = f"Names can be at most {MAX_DEPTH} levels deep."
            raise SettingsError(message, next_line.number)
        values = self.read_names(next_line.indent, depth + 1)
        # A line between both indentations belongs to neither.
        following_line = self.peek()
        if following_line is not None and following_line.indent > line.indent:
            message = "Indent this name like the one above it."
            raise SettingsError(message, following_line.number, following_line.indent + 1)
        return values

    def _read_lines(self, line: _Line) -> str:
        """Return the text of several lines below a `|`."""
        text_lines: list[str] = []
        indent = 0
        while self.position < len(self.all_lines):
            text_line = self.all_lines[self.position]
            if text_line.strip(" "):
                own_indent = len(text_line) - len(text_line.lstrip(" "))
                if own_indent <= line.indent:
                    break
                # The first line with words says how far all are indented.
                indent = indent or own_indent
                if own_indent < indent:
                    message = "Indent this line like the first one of the text."
                    raise SettingsError(message, self.position + 1, own_indent + 1)
            text_lines.append(text_line[indent:] if indent else "")
            self.position += 1
        # YAML keeps one line end, whatever number of blank lines follows.
        while text_lines and not text_lines[-1]:
            text_lines.pop()
        if not text_lines:
            message = "Write the text on the lines below, indented."
            raise SettingsError(message, line.number)
        return "\n".join(text_lines) + "\n"


def read_scalar(text: str, line: int, column: int) -> Any:
    """Return the value of a text without line breaks. Raises SettingsError."""
    if text[0] in '"{[':
        return _read_json(text, line, column)
    if text[0] == "'":
        found = SINGLE_QUOTED.match(text)
        if found is None or not COMMENT.fullmatch(text[found.end() :]):
            raise SettingsError("Close the quotes at the end of the value.", line, column)
        return found[1].replace("''", "'")
    # A comment begins after a space.
    plain_text = re.split(r"\s#", text, maxsplit=1)[0].rstrip()
    return _read_plain(plain_text, line, column)


def _read_json(text: str, line: int, column: int) -> Any:
    """Return the JSON at the beginning of a text, after which only a comment may follow."""
    try:
        value, end = json.JSONDecoder(object_pairs_hook=_refuse_repeated).raw_decode(text)
    except (json.JSONDecodeError, RecursionError) as error:
        position = error.pos if isinstance(error, json.JSONDecodeError) else 0
        message = "Write quotes, braces and brackets as in JSON, on one line."
        raise SettingsError(message, line, column + position) from None
    except KeyError as error:
        raise SettingsError(f"{error.args[0]!r} is there twice.", line, column) from None
    if not COMMENT.fullmatch(text[end:]):
        message = "Put the whole value in quotes."
        raise SettingsError(message, line, column + end)
    if "NaN" in text or "Infinity" in text:
        _refuse_odd_numbers(value, line, column)
    return value


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the pairs as a dictionary. Raises KeyError for a repeated name."""
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise KeyError(name)
        values[name] = value
    return values


def _refuse_odd_numbers(value: Any, line: int, column: int) -> None:
    """Raise SettingsError if a value contains NaN or an infinity, which Python's JSON takes."""
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        raise SettingsError("NaN and Infinity aren't JSON.", line, column) from None


def _read_plain(text: str, line: int, column: int) -> Any:
    """Return the value of a text without quotes.

    Raises SettingsError if parsers of YAML read it in different ways.
    """
    if text in WORDS:
        return WORDS[text]
    # Some parsers keep the sign of a zero.
    if WHOLE_NUMBER.fullmatch(text) and text != "-0":
        return int(text)
    if DECIMAL_NUMBER.fullmatch(text):
        return float(text)
    # A day such as 2027-03-01 stays a text here.
    is_number = WHOLE_NUMBER.fullmatch(text) or (
        NUMBER_LIKE.fullmatch(text) and not DAY_OR_TIME.fullmatch(text)
    )
    is_unclear = (
        text[0] in FORBIDDEN_STARTS
        or is_number
        or text.lower() in WORD_LIKE
        or ": " in text
        or ":\t" in text
        or text.endswith(":")
    )
    if is_unclear:
        raise SettingsError("Put this value in quotes.", line, column)
    return text
