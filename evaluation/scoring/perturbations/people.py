"""Change who a text is about, or who seems to have written it; English.

Each function yields edits of a `Source`, drawn by `chance`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from random import Random

from evaluation.scoring.perturbations.source import Edit, Source
from evaluation.scoring.perturbations.tables import GENDERED, NAMES, NOT_NOUNS
from evaluation.scoring.perturbations.words import copy_case, find_phrases, make_key

NOUN_AFTER = re.compile(r"\s+([^\W\d_]+)")
OR_HER = re.compile(r"\s+or\s+(?:her|his)\b", re.IGNORECASE)
NAME_AFTER = re.compile(r"\s[A-Z]")
ARTICLE = re.compile(r"\b(an?)\s$", re.IGNORECASE)

PAIRS = [pair.split() for pair in chain.from_iterable(NAMES)]
OTHER_GENDER = {
    **dict(zip(GENDERED.values(), GENDERED, strict=True)),
    **GENDERED,
    "mrs": "mr",
    "mum": "dad",
    "hers": "his",
}
OTHER_NAME = dict(PAIRS) | {second: first for first, second in PAIRS}


def swap_gender(source: Source, chance: Random) -> Iterator[Edit]:
    """Exchange he and she, gendered nouns, and given names of similar frequency.

    Her → his before a noun, else him; his → her before a noun, else hers.
    """
    for word in source.find_words():
        old_word = word[0]
        if old_word.lower() in ("her", "his", "him"):
            yield Edit(*word.span(), copy_case(_choose_pronoun(source.text, word), old_word))
        elif old_word in OTHER_NAME:
            yield Edit(*word.span(), OTHER_NAME[old_word])
        elif old_word.lower() in OTHER_GENDER:
            yield Edit(*word.span(), copy_case(OTHER_GENDER[old_word.lower()], old_word))


def _choose_pronoun(text: str, word: re.Match[str]) -> str:
    """Return the pronoun of the other gender, in the form used before a noun or on its own."""
    after = NOUN_AFTER.match(text, word.end())
    is_before_noun = OR_HER.match(text, word.end()) or (after and after[1].lower() not in NOT_NOUNS)
    match word[0].lower():
        case "her":
            return "his" if is_before_noun else "him"
        case "his":
            return "her" if is_before_noun else "hers"
        case _:
            return "her"


def replace_names(source: Source, chance: Random) -> Iterator[Edit]:
    """Replace given names with others of the same gender and frequency.

    A name is replaced by the same one wherever it occurs.
    """
    new_names: dict[str, str] = {}
    for band in NAMES:
        pairs = [pair.split() for pair in band]
        for names_of_gender in zip(*pairs, strict=True):
            new_names |= _rotate(names_of_gender, chance)
    for word in source.find_words():
        if word[0] in new_names:
            yield Edit(*word.span(), new_names[word[0]])


def replace_group_terms(
    source: Source, chance: Random, *, groups: Sequence[Sequence[str]]
) -> Iterator[Edit]:
    """Replace terms for groups of people with others from the same list.

    A term is replaced by the same one wherever it occurs. Skips terms in names (“Indian Airlines”).
    Adapts an article before the term: a woman, an Asian.
    """
    new_terms: dict[str, str] = {}
    for terms in groups:
        new_terms |= _rotate(list(map(make_key, terms)), chance)
    for match in find_phrases(source, new_terms):
        # A capital before another one: part of a name.
        if match[0].istitle() and NAME_AFTER.match(source.text, match.end()):
            continue
        new_term = copy_case(new_terms[make_key(match[0])], match[0])
        yield Edit(*match.span(), new_term)
        # The four characters before the term are enough for “ an ”.
        article = ARTICLE.search(source.text[max(0, match.start() - 4) : match.start()])
        if article:
            right = "an" if new_term[0].lower() in "aeiou" else "a"
            end = match.start() - 1
            yield Edit(end - len(article[1]), end, copy_case(right, article[1]))


def _rotate(items: Sequence[str], chance: Random) -> dict[str, str]:
    """Map each item to the next one in a random order.

    Each item maps to a different item, and no two to the same.
    """
    order = chance.sample(items, len(items))
    return dict(zip(order, order[1:] + order[:1], strict=True))


def replace_dialect(source: Source, chance: Random, *, table: Mapping[str, str]) -> Iterator[Edit]:
    """Replace words and forms with those of another dialect."""
    for match in find_phrases(source, table):
        yield Edit(*match.span(), copy_case(table[make_key(match[0])], match[0]))
