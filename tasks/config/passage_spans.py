"""Find words in a passage, also across line breaks. Pure."""

import re
from collections.abc import Iterator

from core.text.words import compose

LINE_BREAK_SIGN = "⏎"
"""The sign that stands for a line break in a single line."""
_GAP_PATTERN = re.compile(rf"[\s{LINE_BREAK_SIGN}]+")
_ANY_GAP = rf"[\s{LINE_BREAK_SIGN}]++"  # possessive: no run of spaces is tried in many ways


def join_lines(words: str) -> str:
    r"""Return the words with each line break replaced by LINE_BREAK_SIGN.

    >>> join_lines("left for\nNorth Vale")
    'left for⏎North Vale'
    """
    return words.replace("\n", LINE_BREAK_SIGN)


def find_spans(words: str, passage: str) -> list[tuple[int, int]]:
    r"""Return the (start, end) spans of the words in the passage.

    An exact match is tried first, then one in composed Unicode. The last try allows any white space
    or LINE_BREAK_SIGN between words, because people paste and models reformat text.

        >>> find_spans("for North", "He left for\nNorth Vale."), find_spans("a", "a a")
        ([(8, 17)], [(0, 1), (2, 3)])
    """
    for pattern in _build_patterns(words):
        if spans := [match.span(1) for match in re.finditer(f"(?=({pattern}))", passage)]:
            return spans
    return []


def find_span_at(words: str, passage: str, start: int) -> tuple[int, int] | None:
    """Return the span of the words that begins at `start`; None if they do not occur there.

    Browsers count CRLF as one character, and passages of earlier versions may contain it.
    """
    # A place that a form could not read.
    if start < 0:
        return None
    # As counted in code points of the passage, or as a page counts, which has LF for CRLF.
    for offset in dict.fromkeys((start, start + _count_crlfs(passage, start))):
        for pattern in _build_patterns(words):
            if match := re.compile(pattern).match(passage, offset):
                return match.span()
    return None


def _count_crlfs(passage: str, start: int) -> int:
    """Return the number of CRLFs before `start`, an offset that counts each as one character."""
    count, offset = 0, passage.find("\r\n")
    while 0 <= offset < start + count:
        count += 1
        offset = passage.find("\r\n", offset + 2)
    return count


def _build_patterns(words: str) -> Iterator[str]:
    """Yield regular expressions that match the words, the strictest first."""
    forms = []
    for form in dict.fromkeys((words, compose(words))):
        if form:
            forms.append(form)
    yield from map(re.escape, forms)
    for form in forms:
        pieces = []
        for piece in _GAP_PATTERN.split(form):
            if piece:
                pieces.append(re.escape(piece))
        if len(pieces) > 1:
            yield _ANY_GAP.join(pieces)
