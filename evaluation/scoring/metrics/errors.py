"""Error rates of words and of letters, of which less is better: edits by Levenshtein (1966)."""

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any

from core.text.words import composed, folded, gettext_noop, runs_of
from evaluation.contract import SetRow
from evaluation.scoring.metrics.base import Metric, Sums, divide, extract_text


class _ErrorRate(Metric):
    """The least edits that turn answers into right ones, per part (a word, a letter) of these.

    Edits and parts are summed over the corpus, so long answers count more, and many inserted parts
    give more than 1. Of several right answers the one with the lowest rate counts. A missing answer
    lacks every part: its rate is 1.
    """

    higher_is_better = False

    @abstractmethod
    def parts(self, text: str) -> Sequence[Hashable]:
        """Return what is inserted, deleted or exchanged by one edit."""

    def statistic(self, value: Any, row: SetRow) -> tuple[int, int]:
        """Return the edits to the closest right answer, and how many parts that has."""
        answer = self.parts("" if value is None else extract_text(value))
        edit_counts = []
        for gold in row.gold:
            right = self.parts(extract_text(gold))
            edit_counts.append((edits(answer, right), len(right)))
        return min(edit_counts, key=_rate)

    def vectors(self, statistics: Sequence[tuple[int, int]]) -> Sums:
        import numpy as np

        return np.array(statistics, dtype=float).reshape(-1, 2)

    def value(self, sums: Sums) -> Sums:
        return divide(sums[..., 0], sums[..., 1])

    def graded(self, statistic: tuple[int, int]) -> float:
        return max(0.0, 1 - _rate(statistic))


class WordErrorRate(_ErrorRate):
    """Word errors per word of the right answers (NIST, Fiscus 1997), as jiwer counts them.

    Words are runs of letters and digits in lower case; of Korean and of scripts without spaces
    between words each letter.
    """

    name = "wer"
    title = gettext_noop("Word error rate")

    def parts(self, text: str) -> Sequence[Hashable]:
        return runs_of(folded(text, language=self.language))


class CharacterErrorRate(_ErrorRate):
    """Errors per character of the right answers, spaces included; texts in NFC, as they are."""

    name = "cer"
    title = gettext_noop("Character error rate")

    def parts(self, text: str) -> Sequence[Hashable]:
        return composed(text).strip()


def _rate(counts: tuple[int, int]) -> float:
    """Return edits per part; of a right answer without parts 0 if nothing is inserted, else 1."""
    number, parts = counts
    return number / parts if parts else float(number > 0)


def edits(answer: Sequence[Hashable], right: Sequence[Hashable]) -> int:
    """Return the least number of insertions, deletions and substitutions between two sequences.

    Parameters
    ----------
    answer, right
        Words, or a text as a sequence of its characters.

    Notes
    -----
    Hyyrö (2003), after Myers (1999): a column of the table of distances is kept as bits of whole
    numbers, one bit for each place of `answer`, which says whether the distance grows (`rises`) or
    shrinks (`falls`) from the place above. So a step takes a column at once, and texts of
    thousands of characters take milliseconds.

    Examples
    --------
    >>> edits("the cat sat".split(), "the cat has sat".split())
    1
    """
    if not answer:
        return len(right)
    all_places = (1 << len(answer)) - 1
    last_place = 1 << (len(answer) - 1)
    places_of: dict[Hashable, int] = {}
    for place, part in enumerate(answer):
        places_of[part] = places_of.get(part, 0) | 1 << place
    # Before the first part of `right` the distance grows by one with each place of `answer`.
    rises, falls, distance = all_places, 0, len(answer)
    for part in right:
        equal = places_of.get(part, 0)
        # The sum carries an equal place along the places above which the distance grows.
        diagonal_stays = (((equal & rises) + rises) ^ rises) | equal | falls
        rises_aside = falls | ~(diagonal_stays | rises) & all_places
        falls_aside = rises & diagonal_stays
        if rises_aside & last_place:
            distance += 1
        elif falls_aside & last_place:
            distance -= 1
        # One place down; the first row of the table grows with each part of `right`.
        rises_aside = (rises_aside << 1 | 1) & all_places
        falls_aside = (falls_aside << 1) & all_places
        was_equal = equal | falls
        rises = falls_aside | ~(was_equal | rises_aside) & all_places
        falls = rises_aside & was_equal
    return distance
