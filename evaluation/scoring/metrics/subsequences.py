"""ROUGE-L: the longest common subsequence of words (Lin 2004, 3.1)."""

from collections.abc import Sequence
from typing import Any

from core.text.words import folded, runs_of
from evaluation.contract import SetRow
from evaluation.scoring.metrics.base import Mean, text_of


class RougeL(Mean):
    """F1 of the longest common subsequence of words, of the best right answer.

    Words are runs of letters and digits in lower case, without stemming; of Korean and of scripts
    without spaces between words each letter. A mark belongs to its letter.
    """

    name = "rouge_l"
    title = "ROUGE-L"
    version = 2

    def statistic(self, value: Any, row: SetRow) -> float:
        if value is None:
            return 0.0
        said = text_of(value)
        return max(rouge_l(said, text_of(gold), self.language) for gold in row.gold)


def rouge_l(said: str, right: str, language: str = "") -> float:
    """F1 (0-1) of two texts; 0 where either has no word.

    >>> rouge_l("the cat sat", "The cat has sat.")
    0.8571428571428571
    """
    one, other = (runs_of(folded(text, language=language)) for text in (said, right))
    return 2 * _common(one, other) / (len(one) + len(other)) if one and other else 0.0


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """The length of the longest common subsequence, with one row of the table at a time."""
    row = [0] * (len(other) + 1)
    for word in one:
        before = 0
        for place, against in enumerate(other, 1):
            longest = before + 1 if word == against else max(row[place], row[place - 1])
            before, row[place] = row[place], longest
    return row[-1]
