"""How an answer looks, which may please apart from what it says. Pure."""

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
    texts = [*answers]
    plain = [_CODE.sub("", text) for text in texts]
    marks = {name: sum(len(p.findall(text)) for text in plain) for name, p in _MARKS.items()}
    return {"length": sum(map(len, texts)), **marks}


def difference(style: Mapping[str, Sequence[int]]) -> list[float]:
    """Return log((1 + left) ÷ (1 + right)) for each covariate, from the counts [left, right]."""
    return [log1p(left) - log1p(right) for left, right in (style[name] for name in STYLE)]
