"""ROUGE-L: the longest common subsequence of words (Lin 2004, 3.1)."""

from collections.abc import Sequence
from typing import Any

from core.text.words import fold, split_runs
from evaluation.contract import SetRow
from evaluation.scoring.metrics.base import Mean, extract_text


class RougeL(Mean):
    """F1 of the longest common subsequence of words, against the best-matching right answer.

    Words are lower-case runs of letters and digits, without stemming. In Korean, and in scripts
    without spaces between words, each letter with its marks is a word.
    """

    name = "rouge_l"
    title = "ROUGE-L"
    version = 2

    def compute_statistic(self, value: Any, row: SetRow) -> float:
        if value is None:
            return 0.0
        answer = extract_text(value)
        return max(compute_rouge_l(answer, extract_text(gold), self.language) for gold in row.gold)


def compute_rouge_l(answer: str, right_text: str, language: str = "") -> float:
    """Return the F1 (0-1) of two texts; 0 if either contains no word.

    Parameters
    ----------
    answer
        The model's text.
    right_text
        The right text.
    language
        The task's language, which determines how case is folded.

    Notes
    -----
    2 · L ÷ (m + n), where L is the length of the longest common subsequence of m and n words.

    Examples
    --------
    >>> compute_rouge_l("the cat sat", "The cat has sat.")
    0.8571428571428571
    """
    split_answer_words = split_runs(fold(answer, language=language))
    right_words = split_runs(fold(right_text, language=language))
    # For two texts without words, this would divide 0 by 0.
    if not split_answer_words or not right_words:
        return 0.0
    common_length = _measure_common_subsequence(split_answer_words, right_words)
    return 2 * common_length / (len(split_answer_words) + len(right_words))


def _measure_common_subsequence(words: Sequence[str], other_words: Sequence[str]) -> int:
    """Return the length of the longest common subsequence.

    Stores one row of the table at a time.
    """
    row = [0] * (len(other_words) + 1)
    for word in words:
        diagonal = 0  # the cell above and to the left
        for place, other_word in enumerate(other_words, 1):
            above = row[place]
            row[place] = diagonal + 1 if word == other_word else max(above, row[place - 1])
            diagonal = above
    return row[-1]
