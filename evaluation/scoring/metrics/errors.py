"""Error rates of words and characters, for which lower is better: edits by Levenshtein (1966)."""

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any

from core.text.words import compose, fold, gettext_noop, split_runs
from evaluation.contract import SetRow
from evaluation.scoring.metrics.base import Metric, Sums, divide, extract_text


class _ErrorRate(Metric):
    """Base class of rates: the fewest edits that make answers right, per part of the right answers.

    A part is a word or a character. Edits and parts are summed over the corpus, so long answers
    count more. Many inserted parts give more than 1. If there are several right answers, the one
    with the lowest rate counts. A missing answer lacks every part: its rate is 1.
    """

    higher_is_better = False

    @abstractmethod
    def split_parts(self, text: str) -> Sequence[Hashable]:
        """Return the parts of a text. One edit inserts, deletes or substitutes one part."""

    def compute_statistic(self, value: Any, row: SetRow) -> tuple[int, int]:
        """Return the number of edits to the closest right answer, and the number of its parts."""
        answer = self.split_parts("" if value is None else extract_text(value))
        edit_counts = []
        for gold in row.gold:
            right_answer = self.split_parts(extract_text(gold))
            edit_counts.append((count_edits(answer, right_answer), len(right_answer)))
        return min(edit_counts, key=_compute_rate)

    def compute_vectors(self, statistics: Sequence[tuple[int, int]]) -> Sums:
        import numpy as np

        return np.array(statistics, dtype=float).reshape(-1, 2)

    def compute_value(self, sums: Sums) -> Sums:
        return divide(sums[..., 0], sums[..., 1])

    def grade(self, statistic: tuple[int, int]) -> float:
        return max(0.0, 1 - _compute_rate(statistic))


class WordErrorRate(_ErrorRate):
    """Word errors per word of the right answers (NIST, Fiscus 1997), as jiwer counts them.

    Words are runs of letters and digits in lower case. In Korean, and in scripts without spaces
    between words, each letter is a word.
    """

    name = "wer"
    title = gettext_noop("Word error rate")

    def split_parts(self, text: str) -> Sequence[Hashable]:
        return split_runs(fold(text, language=self.language))


class CharacterErrorRate(_ErrorRate):
    """Character errors per character of the right answers, including spaces. Texts are in NFC."""

    name = "cer"
    title = gettext_noop("Character error rate")

    def split_parts(self, text: str) -> Sequence[Hashable]:
        return compose(text).strip()


def _compute_rate(counts: tuple[int, int]) -> float:
    """Return edits per part. Without parts, return 0 if nothing is inserted, otherwise 1."""
    edit_count, part_count = counts
    return edit_count / part_count if part_count else float(edit_count > 0)


def count_edits(answer: Sequence[Hashable], right_answer: Sequence[Hashable]) -> int:
    """Return the least number of insertions, deletions and substitutions between two sequences.

    Parameters
    ----------
    answer, right_answer
        Words, or a text as a sequence of its characters.

    Notes
    -----
    Hyyrö (2003), after Myers (1999): a column of the distance table is stored as the bits of
    integers, one bit for each position of `answer`. The bit says whether the distance grows
    (`rises`) or shrinks (`falls`) from the position above. So each step computes a whole column,
    and texts of thousands of characters take milliseconds.

    Examples
    --------
    >>> count_edits("the cat sat".split(), "the cat has sat".split())
    1
    """
    if not answer:
        return len(right_answer)
    all_bits = (1 << len(answer)) - 1
    last_bit = 1 << (len(answer) - 1)
    bits_by_part: dict[Hashable, int] = {}
    for position, part in enumerate(answer):
        bits_by_part[part] = bits_by_part.get(part, 0) | 1 << position
    # Before `right_answer` starts, the distance grows by one per position of `answer`.
    rises, falls, distance = all_bits, 0, len(answer)
    for part in right_answer:
        equal_bits = bits_by_part.get(part, 0)
        # The sum carries a match along the positions where the distance grows.
        diagonal_stays = (((equal_bits & rises) + rises) ^ rises) | equal_bits | falls
        rises_aside = falls | ~(diagonal_stays | rises) & all_bits
        falls_aside = rises & diagonal_stays
        if rises_aside & last_bit:
            distance += 1
        elif falls_aside & last_bit:
            distance -= 1
        # One row down; the first row of the table grows with each part of `right_answer`.
        rises_aside = (rises_aside << 1 | 1) & all_bits
        falls_aside = (falls_aside << 1) & all_bits
        was_equal = equal_bits | falls
        rises = falls_aside | ~(was_equal | rises_aside) & all_bits
        falls = rises_aside & was_equal
    return distance
