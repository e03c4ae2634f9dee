"""Read `.po` catalogues of translations and compile them without GNU gettext.

Only the `.po` files of `locale/` are in version control. When a process of the site starts, it
compiles the catalogues that are newer than their `.mo` file. This takes a tenth of a second per
changed language.
"""

import os
import re
import struct
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

MAGIC, VERSION, HEADER_BYTES = 0x950412DE, 0, 28
CONTEXT_END, FORM_END = "\x04", "\0"
LINE_PATTERN = re.compile(r'(?:(msgctxt|msgid_plural|msgid|msgstr)(?:\[\d+\])?\s+)?"(.*)"')
ESCAPE_PATTERN = re.compile(r"\\(.)")
ESCAPED_CHARACTERS = {"n": "\n", "t": "\t", "r": "\r"}


@dataclass
class Entry:
    """A message of a catalogue with its translation.

    texts: one translation, or one per plural form.
    """

    comments: list[str] = field(default_factory=list)
    context: str | None = None
    message: str | None = None
    plural: str | None = None
    texts: list[str] = field(default_factory=list)

    @property
    def is_fuzzy(self) -> bool:
        """Return whether the translation was only guessed from a similar message."""
        return any(line.startswith("#,") and "fuzzy" in line for line in self.comments)

    @property
    def is_translated(self) -> bool:
        return not self.is_fuzzy and bool(self.texts) and all(self.texts)


def read_entries(text: str) -> Iterator[Entry]:
    """Yield the entries of a `.po` file, starting with its header, which translates "".

    Obsolete entries (`#~`) are left out.
    """
    entry, attribute = Entry(), ""
    for line in text.splitlines():
        if match := LINE_PATTERN.fullmatch(line):
            keyword, value = match[1], _unescape(match[2])
            # A comment, a context or a message begins the next entry.
            if keyword in ("msgctxt", "msgid") and entry.texts:
                yield entry
                entry = Entry()
            attribute = keyword or attribute
            _append_text(entry, attribute, value, is_first_line=keyword is not None)
        elif line.startswith("#") and not line.startswith("#~"):
            if entry.texts:
                yield entry
                entry = Entry()
            entry.comments.append(line)
    if entry.texts:
        yield entry


def _unescape(text: str) -> str:
    return ESCAPE_PATTERN.sub(lambda match: ESCAPED_CHARACTERS.get(match[1], match[1]), text)


def _append_text(entry: Entry, keyword: str, value: str, is_first_line: bool) -> None:
    """Set the attribute for a keyword, or append a continuation line to it."""
    if keyword == "msgstr":
        if is_first_line:
            entry.texts.append("")
        entry.texts[-1] += value
        return
    attribute = {"msgctxt": "context", "msgid": "message", "msgid_plural": "plural"}[keyword]
    setattr(entry, attribute, value if is_first_line else getattr(entry, attribute) + value)


def compile_entries(entries: Iterator[Entry]) -> bytes:
    """Return the content of a `.mo` file: two sorted tables, then the translated texts.

    The format is in the manual of GNU gettext, "The Format of GNU MO Files". Messages without a
    translation are left out, so that their English texts are shown.
    """
    translations = {}
    for entry in entries:
        if entry.is_translated:
            context = "" if entry.context is None else entry.context + CONTEXT_END
            plural = "" if entry.plural is None else FORM_END + entry.plural
            key = f"{context}{entry.message}{plural}".encode()
            translations[key] = FORM_END.join(entry.texts).encode()
    # gettext finds a message by binary search, so the table is sorted by bytes.
    keys = sorted(translations)
    table_bytes = 8 * len(keys)
    header = (MAGIC, VERSION, len(keys), HEADER_BYTES, HEADER_BYTES + table_bytes, 0, 0)
    tables, texts = [struct.pack("<7I", *header)], []
    # Texts follow both tables: that of the messages and that of the translations.
    position = HEADER_BYTES + 2 * table_bytes
    for text in [*keys, *(translations[key] for key in keys)]:
        tables.append(struct.pack("<2I", len(text), position))
        texts.append(text + b"\0")
        position += len(text) + 1
    return b"".join([*tables, *texts])


def compile_outdated_catalogues(folder: Path) -> None:
    """Compile the catalogues in a folder that are newer than their `.mo` file, or have none.

    If the folder is not writable, existing `.mo` files are kept. The site must start anyway:
    messages that no `.mo` file contains are shown in English.
    """
    for source in folder.glob("*/LC_MESSAGES/django.po"):
        target = source.with_suffix(".mo")
        is_current = target.exists() and target.stat().st_mtime >= source.stat().st_mtime
        if is_current or not os.access(source.parent, os.W_OK):
            continue
        with suppress(OSError):  # the disk is full, or the folder has just gone
            _replace_file(target, compile_entries(read_entries(source.read_text(encoding="utf-8"))))


def _replace_file(target: Path, content: bytes) -> None:
    """Replace a file atomically, because several processes may compile it at the same time."""
    with tempfile.NamedTemporaryFile(dir=target.parent, suffix=".tmp", delete=False) as file:
        file.write(content)
    try:
        os.chmod(file.name, 0o644)  # only its owner may read a temporary file
        os.replace(file.name, target)
    finally:
        Path(file.name).unlink(missing_ok=True)
