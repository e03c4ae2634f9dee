"""Rules on whether a judge can have read an example, by times and words."""

import re
from collections.abc import Mapping
from typing import Any

MIN_READING_SECONDS = 0.6
"""An answer within this time after an example appears was meant for the page before."""
WORDS_PER_SECOND = 15
"""A speed faster than anybody reads: people read 3 to 6 words a second, and skim at most 12."""
MIN_TIMED_VOTES = 20
"""The fewest timed votes by which a person's reading is checked."""
UNSPACED_PATTERN = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]"
)
"""Letters of scripts that put no spaces between words, such as Thai, Khmer and Han."""


def is_too_soon(seconds: float, items: int = 1) -> bool:
    """Return whether answers to these items came before anybody can have read them.

    >>> is_too_soon(0.5), is_too_soon(0.6), is_too_soon(0.6, items=3)
    (True, False, True)
    """
    return seconds < MIN_READING_SECONDS * items


def count_words(value: Any) -> int:
    """Count the words in a field's value or a list of values; pictures and numbers count 0.

    In scripts without spaces every two characters count as one word, which underestimates.

    >>> count_words(["Ada left.", {"text": "the mill", "start": 3}, 7]), count_words("我们喜欢北京")
    (4, 3)
    """
    if isinstance(value, str):
        spaced_text = UNSPACED_PATTERN.sub(" ", value).split()
        words = sum(any(map(str.isalnum, word)) for word in spaced_text)  # a dash is not a word
        return words + len(UNSPACED_PATTERN.findall(value)) // 2
    if isinstance(value, Mapping):
        return count_words(value.get("text"))
    return sum(map(count_words, value)) if isinstance(value, list | tuple) else 0


def has_read_too_little(unread_votes: int, timed_votes: int) -> bool:
    """Return whether a judge cast most votes faster than anybody reads: evidence, not a verdict.

    A minority is no sign, because a judge may know a passage from the example before.

    >>> has_read_too_little(11, 20), has_read_too_little(10, 20), has_read_too_little(19, 19)
    (True, False, False)
    """
    return timed_votes >= MIN_TIMED_VOTES and 2 * unread_votes > timed_votes
