"""Names that say what they seem to say: which characters they may hold, and which look alike.

A name is what people call a thing and others read in a list: a model, a team, a task. Characters
that are not shown, or that turn the direction of writing, make one name look like another.
"""

import unicodedata
from functools import lru_cache
from pathlib import Path

from core.text.words import gettext_noop

DATA = Path(__file__).with_name("confusables.txt")
UNFIT = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
"""Categories of characters that no name holds: control, format, halves of pairs, private use, not
assigned, ends of lines and paragraphs."""
BLANK = "\u2800\u3164\u115f\u1160\uffa0\ufffc"
"""Letters that show nothing: an empty Braille cell, fillers of Hangul, a place for an object."""
MOST_MARKS = 4
"""Marks on one letter; scripts need two or three, and more of them cover other lines."""
NON_JOINER, JOINER = "\u200c", "\u200d"
VIRAMA = 9
"""The combining class of signs that join two letters of Indic scripts."""
JOINING = ("ARABIC ", "SYRIAC ", "MONGOLIAN ", "NKO ", "MANDAIC ")
"""Scripts whose letters join, by the beginning of their characters' names."""
HIDDEN = gettext_noop("A name cannot hold %(character)s, which is not shown. Remove it.")
EMPTY = gettext_noop("Enter a name that can be read.")


class UnfitName(ValueError):
    """Raised for a text that is not a valid name. `words` give the reason, with `values`."""

    def __init__(self, words: str, **values: str) -> None:
        super().__init__(words % values)
        self.words, self.values = words, values


def clean_name(text: str) -> str:
    """Return a name in composed form (NFC) with single spaces. Raises UnfitName.

    Joiners are kept where a script needs them (RFC 5892, appendix A): after a virama, and the
    non-joiner between letters of scripts that join.
    """
    spaced = "".join(" " if _is_space(one) else one for one in unicodedata.normalize("NFC", text))
    name = " ".join(word for word in spaced.split(" ") if word)
    marks = 0
    for place, character in enumerate(name):
        marks = marks + 1 if unicodedata.category(character) == "Mn" else 0
        if marks > MOST_MARKS or (_is_hidden(character) and not _joins(name, place)):
            raise UnfitName(HIDDEN, character=f"U+{ord(character):04X}")
    if not skeleton(name):
        raise UnfitName(EMPTY)
    return name


def skeleton(name: str) -> str:
    """Return a key that is equal for names that look alike (UTS #39, section 4).

    Compatibility forms, such as full-width letters, are replaced by their plain forms.
    """
    text, before = name, None
    while text != before:  # what stands for a character may have compatibility forms itself
        before = text
        plain = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text))
        text = "".join(_prototypes().get(character, character) for character in plain)
    return " ".join(unicodedata.normalize("NFD", text).split())


@lru_cache(maxsize=4096)
def visible(text: str) -> str:
    """Return a text on one line, without the characters that names must not contain."""
    visible = (
        character if not _is_hidden(character) or _joins(text, place) else _blank(character)
        for place, character in enumerate(text)
    )
    return "".join(visible).strip()


def _is_space(character: str) -> bool:
    return unicodedata.category(character) == "Zs"


def _blank(character: str) -> str:
    return " " if character.isspace() else ""


def _is_hidden(character: str) -> bool:
    """Return whether a character is invisible. Variation selectors of emoji are."""
    if unicodedata.category(character) in UNFIT or character in BLANK:
        return True
    is_ignorable = _prototypes().get(character) == ""
    return is_ignorable and unicodedata.category(character) != "Mn"


def _joins(text: str, place: int) -> bool:
    """Return whether the script needs a joiner at this index."""
    if text[place] not in (NON_JOINER, JOINER) or not 0 < place < len(text) - 1:
        return False
    left_char, right_char = text[place - 1], text[place + 1]
    if unicodedata.combining(left_char) == VIRAMA:
        return True
    is_between = all(
        unicodedata.name(neighbour, "").startswith(JOINING) for neighbour in (left_char, right_char)
    )
    return text[place] == NON_JOINER and is_between


@lru_cache(maxsize=1)
def _prototypes() -> dict[str, str]:
    """Return the replacement of each character in a skeleton."""
    prototypes: dict[str, str] = {}
    for line in DATA.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        points, _, target = line.partition(";")
        first, _, last = points.partition("..")
        replacement = "".join(chr(int(code_point, 16)) for code_point in target.split())
        for point in range(int(first, 16), int(last or first, 16) + 1):
            prototypes[chr(point)] = replacement
    return prototypes
