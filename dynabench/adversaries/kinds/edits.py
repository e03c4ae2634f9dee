"""Small changes to a text that readers should hardly notice: letters and similar words."""

import re
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import NamedTuple

WORD_PATTERN = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
MIN_EDITED_CHARS = 4
"""Shorter words keep their letters, because one wrong letter makes another word."""
KEPT_WORDS = frozenset(
    ["not", "never", "none", "nothing", "nobody", "nowhere", "neither", "without", "hardly"]
    + ["barely", "cannot", "can't", "don't", "doesn't", "didn't", "isn't", "wasn't", "won't"]
)
"""Words that turn the meaning, so they are neither changed nor replaced."""
LOOK_ALIKES: Mapping[str, str] = {"o": "0", "l": "1", "i": "1", "e": "3", "a": "@", "s": "5"}
SIMILAR_WORDS: Sequence[Sequence[str]] = (
    ("film", "movie", "picture"),
    ("movies", "films", "pictures"),
    ("food", "fare", "cuisine"),
    ("meal", "dinner", "lunch"),
    ("place", "spot", "venue"),
    ("staff", "crew", "team"),
    ("room", "chamber", "suite"),
    ("big", "large", "sizeable"),
    ("small", "little", "compact"),
    ("fast", "quick", "swift"),
    ("slow", "sluggish", "unhurried"),
    ("good", "fine", "decent"),
    ("great", "superb", "terrific"),
    ("nice", "pleasant", "agreeable"),
    ("bad", "poor", "lousy"),
    ("terrible", "dreadful", "awful", "atrocious"),
    ("boring", "dull", "tedious"),
    ("funny", "amusing", "comical"),
    ("beautiful", "gorgeous", "lovely"),
    ("happy", "glad", "content"),
    ("angry", "cross", "furious"),
    ("friendly", "cordial", "courteous"),
    ("rude", "impolite", "discourteous"),
    ("clean", "spotless", "tidy"),
    ("dirty", "filthy", "grubby"),
    ("cheap", "inexpensive", "affordable"),
    ("expensive", "pricey", "costly"),
    ("delicious", "tasty", "flavourful"),
    ("disappointing", "underwhelming", "unsatisfying"),
    ("wonderful", "marvellous", "splendid"),
    ("broken", "faulty", "defective"),
    ("loved", "adored", "relished"),
    ("liked", "enjoyed", "appreciated"),
    ("hated", "loathed", "detested"),
    ("bought", "purchased", "acquired"),
    ("ordered", "requested", "booked"),
    ("waited", "queued", "lingered"),
    ("recommend", "endorse", "commend"),
    ("think", "believe", "feel"),
    ("began", "started", "commenced"),
    ("ended", "finished", "concluded"),
    ("very", "really", "extremely"),
    ("always", "invariably", "consistently"),
    ("often", "frequently", "regularly"),
    ("also", "additionally", "likewise"),
)
"""Groups of English words that can replace one another in most sentences."""


class Word(NamedTuple):
    """A word of a text. start, end: its position in characters."""

    text: str
    start: int
    end: int

    @property
    def is_kept(self) -> bool:
        """Return whether the word must stay as it is."""
        return self.text.lower() in KEPT_WORDS


def split_text(text: str) -> list[Word]:
    """Return the words of a text in order.

    >>> [word.text for word in split_text("We didn't like Room 12.")]
    ['We', "didn't", 'like', 'Room']
    """
    return [Word(match.group(), *match.span()) for match in WORD_PATTERN.finditer(text)]


def replace_word(text: str, word: Word, replacement: str) -> str:
    """Return the text with another word in one place.

    >>> replace_word("A good film.", Word("good", 2, 6), "fine")
    'A fine film.'
    """
    return text[: word.start] + replacement + text[word.end :]


def remove_word(text: str, word: Word) -> str:
    """Return the text without a word and without the space before it."""
    return (text[: word.start].rstrip() + text[word.end :]).strip()


def edit_letters(word: str, rng: Random, count: int) -> list[str]:
    """Return at most `count` ways to mistype a word, each with one wrong, missing or extra letter.

    The first and the last letter stay, because readers recognise words by them. Empty for short
    words.
    """
    if len(word) < MIN_EDITED_CHARS:
        return []
    edited_words = sorted(set(_iterate_edits(word)) - {word})
    if len(edited_words) > count:
        edited_words = rng.sample(edited_words, count)
    return edited_words


def _iterate_edits(word: str) -> Iterator[str]:
    for index in range(1, len(word) - 1):
        before, letter, after = word[:index], word[index], word[index + 1 :]
        yield before + after
        yield before + letter + letter + after
        # The last letter stays, so the pair before it is the last that can change places.
        if index < len(word) - 2:
            yield before + after[0] + letter + after[1:]
        if letter in LOOK_ALIKES:
            yield before + LOOK_ALIKES[letter] + after


def find_similar_words(
    text: str, word: Word, own_groups: Sequence[Sequence[str]] = ()
) -> list[str]:
    """Return words that can replace a word of the text, written like it.

    Leaves out those that would need another article: “a good” does not become “a excellent”.
    own_groups: further groups of words that can replace one another.
    """
    plain_word, found_words = word.text.lower(), []
    article = WORD_PATTERN.findall(text[: word.start])[-1:]
    has_article = bool(article) and article[0].lower() in ("a", "an")
    for group in (*own_groups, *SIMILAR_WORDS):
        if plain_word not in group:
            continue
        for other_word in group:
            is_other_sound = _begins_with_vowel(other_word) != _begins_with_vowel(plain_word)
            if other_word != plain_word and not (has_article and is_other_sound):
                found_words.append(_write_like(other_word, word.text))
    # Each once, in order: two groups may have the same word.
    return list(dict.fromkeys(found_words))


def _begins_with_vowel(word: str) -> bool:
    return word[:1] in "aeiou"


def _write_like(word: str, model_word: str) -> str:
    """Return the word with the capitals of another one."""
    if len(model_word) > 1 and model_word.isupper():
        return word.upper()
    if model_word[0].isupper():
        return word.capitalize()
    return word
