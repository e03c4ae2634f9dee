"""Changes of letters, case, spaces and punctuation; most know no language."""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from random import Random
from typing import TypeVar

from evaluation.scoring.perturbations.source import SENTENCE, Edit, Source
from evaluation.scoring.perturbations.tables import HOMOGLYPHS, LEET, NEIGHBOURS

Item = TypeVar("Item")

GAP = re.compile(r"(?<=[^\W\d_]) (?=[^\W\d_])")
FINAL = re.compile(r"(?<=\w)[.!?…]+\s*$")
ZERO_WIDTH = ("\u200b", "\u200c", "\u200d", "\u2060")


def cased(source: Source, chance: Random, *, change: Callable[[str], str]) -> Iterator[Edit]:
    """Every word in another case."""
    for word in source.words():
        yield Edit(*word.span(), change(word[0]))


def no_final_punctuation(source: Source, chance: Random) -> Iterator[Edit]:
    for match in source.found(FINAL):
        yield Edit(*match.span(), "")


def extra_spaces(source: Source, chance: Random, *, low: float, high: float) -> Iterator[Edit]:
    """A second or third space in some of the gaps between words."""
    gaps = source.found(GAP)
    for gap in some(gaps, len(gaps), chance, low, high):
        yield Edit(*gap.span(), " " * chance.randint(2, 3))


def missing_spaces(source: Source, chance: Random, *, low: float, high: float) -> Iterator[Edit]:
    gaps = source.found(GAP)
    for gap in some(gaps, len(gaps), chance, low, high):
        yield Edit(*gap.span(), "")


def neighbour_keys(source: Source, chance: Random, *, low: float, high: float) -> Iterator[Edit]:
    """The key beside the right one."""
    yield from _replaced(source, chance, NEIGHBOURS, low, high)


def leet_digits(source: Source, chance: Random, *, low: float, high: float) -> Iterator[Edit]:
    """Digits that look like letters."""
    yield from _replaced(source, chance, LEET, low, high)


def _replaced(
    source: Source, chance: Random, table: dict[str, str], low: float, high: float
) -> Iterator[Edit]:
    letters = source.inner_letters()
    known = [at for at in letters if source.text[at].lower() in table]
    for at in some(known, len(letters), chance, low, high):
        yield Edit(at, at + 1, chance.choice(table[source.text[at].lower()]))


def swapped_letters(source: Source, chance: Random, *, low: float, high: float) -> Iterator[Edit]:
    letters = source.inner_letters()
    pairs = [
        at
        for at, after in pairwise(letters)
        if after == at + 1 and source.text[at] != source.text[after]
    ]
    for at in some(pairs, len(letters), chance, low, high):
        yield Edit(at, at + 2, source.text[at + 1] + source.text[at])


def dropped_letters(source: Source, chance: Random, *, low: float, high: float) -> Iterator[Edit]:
    letters = source.inner_letters()
    for at in some(letters, len(letters), chance, low, high):
        yield Edit(at, at + 1, "")


def doubled_letters(source: Source, chance: Random, *, low: float, high: float) -> Iterator[Edit]:
    letters = source.inner_letters()
    for at in some(letters, len(letters), chance, low, high):
        yield Edit(at, at + 1, 2 * source.text[at])


def homoglyphs(source: Source, chance: Random) -> Iterator[Edit]:
    """One letter of each sentence becomes a Cyrillic one of the same look."""
    letters = [at for at in source.inner_letters() if source.text[at] in HOMOGLYPHS]
    for sentence in SENTENCE.finditer(source.text):
        first, end = (bisect_left(letters, at) for at in sentence.span())
        for at in some(letters[first:end], 1, chance, 1, 1):
            yield Edit(at, at + 1, HOMOGLYPHS[source.text[at]])


def zero_width(source: Source, chance: Random) -> Iterator[Edit]:
    """One or two characters that nobody sees, within words."""
    letters = source.inner_letters()
    for at in some(letters, chance.randint(1, 2), chance, 1, 1):
        yield Edit(at, at, chance.choice(ZERO_WIDTH))


def no_diacritics(source: Source, chance: Random) -> Iterator[Edit]:
    """Latin letters without their marks."""
    for word in source.words():
        for at in range(*word.span()):
            parts = unicodedata.normalize("NFD", source.text[at])
            if len(parts) > 1 and unicodedata.name(parts[0], "").startswith("LATIN"):
                yield Edit(at, at + 1, parts[0])


def some(items: Sequence[Item], of: int, chance: Random, low: float, high: float) -> Iterable[Item]:
    """A share between `low` and `high` of so many, at least one, drawn from the items."""
    wanted = max(1, round(of * chance.uniform(low, high)))
    return chance.sample(items, min(len(items), wanted))
