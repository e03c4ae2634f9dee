"""Check names: which characters they may contain, and which names look alike.

A name is what people call a thing and see in a list: a model, a team, a task. Invisible
characters, and characters that reverse the direction of writing, make one name look like another.
"""

import unicodedata
from functools import lru_cache
from pathlib import Path

from core.text.words import gettext_noop

CONFUSABLES_FILE = Path(__file__).with_name("confusables.txt")
UNFIT_CATEGORIES = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
"""Unicode categories that no name may contain.

These are control, format, surrogate, private-use and unassigned characters, and separators of
lines and paragraphs.
"""
BLANK_CHARACTERS = "\u2800\u3164\u115f\u1160\uffa0\ufffc"
"""Characters of other categories that are blank: empty Braille cell, Hangul fillers and others."""
MAX_MARKS = 4
"""The maximum number of marks on one letter. Scripts need two or three; more cover other lines."""
NON_JOINER, JOINER = "\u200c", "\u200d"
VIRAMA_CLASS = 9
"""The combining class of the signs that join two letters in Indic scripts."""
JOINING_SCRIPTS = ("ARABIC ", "SYRIAC ", "MONGOLIAN ", "NKO ", "MANDAIC ")
"""Scripts with joined letters, by the beginning of their characters' Unicode names."""
HIDDEN_MESSAGE = gettext_noop("The name contains the invisible character %(character)s. Remove it.")
EMPTY_MESSAGE = gettext_noop("Enter a name with at least one visible character.")


class UnfitName(ValueError):
    """Raised for a text that is not a valid name.

    template: the reason, with placeholders, in English. values: the values of the placeholders.
    """

    def __init__(self, template: str, **values: str) -> None:
        super().__init__(template % values)
        self.template, self.values = template, values


def clean_name(text: str) -> str:
    """Return a name in composed form (NFC) with single spaces. Raises UnfitName.

    Joiners are kept where a script needs them (RFC 5892, appendix A): both kinds after a virama,
    and the non-joiner between letters of joining scripts.
    """
    spaced = "".join(
        " " if _is_space(character) else character
        for character in unicodedata.normalize("NFC", text)
    )
    name = " ".join(word for word in spaced.split(" ") if word)
    marks = 0
    for position, character in enumerate(name):
        marks = marks + 1 if unicodedata.category(character) == "Mn" else 0
        if marks > MAX_MARKS or (_is_hidden(character) and not _is_joiner_needed(name, position)):
            raise UnfitName(HIDDEN_MESSAGE, character=f"U+{ord(character):04X}")
    if not build_skeleton(name):
        raise UnfitName(EMPTY_MESSAGE)
    return name


def build_skeleton(name: str) -> str:
    """Return a key that is equal for names that look alike (UTS #39, section 4).

    Compatibility forms, such as full-width letters, are replaced by their plain forms.
    """
    text, previous_text = name, None
    while text != previous_text:  # what stands for a character may have compatibility forms itself
        previous_text = text
        plain = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text))
        text = "".join(_load_prototypes().get(character, character) for character in plain)
    return " ".join(unicodedata.normalize("NFD", text).split())


@lru_cache(maxsize=4096)
def remove_invisible_characters(text: str) -> str:
    """Return a text on one line, without the characters that names may not contain."""
    visible = (
        character
        if not _is_hidden(character) or _is_joiner_needed(text, position)
        else _replace_blank(character)
        for position, character in enumerate(text)
    )
    return "".join(visible).strip()


def _is_space(character: str) -> bool:
    return unicodedata.category(character) == "Zs"


def _replace_blank(character: str) -> str:
    return " " if character.isspace() else ""


def _is_hidden(character: str) -> bool:
    """Return whether names may not contain a character because it is invisible or unassigned.

    Variation selectors of emoji do not count.
    """
    if unicodedata.category(character) in UNFIT_CATEGORIES or character in BLANK_CHARACTERS:
        return True
    is_ignorable = _load_prototypes().get(character) == ""
    return is_ignorable and unicodedata.category(character) != "Mn"


def _is_joiner_needed(text: str, position: int) -> bool:
    """Return whether the script needs the joiner at this index. False for other characters."""
    if text[position] not in (NON_JOINER, JOINER) or not 0 < position < len(text) - 1:
        return False
    left_char, right_char = text[position - 1], text[position + 1]
    if unicodedata.combining(left_char) == VIRAMA_CLASS:
        return True
    is_between = all(
        unicodedata.name(neighbour, "").startswith(JOINING_SCRIPTS)
        for neighbour in (left_char, right_char)
    )
    return text[position] == NON_JOINER and is_between


@lru_cache(maxsize=1)
def _load_prototypes() -> dict[str, str]:
    """Return the replacements of characters in skeletons, by character. Reads CONFUSABLES_FILE."""
    prototypes: dict[str, str] = {}
    for line in CONFUSABLES_FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        code_points, _, target = line.partition(";")
        first, _, last = code_points.partition("..")
        replacement = "".join(chr(int(code_point, 16)) for code_point in target.split())
        for point in range(int(first, 16), int(last or first, 16) + 1):
            prototypes[chr(point)] = replacement
    return prototypes
