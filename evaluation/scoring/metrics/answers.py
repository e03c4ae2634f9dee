"""Metrics that are means over examples, or over groups of them."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from annotation.verdict.outcome import compute_squad_f1, is_exact_match
from core.text.words import fold, gettext_noop, strip_punctuation
from evaluation.contract import SetRow
from evaluation.scoring.metrics.base import Mean, Metric, Sums, divide, extract_text, is_right

MAX_TAGS = 1000


class Accuracy(Mean):
    """The share of answers that equal an accepted answer.

    Texts are compared character by character after NFC normalisation.
    """

    name = "accuracy"
    title = gettext_noop("Accuracy")
    version = 2

    def compute_statistic(self, value: Any, row: SetRow) -> float:
        return float(is_right(value, row))


class ExactMatch(Mean):
    """SQuAD's EM: the share of answers that equal a right answer after normalisation.

    Rajpurkar et al. 2016, section 6.1.
    """

    name = "exact_match"
    title = gettext_noop("Exact match")
    version = 2

    def compute_statistic(self, value: Any, row: SetRow) -> float:
        if value is None:
            return 0.0
        answer, language = extract_text(value), self.language
        return float(any(is_exact_match(answer, extract_text(gold), language) for gold in row.gold))


class SquadF1(Mean):
    """SQuAD's F1 of normalised words against the best-matching right answer.

    Rajpurkar et al. 2016, section 6.1.
    """

    name = "squad_f1"
    title = "SQuAD F1"
    version = 2

    def compute_statistic(self, value: Any, row: SetRow) -> float:
        if value is None:
            return 0.0
        answer, language = extract_text(value), self.language
        return max(compute_squad_f1(answer, extract_text(gold), language) for gold in row.gold)


class VqaAccuracy(Mean):
    """VQA accuracy: min(1, matches ÷ 3), averaged over the right answers with each left out once.

    Antol et al. 2015, section 3. Case, articles, punctuation and number words are normalised as in
    VQA's evaluation. That evaluation adds missing apostrophes; here they are removed on both sides.
    If there is only one right answer, the score is 1 for a match and 0 otherwise.
    """

    name = "vqa_accuracy"
    title = gettext_noop("VQA accuracy")
    version = 2

    def compute_statistic(self, value: Any, row: SetRow) -> float:
        if value is None:
            return 0.0
        answer = normalise_vqa(extract_text(value), self.language)
        is_match = [normalise_vqa(extract_text(gold), self.language) == answer for gold in row.gold]
        if len(is_match) == 1:
            return float(is_match[0])
        # VQA leaves out each right answer once and averages over the results.
        total = 0.0
        for is_same in is_match:
            matches_of_others = sum(is_match) - is_same
            total += min(1.0, matches_of_others / 3)
        return total / len(is_match)


_DIGITS_BY_WORD = {
    word: str(number)
    for number, word in enumerate(
        ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    )
} | {"none": "0"}
_APOSTROPHES = str.maketrans("", "", "'’ʼ")
_REMOVED_SIGNS = ';/[]"{}()=+\\_-><@`,?!'
_COMMA_IN_NUMBER_PATTERN = re.compile(r"(?<=\d),(?=\d)")
_PERIOD_PATTERN = re.compile(r"\.(?!\d)")


def normalise_vqa(text: str, language: str = "") -> str:
    """Normalise a text as VQA's evaluation does, and also remove the punctuation of other scripts.

    >>> normalise_vqa("The Two dogs, don't."), normalise_vqa("东京。")
    ('2 dogs dont', '东京')
    """
    # Before removing punctuation, because an apostrophe must not become a space.
    text = fold(text, language=language).translate(_APOSTROPHES)
    text = _PERIOD_PATTERN.sub("", _COMMA_IN_NUMBER_PATTERN.sub("", text))
    words = strip_punctuation(text, replacement=" ", signs=_REMOVED_SIGNS).split()
    normal_words = []
    for word in words:
        if word not in ("a", "an", "the"):
            normal_words.append(_DIGITS_BY_WORD.get(word, word))
    return " ".join(normal_words)


class DataperfF1(Metric):
    """The mean over tags of micro F1, which with one answer per example equals accuracy.

    As in DataPerf's speech and vision challenges on Dynabench (Mazumder et al. 2023). Untagged
    examples form one tag; tags beyond MAX_TAGS are merged into one.
    """

    name = "dataperf_f1"
    title = "DataPerf F1"

    version = 2

    def __init__(
        self, labels: Sequence[str] | None, sp_model: Path | None, language: str = ""
    ) -> None:
        super().__init__(labels, sp_model, language)
        self._columns: dict[str, int] = {}

    def compute_statistic(self, value: Any, row: SetRow) -> tuple[bool, tuple[str, ...]]:
        return is_right(value, row), tuple(sorted(row.slices.get("tag") or ("",)))

    def compute_vectors(self, statistics: Sequence[tuple[bool, tuple[str, ...]]]) -> Sums:
        """Return two columns per tag: the number of right answers and the number of examples."""
        import numpy as np

        # Columns are assigned as tags appear, because tags are not known in advance.
        for _, tags in statistics:
            for tag in tags:
                self._columns.setdefault(tag, min(len(self._columns), MAX_TAGS))
        rows = np.zeros((len(statistics), 2 * (1 + max(self._columns.values()))))
        for number, (right, tags) in enumerate(statistics):
            for tag in tags:
                column = 2 * self._columns[tag]
                rows[number, column : column + 2] += right, 1
        return rows

    def compute_value(self, sums: Sums) -> Sums:
        # Columns alternate: for each tag the number of right answers, then of all.
        right_counts, totals = sums[..., 0::2], sums[..., 1::2]
        return divide(divide(right_counts, totals, 0.0).sum(axis=-1), (totals > 0).sum(axis=-1))

    def grade(self, statistic: tuple[bool, tuple[str, ...]]) -> float:
        return float(statistic[0])
