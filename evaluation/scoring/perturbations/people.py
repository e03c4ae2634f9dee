"""Change who a text is about, or who seems to have written it. English only.

Each function yields edits of a `Source`, drawn by `rng`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from random import Random

from evaluation.scoring.perturbations.source import Edit, Source
from evaluation.scoring.perturbations.tables import GENDERED, NAMES, NOT_NOUNS
from evaluation.scoring.perturbations.words import copy_case, find_phrases, make_key

NOUN_AFTER_PATTERN = re.compile(r"\s+([^\W\d_]+)")
OR_HER_PATTERN = re.compile(r"\s+or\s+(?:her|his)\b", re.IGNORECASE)
NAME_AFTER_PATTERN = re.compile(r"\s[A-Z]")
ARTICLE_PATTERN = re.compile(r"\b(an?)\s$", re.IGNORECASE)

NAME_PAIRS = [pair.split() for pair in chain.from_iterable(NAMES)]
OTHER_GENDER = {
    **dict(zip(GENDERED.values(), GENDERED, strict=True)),
    **GENDERED,
    "mrs": "mr",
    "mum": "dad",
    "hers": "his",
}
OTHER_NAME = dict(NAME_PAIRS) | {second: first for first, second in NAME_PAIRS}


def swap_gender(source: Source, rng: Random) -> Iterator[Edit]:
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
    noun_match = NOUN_AFTER_PATTERN.match(text, word.end())
    is_before_noun = OR_HER_PATTERN.match(text, word.end()) or (
        noun_match and noun_match[1].lower() not in NOT_NOUNS
    )
    match word[0].lower():
        case "her":
            return "his" if is_before_noun else "him"
        case "his":
            return "her" if is_before_noun else "hers"
        case _:
            return "her"


def replace_names(source: Source, rng: Random) -> Iterator[Edit]:
    """Replace given names with others of the same gender and frequency.

    All occurrences of a name get the same replacement.
    """
    new_names: dict[str, str] = {}
    for band in NAMES:
        pairs = [pair.split() for pair in band]
        for names_of_gender in zip(*pairs, strict=True):
            new_names |= _rotate(names_of_gender, rng)
    for word in source.find_words():
        if word[0] in new_names:
            yield Edit(*word.span(), new_names[word[0]])


def replace_group_terms(
    source: Source, rng: Random, *, groups: Sequence[Sequence[str]]
) -> Iterator[Edit]:
    """Replace terms for groups of people with others from the same list.

    All occurrences of a term get the same replacement. Skips terms in names (“Indian Airlines”).
    Adapts an article before the term: a woman, an Asian.
    """
    new_terms: dict[str, str] = {}
    for terms in groups:
        new_terms |= _rotate(list(map(make_key, terms)), rng)
    for match in find_phrases(source, new_terms):
        # A capital before another one: part of a name.
        if match[0].istitle() and NAME_AFTER_PATTERN.match(source.text, match.end()):
            continue
        new_term = copy_case(new_terms[make_key(match[0])], match[0])
        yield Edit(*match.span(), new_term)
        # The four characters before the term are enough for “ an ”.
        article = ARTICLE_PATTERN.search(source.text[max(0, match.start() - 4) : match.start()])
        if article:
            right = "an" if new_term[0].lower() in "aeiou" else "a"
            end = match.start() - 1
            yield Edit(end - len(article[1]), end, copy_case(right, article[1]))


def _rotate(items: Sequence[str], rng: Random) -> dict[str, str]:
    """Map each item to the next one in a random order.

    Each item maps to a different item, and no two to the same.
    """
    order = rng.sample(items, len(items))
    return dict(zip(order, order[1:] + order[:1], strict=True))


def replace_dialect(source: Source, rng: Random, *, table: Mapping[str, str]) -> Iterator[Edit]:
    """Replace words and forms with those of another dialect."""
    for match in find_phrases(source, table):
        yield Edit(*match.span(), copy_case(table[make_key(match[0])], match[0]))
