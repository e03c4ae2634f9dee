"""The style of answers, which may influence people whatever the answers say. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from math import log1p

COVARIATES = ("length", "headings", "lists", "bold")
"""The covariates: characters, headings, items of lists and bold stretches of Markdown."""
_CODE_BLOCK_PATTERN = re.compile(r"^(```|~~~).*?(?:^\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)
_MARK_PATTERNS = {
    "headings": re.compile(r"^ {0,3}#{1,6}[ \t]+\S", re.MULTILINE),
    "lists": re.compile(r"^[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+\S", re.MULTILINE),
    "bold": re.compile(r"\*\*(?=\S)[^*\n]+\*\*|\b__(?=\S)[^_\n]+__\b"),
}


def measure_style(answers: Iterable[str]) -> dict[str, int]:
    """Count characters and marks over all answers of one side, without marks in code blocks."""
    counts = dict.fromkeys(COVARIATES, 0)
    for text in answers:
        counts["length"] += len(text)
        # Symbols in code are part of the code: `#` starts a comment there.
        prose = _CODE_BLOCK_PATTERN.sub("", text)
        for name, pattern in _MARK_PATTERNS.items():
            counts[name] += len(pattern.findall(prose))
    return counts


def compute_log_ratios(style: Mapping[str, Sequence[int]]) -> list[float]:
    """Return log((1 + left) ÷ (1 + right)) for each covariate, from the counts [left, right]."""
    differences = []
    for name in COVARIATES:
        left, right = style[name]
        differences.append(log1p(left) - log1p(right))
    return differences
