"""Marks words of pure rules for translators, and finds words; any rule may use it."""

import re

UNSPACED = "\u3040-\u30ff\u3400-\u9fff"
"""Kana and Chinese characters, as in a class of a pattern: scripts without spaces between words."""
_APART = re.compile(f"([{UNSPACED}])")


def gettext_noop(text: str) -> str:
    """A constant that the catalogue of interface texts holds; `{% translate %}` shows it."""
    return text


def words_of(text: str) -> list[str]:
    """What stands between spaces; of scripts without spaces each character.

    >>> words_of("Mills are 很大 here")
    ['Mills', 'are', '很', '大', 'here']
    """
    return _APART.sub(r" \1 ", text).split()
