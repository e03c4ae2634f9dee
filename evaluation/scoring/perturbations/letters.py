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
FINAL_PUNCTUATION = re.compile(rf"(?<=[\w{MARKS}])[.!?…。！？।؟]+\s*$")
ZERO_WIDTH_CHARACTERS = ("\u200b", "\u200c", "\u200d", "\u2060")


def change_case(source: Source, chance: Random, *, change: Callable[[str], str]) -> Iterator[Edit]:
    """Change the case of every word with `change`."""
    for word in source.find_words():
        yield Edit(*word.span(), change(word[0]))


def drop_final_punctuation(source: Source, chance: Random) -> Iterator[Edit]:
    """Drop the punctuation at the end of a text."""
    for match in source.find(FINAL_PUNCTUATION):
        yield Edit(*match.span(), "")


def _make_gap_kind(make_gap: Callable[[Random], str]) -> Edits:
    """Return a kind that replaces some of the spaces between words with what `make_gap` returns."""

    def edits(source: Source, chance: Random, *, low: float, high: float) -> Iterator[Edit]:
        gaps = source.find(GAP)
        for gap in draw_share(gaps, len(gaps), chance, low, high):
            yield Edit(*gap.span(), make_gap(chance))

    return edits


insert_extra_spaces = _make_gap_kind(lambda chance: " " * chance.randint(2, 3))
drop_spaces = _make_gap_kind(lambda chance: "")


def _make_letter_kind(
    make_replacement: Callable[[str, Random], str],
    can_replace: Callable[[str], bool] = bool,
    width: int = 1,
) -> Edits:
    """Return a kind that replaces some letters within words.

    make_replacement: returns the replacement of the old letters. can_replace: whether letters may
    be replaced. width: the number of letters replaced at a time.
    """

    def edits(source: Source, chance: Random, *, low: float, high: float) -> Iterator[Edit]:
        text, letters = source.text, source.find_inner_letters()
        # The share is of all letters, so that a rare letter is not changed each time it occurs.
        fitting_positions = [at for at in letters if can_replace(text[at : at + width])]
        for at in draw_share(fitting_positions, len(letters), chance, low, high):
            yield Edit(at, at + width, make_replacement(text[at : at + width], chance))

    return edits


def _make_table_kind(table: Table) -> Edits:
    """Return a kind that replaces some letters with others from a table."""
    return _make_letter_kind(
        lambda old, chance: chance.choice(table[old.lower()]), lambda old: old.lower() in table
    )


def replace_with_neighbours(
    source: Source, chance: Random, *, low: float, high: float, table: Table
) -> Iterator[Edit]:
    """Replace some letters with their neighbours in the table of a language's keyboard."""
    return _make_table_kind(table)(source, chance, low=low, high=high)


def _can_swap(letters: str) -> bool:
    return len(letters) == 2 and letters.isalpha() and letters[0] != letters[1]


replace_with_leet = _make_table_kind(LEET)
swap_letters = _make_letter_kind(lambda old, chance: old[::-1], _can_swap, width=2)
drop_letters = _make_letter_kind(lambda old, chance: "")
double_letters = _make_letter_kind(lambda old, chance: 2 * old)


def replace_with_homoglyphs(source: Source, chance: Random) -> Iterator[Edit]:
    """Replace one letter of each sentence with a Cyrillic letter that looks the same."""
    letters = [at for at in source.find_inner_letters() if source.text[at] in HOMOGLYPHS]
    for sentence in SENTENCE.finditer(source.text):
        # The letters are in order, so those of a sentence are one stretch.
        first, end = (bisect_left(letters, at) for at in sentence.span())
        # A share of 1 of one letter: exactly one, if the sentence has any.
        for at in draw_share(letters[first:end], 1, chance, 1, 1):
            yield Edit(at, at + 1, HOMOGLYPHS[source.text[at]])


def insert_zero_width(source: Source, chance: Random) -> Iterator[Edit]:
    """Insert one or two invisible characters within words."""
    letters = source.find_inner_letters()
    for at in draw_share(letters, chance.randint(1, 2), chance, 1, 1):
        yield Edit(at, at, chance.choice(ZERO_WIDTH_CHARACTERS))


def strip_diacritics(source: Source, chance: Random) -> Iterator[Edit]:
    """Remove the diacritics from Latin letters."""
    for word in source.find_words():
        for at in range(*word.span()):
            parts = unicodedata.normalize("NFD", source.text[at])
            if len(parts) > 1 and unicodedata.name(parts[0], "").startswith("LATIN"):
                yield Edit(at, at + 1, parts[0])


def draw_share(
    items: Sequence[Item], total: int, chance: Random, low: float, high: float
) -> Iterable[Item]:
    """Draw items: a share from `low` to `high` of `total`, but at least one if there are any.

    Parameters
    ----------
    items
        The items to draw from.
    total
        The number to which the share refers.
    chance
        The source of randomness.
    low, high
        The bounds of the share, 0-1.
    """
    count = max(1, round(total * chance.uniform(low, high)))
    return chance.sample(items, min(len(items), count))
