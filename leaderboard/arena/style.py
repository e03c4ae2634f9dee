"""How an answer looks, which may please people whatever the answer says. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from math import log1p

STYLE = ("length", "headings", "lists", "bold")
"""The covariates: characters, headings, items of lists and bold stretches of Markdown."""
_CODE = re.compile(r"^(```|~~~).*?(?:^\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)
_MARKS = {
    "headings": re.compile(r"^ {0,3}#{1,6}[ \t]+\S", re.MULTILINE),
    "lists": re.compile(r"^[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+\S", re.MULTILINE),
    "bold": re.compile(r"\*\*(?=\S)[^*\n]+\*\*|\b__(?=\S)[^_\n]+__\b"),
}


def style_of(answers: Iterable[str]) -> dict[str, int]:
    """Count characters and marks over all answers of one side, without marks in code blocks."""
    counts = dict.fromkeys(STYLE, 0)
    for text in answers:
        counts["length"] += len(text)
        # Marks in code are part of the code: `#` begins a comment there.
        prose = _CODE.sub("", text)
        for name, pattern in _MARKS.items():
            counts[name] += len(pattern.findall(prose))
    return counts


def difference(style: Mapping[str, Sequence[int]]) -> list[float]:
    """Return log((1 + left) ÷ (1 + right)) for each covariate, from the counts [left, right]."""
    differences = []
    for name in STYLE:
        left, right = style[name]
        differences.append(log1p(left) - log1p(right))
    return differences
