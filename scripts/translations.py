"""Complete the catalogues of `locale/` before a release.

    .venv/bin/python scripts/translations.py            # reads the code, lists what is missing
    .venv/bin/python scripts/translations.py --check    # changes nothing: is anything missing?

Each call takes three steps. It reads the messages of the code again (`makemessages`, which needs
GNU gettext). It takes over what somebody has filled into `var/translations/LANGUAGE.po`, if it
keeps placeholders, plural forms and markup. Then it writes what is still missing, or only guessed,
into those files. The exit status is 0 only when nothing is missing.

A translator opens the files in any editor for `.po` files. A language model gets the file as it is,
with the lines "#." that say what a message is about, and docs/glossary.md.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from core.text.catalogues import Entry, read_entries  # noqa: E402
from scripts.repository import PACKAGES  # noqa: E402

READ = (*PACKAGES, "templates", "locale")
OPTIONS = ("--all", "--no-wrap", "--no-location", "--no-obsolete")
PLACEHOLDER = re.compile(r"%\(\w+\)[\d.]*[a-zA-Z]|\{\w+\}|%%|%[sd]")
TAG = re.compile(r"</?\w+[^>]*>")
PLURALS = re.compile(r"nplurals=(\d+)")


# Read and write


def catalogues(folder: Path) -> dict[str, Path]:
    """Return the path of each catalogue below a folder, by language."""
    return {path.parts[-3]: path for path in sorted(folder.glob("*/LC_MESSAGES/django.po"))}


def entries_of(path: Path) -> list[Entry]:
    return list(read_entries(path.read_text()))


def key_of(entry: Entry) -> tuple[str | None, str | None, str | None]:
    return entry.context, entry.message, entry.plural


def quote(keyword: str, text: str) -> Iterator[str]:
    """Yield the lines of one keyword as gettext writes them with --no-wrap.

    >>> [*quote("msgid", "one\\ntwo")]
    ['msgid ""', '"one\\\\n"', '"two"']
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t")
    lines = [line.replace("\n", "\\n") for line in escaped.splitlines(keepends=True)]
    if len(lines) > 1:
        yield f'{keyword} ""'
        yield from (f'"{line}"' for line in lines)
    else:
        yield f'{keyword} "{"".join(lines)}"'


def write_entries(entries: Iterable[Entry]) -> str:
    """Return the text of a `.po` file."""
    blocks = []
    for entry in entries:
        lines = list(entry.comments)
        if entry.context is not None:
            lines += quote("msgctxt", entry.context)
        lines += quote("msgid", entry.message or "")
        if entry.plural is None:
            lines += quote("msgstr", entry.texts[0])
        else:
            lines += quote("msgid_plural", entry.plural)
            for number, text in enumerate(entry.texts):
                lines += quote(f"msgstr[{number}]", text)
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


# What a translation must keep


def plural_forms(entries: Iterable[Entry]) -> int:
    """Return how many plural forms a language has, by the header of its catalogue."""
    header = next(iter(entries)).texts[0]
    match = PLURALS.search(header)
    return int(match[1]) if match else 2


def faults(entry: Entry, forms: int) -> list[str]:
    """Return what is wrong with the translation of an entry, in words; nothing if it is empty.

    A plural form may leave its number out ("one example"), but names nothing that English does not.
    """
    message = entry.message or ""
    if not any(entry.texts):
        return []
    if entry.plural is None:
        return _faults_of_text(message, entry.texts[0])
    if len(entry.texts) != forms or not all(entry.texts):
        return [f"it needs {forms} plural forms"]
    allowed = Counter(PLACEHOLDER.findall(message)) | Counter(PLACEHOLDER.findall(entry.plural))
    found = []
    for text in entry.texts:
        if unknown := Counter(PLACEHOLDER.findall(text)) - allowed:
            found.append(f"it has {', '.join(unknown)}, which the English text has not")
        if Counter(TAG.findall(text)) != Counter(TAG.findall(entry.plural)):
            found.append("its tags differ")
    return found


def _faults_of_text(message: str, text: str) -> list[str]:
    found = []
    if Counter(PLACEHOLDER.findall(text)) != Counter(PLACEHOLDER.findall(message)):
        found.append("its placeholders differ")
    if Counter(TAG.findall(text)) != Counter(TAG.findall(message)):
        found.append("its tags differ")
    # Templates put texts side by side, so a space at an edge is part of the text.
    if (text[0].isspace(), text[-1].isspace()) != (message[0].isspace(), message[-1].isspace()):
        found.append("the spaces around it differ")
    if '"' in text and '"' not in message:
        found.append("it has a straight quotation mark, which would end an attribute")
    return found


# The three steps


@contextmanager
def renewed_catalogues(root: Path) -> Iterator[dict[str, Path]]:
    """Give the catalogues, by language, after the messages of the code were read into them.

    They are copies: makemessages reads whatever is in a folder, environments and builds included.
    """
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name)
        ignored = shutil.ignore_patterns("__pycache__", "*.mo")
        for folder in READ:
            shutil.copytree(root / folder, copy / folder, ignore=ignored)
        command = [sys.executable, "-m", "django", "makemessages", *OPTIONS]
        variables = {**os.environ, "DJANGO_SETTINGS_MODULE": ""}  # those of the site are not there
        subprocess.run(command, cwd=copy, env=variables, check=True, stdout=subprocess.DEVNULL)
        yield catalogues(copy / "locale")


def missing(catalogue: Path) -> list[Entry]:
    """Return the entries of a catalogue without a translation, or with a guessed one."""
    return [entry for entry in entries_of(catalogue)[1:] if not entry.is_translated]


def to_fill(entry: Entry) -> Entry:
    """Return a missing entry as it is given to translators: empty, with the guess as a comment."""
    comments = [*without_guess(entry.comments)]
    if entry.is_fuzzy:
        comments.insert(0, f"#. Translation of a similar message: {' / '.join(entry.texts)}")
    empty = ["" for _ in entry.texts]
    return Entry(comments, entry.context, entry.message, entry.plural, empty)


def without_guess(comments: Iterable[str]) -> Iterator[str]:
    """Yield the comments of an entry without those that say that its translation is a guess."""
    for line in comments:
        if line.startswith("#,"):
            flags = [flag for flag in line[2:].split(",") if flag.strip() != "fuzzy"]
            if flags:
                yield f"#,{','.join(flags)}"
        elif not line.startswith("#|"):
            yield line


def take_over(catalogue: Path, filled: Path) -> list[str]:
    """Put the translations of a filled file into a catalogue; return why some were refused."""
    entries = entries_of(catalogue)
    forms = plural_forms(entries)
    translations = {key_of(entry): entry for entry in entries_of(filled)}
    refused = []
    for entry in entries[1:]:
        translation = translations.get(key_of(entry))
        if entry.is_translated or translation is None or not any(translation.texts):
            continue
        if reasons := faults(translation, forms):
            refused.append(f"{entry.message!r}: {' and '.join(reasons)}")
            continue
        entry.texts = translation.texts
        entry.comments = [*without_guess(entry.comments)]
    catalogue.write_text(write_entries(entries))
    return refused


def complete(root: Path, folder: Path) -> int:
    """Take the three steps; return how many translations are missing in all languages together."""
    with renewed_catalogues(root) as renewed:
        for language, catalogue in catalogues(root / "locale").items():
            shutil.copyfile(renewed[language], catalogue)
    folder.mkdir(parents=True, exist_ok=True)
    total = 0
    for language, catalogue in catalogues(root / "locale").items():
        filled = folder / f"{language}.po"
        if filled.exists():
            for reason in take_over(catalogue, filled):
                print(f"{language}: refused: {reason}")
        entries = missing(catalogue)
        header = entries_of(catalogue)[0]
        filled.write_text(write_entries([header, *map(to_fill, entries)]))
        print(f"{language}: {len(entries)} to translate, in {filled}")
        total += len(entries)
    return total


def check(root: Path) -> int:
    """Return how many translations the code of today lacks; change nothing."""
    with renewed_catalogues(root) as renewed:
        total = 0
        for language, catalogue in renewed.items():
            entries = missing(catalogue)
            print(f"{language}: {len(entries)} to translate")
            total += len(entries)
    return total


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="change nothing")
    if parser.parse_args().check:
        left = check(ROOT)
    else:
        left = complete(ROOT, ROOT / "var" / "translations")
    sys.exit(1 if left else 0)
