"""Change English words without changing the meaning: contractions, misspellings, fillers."""

import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from random import Random

from core.text.words import MARKS, UNSPACED_LETTERS
from evaluation.scoring.perturbations.letters import draw_share
from evaluation.scoring.perturbations.source import SENTENCE_ENDS, Edit, Source
from evaluation.scoring.perturbations.tables import (
    CONTRACTIONS,
    FILLERS,
    MISSPELLINGS,
    PARTICIPLES,
    SUFFIXES,
)

PLAIN_GAP_PATTERN = re.compile(r"(?<=[a-z]{2}) (?=[a-z]{2})")
UNSPACED_LETTER_PATTERN = re.compile(f"[{UNSPACED_LETTERS}]")
WORD_START_REGEX = rf"(?<![^\W{UNSPACED_LETTERS}]|['’{MARKS}])"
WORD_END_REGEX = rf"(?![^\W{UNSPACED_LETTERS}]|['’{MARKS}])"
NOT_BEFORE_MARK_REGEX = f"(?![{MARKS}])"
NEXT_WORD_PATTERN = re.compile(r"\s+([a-z]+)", re.IGNORECASE)


@lru_cache
def make_phrase_pattern(table: frozenset[str]) -> re.Pattern[str]:
    """Return a pattern that matches any of the phrases as whole words, ignoring case.

    Longer phrases are tried first.
    """
    # A shorter phrase must not hide a longer one that begins with it.
    keys = sorted(table, key=len, reverse=True)
    if not any(map(UNSPACED_LETTER_PATTERN.search, keys)):  # one common boundary is much faster
        return re.compile(
            f"{WORD_START_REGEX}(?:{'|'.join(map(_write_pattern, keys))}){WORD_END_REGEX}",
            re.IGNORECASE,
        )
    return re.compile("|".join(map(_write_bounded_pattern, keys)), re.IGNORECASE)


def _write_pattern(key: str) -> str:
    return re.escape(key).replace(r"\ ", r"\s+").replace("'", "['’]")


def _write_bounded_pattern(key: str) -> str:
    """Return a pattern for the phrase between word boundaries, if its script has spaces."""
    start_regex = "" if UNSPACED_LETTER_PATTERN.match(key) else WORD_START_REGEX
    end_regex = NOT_BEFORE_MARK_REGEX if UNSPACED_LETTER_PATTERN.match(key[-1:]) else WORD_END_REGEX
    return f"{start_regex}{_write_pattern(key)}{end_regex}"


def make_key(text: str) -> str:
    """Return a matched text in the form of the tables.

    This is lower case with straight apostrophes and single spaces.
    """
    return " ".join(text.lower().replace("’", "'").split())


def find_phrases(source: Source, table: Collection[str]) -> list[re.Match[str]]:
    """Return the matches of a table's phrases that may change.

    Skips matches that are equal only because the pattern ignores case (ſ for s, ı for i).
    """
    matches = source.find(make_phrase_pattern(frozenset(table)))
    return [match for match in matches if make_key(match[0]) in table]


def copy_case(new_text: str, old_text: str) -> str:
    """Return the new words with the capitalisation of the old ones.

    >>> copy_case("it's", "It is"), copy_case("she", "HE"), copy_case("I am", "i'm")
    ("It's", 'SHE', 'I am')
    """
    if len(old_text) > 1 and old_text.isupper():
        return new_text.upper()
    return new_text[:1].upper() + new_text[1:] if old_text[0].isupper() else new_text


EXPANSIONS = {short: full for full, short in CONTRACTIONS.items()}


def contract_phrases(source: Source, rng: Random) -> Iterator[Edit]:
    """Replace “do not” and similar phrases with contractions such as “don't”.

    Skips the end of a clause (“yes, I am.”), and “have” unless a participle follows.
    """
    for match in find_phrases(source, CONTRACTIONS):
        # As in the table: in lower case, with straight apostrophes.
        full_form = make_key(match[0])
        next_word = NEXT_WORD_PATTERN.match(source.text, match.end())
        if full_form.endswith(" not") or full_form == "cannot":
            can_contract = True
        elif full_form.endswith(" have"):
            can_contract = next_word is not None and is_participle(next_word[1])
        else:
            can_contract = next_word is not None
        if can_contract:
            yield Edit(*match.span(), _capitalise_i(copy_case(CONTRACTIONS[full_form], match[0])))


def expand_contractions(source: Source, rng: Random) -> Iterator[Edit]:
    """Replace “don't” and similar contractions with full forms such as “do not”.

    Keeps 's before a participle, because it may stand for “has”.
    """
    for match in find_phrases(source, EXPANSIONS):
        short_form = make_key(match[0])
        next_word = NEXT_WORD_PATTERN.match(source.text, match.end())
        is_has = short_form.endswith("'s") and next_word is not None and is_participle(next_word[1])
        if not is_has:
            yield Edit(*match.span(), _capitalise_i(copy_case(EXPANSIONS[short_form], match[0])))


def is_participle(word: str) -> bool:
    """Return whether a word is a past participle, judged by its ending or the table."""
    return word.lower() in PARTICIPLES or word.lower().endswith("ed")


def _capitalise_i(text: str) -> str:
    """Return the text with a leading “i” capitalised, as English requires."""
    return re.sub(r"^i\b", "I", text)


def misspell_words(source: Source, rng: Random, *, low: float, high: float) -> Iterator[Edit]:
    """Replace some words with common misspellings.

    Parameters
    ----------
    source
        The text with its protected spans.
    rng
        The source of randomness.
    low, high
        The bounds of the share of known misspellings that are used, 0-1.
    """
    matches = find_phrases(source, MISSPELLINGS)
    for match in draw_share(matches, len(matches), rng, low, high):
        yield Edit(*match.span(), copy_case(MISSPELLINGS[make_key(match[0])], match[0]))


def insert_filler(source: Source, rng: Random) -> Iterator[Edit]:
    """Insert a filler word, which adds no meaning, between two lower-case words."""
    for gap in draw_share(source.find(PLAIN_GAP_PATTERN), 1, rng, 1, 1):
        yield Edit(*gap.span(), f", {rng.choice(FILLERS)}, ")


def append_suffix(source: Source, rng: Random) -> Iterator[Edit]:
    """Append a closing sentence that adds no meaning."""
    text = source.text.rstrip()
    stop = "" if text.endswith(tuple(SENTENCE_ENDS)) else "."
    yield Edit(len(text), len(source.text), f"{stop} {rng.choice(SUFFIXES)}")
