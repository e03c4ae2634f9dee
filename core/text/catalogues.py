"""Catalogues of translated texts: read `.po` files, and compile them without GNU gettext.

Only the `.po` files of `locale/` are in version control. Each process of the site compiles those
that are newer than their `.mo` file when it starts, which takes a tenth of a second per language
after a change and otherwise nothing.
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
LINE = re.compile(r'(?:(msgctxt|msgid_plural|msgid|msgstr)(?:\[\d+\])?\s+)?"(.*)"')
ESCAPE = re.compile(r"\\(.)")
ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}


@dataclass
class Entry:
    """One message of a catalogue; `texts` has one translation, or one for each plural form."""

    comments: list[str] = field(default_factory=list)
    context: str | None = None
    message: str | None = None
    plural: str | None = None
    texts: list[str] = field(default_factory=list)

    @property
    def is_fuzzy(self) -> bool:
        """Return whether the translation is a guess, that of a similar message."""
        return any(line.startswith("#,") and "fuzzy" in line for line in self.comments)

    @property
    def is_translated(self) -> bool:
        return not self.is_fuzzy and bool(self.texts) and all(self.texts)


def read_entries(text: str) -> Iterator[Entry]:
    """Yield the entries of a `.po` file, first its header, which translates the empty message.

    Entries that are no longer in use (`#~`) are left out.
    """
    entry, attribute = Entry(), ""
    for line in text.splitlines():
        if match := LINE.fullmatch(line):
            keyword, value = match[1], _unescape(match[2])
            # A comment, a context or a message begins the next entry.
            if keyword in ("msgctxt", "msgid") and entry.texts:
                yield entry
                entry = Entry()
            attribute = keyword or attribute
            _add(entry, attribute, value, is_first_line=keyword is not None)
        elif line.startswith("#") and not line.startswith("#~"):
            if entry.texts:
                yield entry
                entry = Entry()
            entry.comments.append(line)
    if entry.texts:
        yield entry


def _unescape(text: str) -> str:
    return ESCAPE.sub(lambda match: ESCAPED.get(match[1], match[1]), text)


def _add(entry: Entry, keyword: str, value: str, is_first_line: bool) -> None:
    """Set what a keyword names, or append a line that continues it."""
    if keyword == "msgstr":
        if is_first_line:
            entry.texts.append("")
        entry.texts[-1] += value
        return
    attribute = {"msgctxt": "context", "msgid": "message", "msgid_plural": "plural"}[keyword]
    setattr(entry, attribute, value if is_first_line else getattr(entry, attribute) + value)


def compile_entries(entries: Iterator[Entry]) -> bytes:
    """Return the `.mo` file with the translated entries: two sorted tables, then the texts.

    The format is in the manual of GNU gettext, "The Format of GNU MO Files". A message without a
    translation is left out, so that its English text is shown.
    """
    translations = {}
    for entry in entries:
        if entry.is_translated:
            context = "" if entry.context is None else entry.context + CONTEXT_END
            plural = "" if entry.plural is None else FORM_END + entry.plural
            key = f"{context}{entry.message}{plural}".encode()
            translations[key] = FORM_END.join(entry.texts).encode()
    keys = sorted(translations)
    table_bytes = 8 * len(keys)
    header = (MAGIC, VERSION, len(keys), HEADER_BYTES, HEADER_BYTES + table_bytes, 0, 0)
    tables, texts = [struct.pack("<7I", *header)], []
    position = HEADER_BYTES + 2 * table_bytes
    for text in [*keys, *(translations[key] for key in keys)]:
        tables.append(struct.pack("<2I", len(text), position))
        texts.append(text + b"\0")
        position += len(text) + 1
    return b"".join([*tables, *texts])


def compile_outdated(folder: Path) -> None:
    """Compile the catalogues of a folder that are newer than their `.mo` file, or have none.

    Where the folder cannot be written, what is there is kept: a site must start without it, and
    shows English texts for those that no `.mo` file holds.
    """
    for source in folder.glob("*/LC_MESSAGES/django.po"):
        target = source.with_suffix(".mo")
        is_current = target.exists() and target.stat().st_mtime >= source.stat().st_mtime
        if is_current or not os.access(source.parent, os.W_OK):
            continue
        with suppress(OSError):  # the disk is full, or the folder has just gone
            _replace(target, compile_entries(read_entries(source.read_text(encoding="utf-8"))))


def _replace(target: Path, content: bytes) -> None:
    """Replace a file in one step, because several processes may compile it at the same time."""
    with tempfile.NamedTemporaryFile(dir=target.parent, suffix=".tmp", delete=False) as file:
        file.write(content)
    try:
        os.chmod(file.name, 0o644)  # only its owner may read a temporary file
        os.replace(file.name, target)
    finally:
        Path(file.name).unlink(missing_ok=True)
