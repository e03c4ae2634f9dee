"""Where words stand in a passage, also over line breaks. Pure."""

import re
from collections.abc import Iterator

from core.text.words import composed

LINE_BREAK_SIGN = "⏎"
"""Stands for a line break where one line holds the words of several."""
_GAP_PATTERN = re.compile(rf"[\s{LINE_BREAK_SIGN}]+")
_ANY_GAP = rf"[\s{LINE_BREAK_SIGN}]++"  # possessive: no run of spaces is tried in many ways


def join_lines(words: str) -> str:
    r"""Return the words with each line break replaced by LINE_BREAK_SIGN.

    >>> on_one_line("left for\nNorth Vale")
    'left for⏎North Vale'
    """
    return words.replace("\n", LINE_BREAK_SIGN)


def find_spans(words: str, passage: str) -> list[tuple[int, int]]:
    r"""Return the (start, end) spans of the words in the passage.

    An exact match comes first, then one in composed Unicode, then one in which any white space or
    LINE_BREAK_SIGN separates words, because people paste and models reformat text.

    >>> stretches_of("for North", "He left for\nNorth Vale."), stretches_of("a", "a a")
    ([(8, 17)], [(0, 1), (2, 3)])
    """
    for pattern in _build_patterns(words):
        if spans := [match.span(1) for match in re.finditer(f"(?=({pattern}))", passage)]:
            return spans
    return []


def find_span_at(words: str, passage: str, start: int) -> tuple[int, int] | None:
    """Return the span of the words that begins at `start`; None if they do not occur there.

    Browsers count CRLF, which passages of earlier versions may contain, as one character.
    """
    # A place that a form could not read.
    if start < 0:
        return None
    # As counted in code points of the passage, or as a page counts, which has LF for CRLF.
    for place in dict.fromkeys((start, start + _count_crlfs(passage, start))):
        for pattern in _build_patterns(words):
            if match := re.compile(pattern).match(passage, place):
                return match.span()
    return None


def _count_crlfs(passage: str, start: int) -> int:
    """Count the CRLFs before an offset of the page, which counts each as one character."""
    count, at = 0, passage.find("\r\n")
    while 0 <= at < start + count:
        count += 1
        at = passage.find("\r\n", at + 2)
    return count


def _build_patterns(words: str) -> Iterator[str]:
    """Yield regular expressions for the words, the strictest first."""
    forms = []
    for form in dict.fromkeys((words, composed(words))):
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
