"""Change letters, case, spaces and punctuation; most kinds know no language.

Each function yields edits of a `Source`, drawn by `chance`; `low` and `high` bound the share (0-1)
of places that change.
"""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from typing import TypeVar

from core.text.words import MARKS
from evaluation.scoring.perturbations.source import SENTENCE, Edit, Source
from evaluation.scoring.perturbations.tables import HOMOGLYPHS, LEET, Table

Item = TypeVar("Item")
Edits = Callable[..., Iterator[Edit]]

GAP = re.compile(rf"(?<=[^\W\d_]|[{MARKS}]) (?=[^\W\d_])")
FINAL = re.compile(rf"(?<=[\w{MARKS}])[.!?…。！？।؟]+\s*$")
ZERO_WIDTH = ("\u200b", "\u200c", "\u200d", "\u2060")


def cased(source: Source, chance: Random, *, change: Callable[[str], str]) -> Iterator[Edit]:
    """Change the case of every word with `change`."""
    for word in source.words():
        yield Edit(*word.span(), change(word[0]))


def no_final_punctuation(source: Source, chance: Random) -> Iterator[Edit]:
    """Drop the punctuation at the end of a text."""
    for match in source.find(FINAL):
        yield Edit(*match.span(), "")


def _in_gaps(new: Callable[[Random], str]) -> Edits:
    """Return a kind that replaces some of the spaces between words with `new`."""

    def edits(source: Source, chance: Random, *, low: float, high: float) -> Iterator[Edit]:
        gaps = source.find(GAP)
        for gap in some(gaps, len(gaps), chance, low, high):
            yield Edit(*gap.span(), new(chance))

    return edits


extra_spaces = _in_gaps(lambda chance: " " * chance.randint(2, 3))
missing_spaces = _in_gaps(lambda chance: "")


def _at_letters(
    new: Callable[[str, Random], str], fits: Callable[[str], bool] = bool, width: int = 1
) -> Edits:
    """Return a kind that replaces some letters within words.

    new: returns the replacement of the old letters. fits: whether letters may be replaced. width:
    the number of letters replaced at a time.
    """

    def edits(source: Source, chance: Random, *, low: float, high: float) -> Iterator[Edit]:
        text, letters = source.text, source.inner_letters()
        # The share is of all letters, so that a rare letter is not changed each time it occurs.
        fitting = [at for at in letters if fits(text[at : at + width])]
        for at in some(fitting, len(letters), chance, low, high):
            yield Edit(at, at + width, new(text[at : at + width], chance))

    return edits


def _by_table(table: Table) -> Edits:
    """Return a kind that replaces some letters with others from a table."""
    return _at_letters(
        lambda old, chance: chance.choice(table[old.lower()]), lambda old: old.lower() in table
    )


def neighbour_keys(
    source: Source, chance: Random, *, low: float, high: float, table: Table
) -> Iterator[Edit]:
    """Replace some letters with their neighbours in the table of a language's keyboard."""
    return _by_table(table)(source, chance, low=low, high=high)


def _can_swap(old: str) -> bool:
    return len(old) == 2 and old.isalpha() and old[0] != old[1]


leet_digits = _by_table(LEET)
swapped_letters = _at_letters(lambda old, chance: old[::-1], _can_swap, width=2)
dropped_letters = _at_letters(lambda old, chance: "")
doubled_letters = _at_letters(lambda old, chance: 2 * old)


def homoglyphs(source: Source, chance: Random) -> Iterator[Edit]:
    """Replace one letter of each sentence with a Cyrillic letter that looks the same."""
    letters = [at for at in source.inner_letters() if source.text[at] in HOMOGLYPHS]
    for sentence in SENTENCE.finditer(source.text):
        # The letters are in order, so those of a sentence are one stretch.
        first, end = (bisect_left(letters, at) for at in sentence.span())
        # A share of 1 of one letter: exactly one, if the sentence has any.
        for at in some(letters[first:end], 1, chance, 1, 1):
            yield Edit(at, at + 1, HOMOGLYPHS[source.text[at]])


def zero_width(source: Source, chance: Random) -> Iterator[Edit]:
    """Insert one or two invisible characters within words."""
    letters = source.inner_letters()
    for at in some(letters, chance.randint(1, 2), chance, 1, 1):
        yield Edit(at, at, chance.choice(ZERO_WIDTH))


def no_diacritics(source: Source, chance: Random) -> Iterator[Edit]:
    """Remove the diacritics from Latin letters."""
    for word in source.words():
        for at in range(*word.span()):
            parts = unicodedata.normalize("NFD", source.text[at])
            if len(parts) > 1 and unicodedata.name(parts[0], "").startswith("LATIN"):
                yield Edit(at, at + 1, parts[0])


def some(items: Sequence[Item], of: int, chance: Random, low: float, high: float) -> Iterable[Item]:
    """Draw items: a share from `low` to `high` of `of`, but at least one if there are any.

    Parameters
    ----------
    items
        The items to draw from.
    of
        The number to which the share refers.
    chance
        The source of randomness.
    low, high
        The bounds of the share, 0-1.
    """
    count = max(1, round(of * chance.uniform(low, high)))
    return chance.sample(items, min(len(items), count))
