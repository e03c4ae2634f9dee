"""Change letters, case, spaces and punctuation. Most kinds work in any language.

Each function yields edits of a `Source`, drawn by `rng`; `low` and `high` bound the share (0-1)
of places that change.
"""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from typing import TypeVar

from core.text.words import MARKS
from evaluation.scoring.perturbations.source import SENTENCE_PATTERN, Edit, Source
from evaluation.scoring.perturbations.tables import HOMOGLYPHS, LEET, Table

Item = TypeVar("Item")
EditFunction = Callable[..., Iterator[Edit]]

GAP_PATTERN = re.compile(rf"(?<=[^\W\d_]|[{MARKS}]) (?=[^\W\d_])")
FINAL_PUNCTUATION_PATTERN = re.compile(rf"(?<=[\w{MARKS}])[.!?…。！？।؟]+\s*$")
ZERO_WIDTH_CHARACTERS = ("\u200b", "\u200c", "\u200d", "\u2060")


def change_case(source: Source, rng: Random, *, change: Callable[[str], str]) -> Iterator[Edit]:
    """Change the case of every word with the function `change`."""
    for word in source.find_words():
        yield Edit(*word.span(), change(word[0]))


def drop_final_punctuation(source: Source, rng: Random) -> Iterator[Edit]:
    """Drop the punctuation at the end of a text."""
    for match in source.find(FINAL_PUNCTUATION_PATTERN):
        yield Edit(*match.span(), "")


def _make_gap_replacer(make_gap: Callable[[Random], str]) -> EditFunction:
    """Return a function that replaces some spaces between words with the result of `make_gap`."""

    def propose_edits(source: Source, rng: Random, *, low: float, high: float) -> Iterator[Edit]:
        gaps = source.find(GAP_PATTERN)
        for gap in draw_share(gaps, len(gaps), rng, low, high):
            yield Edit(*gap.span(), make_gap(rng))

    return propose_edits


insert_extra_spaces = _make_gap_replacer(lambda rng: " " * rng.randint(2, 3))
drop_spaces = _make_gap_replacer(lambda rng: "")


def _make_letter_replacer(
    make_replacement: Callable[[str, Random], str],
    can_replace: Callable[[str], bool] = bool,
    width: int = 1,
) -> EditFunction:
    """Return a function that replaces some letters within words.

    make_replacement: returns the replacement of the old letters. can_replace: whether letters may
    be replaced. width: the number of letters replaced at a time.
    """

    def propose_edits(source: Source, rng: Random, *, low: float, high: float) -> Iterator[Edit]:
        text, letters = source.text, source.find_inner_letters()
        # The share is of all letters, so that a rare letter is not changed each time it occurs.
        fitting_positions = [at for at in letters if can_replace(text[at : at + width])]
        for at in draw_share(fitting_positions, len(letters), rng, low, high):
            yield Edit(at, at + width, make_replacement(text[at : at + width], rng))

    return propose_edits


def _make_table_replacer(table: Table) -> EditFunction:
    """Return a function that replaces some letters with others from a table."""
    return _make_letter_replacer(
        lambda old, rng: rng.choice(table[old.lower()]), lambda old: old.lower() in table
    )


def replace_with_neighbours(
    source: Source, rng: Random, *, low: float, high: float, table: Table
) -> Iterator[Edit]:
    """Replace some letters with their neighbours in the table of a language's keyboard."""
    return _make_table_replacer(table)(source, rng, low=low, high=high)


def _can_swap(letters: str) -> bool:
    return len(letters) == 2 and letters.isalpha() and letters[0] != letters[1]


replace_with_leet = _make_table_replacer(LEET)
swap_letters = _make_letter_replacer(lambda old, rng: old[::-1], _can_swap, width=2)
drop_letters = _make_letter_replacer(lambda old, rng: "")
double_letters = _make_letter_replacer(lambda old, rng: 2 * old)


def replace_with_homoglyphs(source: Source, rng: Random) -> Iterator[Edit]:
    """Replace one letter of each sentence with a Cyrillic letter that looks the same."""
    letters = [at for at in source.find_inner_letters() if source.text[at] in HOMOGLYPHS]
    for sentence in SENTENCE_PATTERN.finditer(source.text):
        # The letters are in order, so those of a sentence are adjacent.
        first, end = (bisect_left(letters, at) for at in sentence.span())
        # With a share of 1, exactly one letter, if the sentence has any.
        for position in draw_share(letters[first:end], 1, rng, 1, 1):
            yield Edit(position, position + 1, HOMOGLYPHS[source.text[position]])


def insert_zero_width(source: Source, rng: Random) -> Iterator[Edit]:
    """Insert one or two invisible characters within words."""
    letters = source.find_inner_letters()
    for at in draw_share(letters, rng.randint(1, 2), rng, 1, 1):
        yield Edit(at, at, rng.choice(ZERO_WIDTH_CHARACTERS))


def strip_diacritics(source: Source, rng: Random) -> Iterator[Edit]:
    """Remove the diacritics from Latin letters."""
    for word in source.find_words():
        for at in range(*word.span()):
            decomposed = unicodedata.normalize("NFD", source.text[at])
            if len(decomposed) > 1 and unicodedata.name(decomposed[0], "").startswith("LATIN"):
                yield Edit(at, at + 1, decomposed[0])


def draw_share(
    items: Sequence[Item], total: int, rng: Random, low: float, high: float
) -> Iterable[Item]:
    """Draw items: a share from `low` to `high` of `total`, but at least one if there are any.

    Parameters
    ----------
    items
        The items to draw from.
    total
        The number to which the share refers.
    rng
        The source of randomness.
    low, high
        The bounds of the share, 0-1.
    """
    count = max(1, round(total * rng.uniform(low, high)))
    return rng.sample(items, min(len(items), count))
