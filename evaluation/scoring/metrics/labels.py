"""Metrics of the confusion of labels."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.text.words import compose, gettext_noop
from evaluation.contract import SetRow
from evaluation.scoring.metrics.base import Metric, MetricUnavailable, Sums, divide, make_comparable


class Confusion(Metric):
    """Base class of metrics that count, per label, hits, answers and right labels.

    An extra last column counts everything that is not a label: missing answers, and labels that the
    task has removed.
    """

    def __init__(
        self, labels: Sequence[str] | None, sp_model: Path | None, language: str = ""
    ) -> None:
        super().__init__(labels, sp_model, language)
        if not self.labels:
            raise MetricUnavailable(f"{self.name} needs a task with labels.")
        self._columns = {compose(label): number for number, label in enumerate(self.labels)}

    def compute_statistic(self, value: Any, row: SetRow) -> tuple[int, int]:
        """Return the column of the right label and the column of the answer.

        If several labels are right, the answered one is taken, otherwise the best one.
        """
        right_columns = [self._find_column(gold) for gold in row.gold]
        answer = self._find_column(value)
        # Any right label counts; a wrong answer is compared with the best of them.
        return (answer if answer in right_columns else right_columns[0]), answer

    def _find_column(self, value: Any) -> int:
        return self._columns.get(str(make_comparable(value)), len(self._columns))

    def compute_vectors(self, statistics: Sequence[tuple[int, int]]) -> Sums:
        import numpy as np

        right_columns, answer_columns = np.array(statistics).T
        rows, width = np.arange(len(right_columns)), len(self._columns) + 1
        counts = np.zeros((len(right_columns), 3, width))
        # Two missing answers do not agree, so the last column never counts as right.
        counts[rows, 0, answer_columns] = (right_columns == answer_columns) & (
            answer_columns < width - 1
        )
        counts[rows, 1, answer_columns] = 1
        counts[rows, 2, right_columns] = 1
        return counts.reshape(len(right_columns), 3 * width)

    def _split_sums(self, sums: Sums) -> tuple[Sums, Sums, Sums]:
        """Return three arrays with an entry per label: hits, answers, right labels."""
        counts = sums.reshape(*sums.shape[:-1], 3, -1)
        return counts[..., 0, :], counts[..., 1, :], counts[..., 2, :]

    def grade(self, statistic: tuple[int, int]) -> float:
        right_column, answer_column = statistic
        return float(right_column == answer_column < len(self._columns))


class MacroF1(Confusion):
    """The mean F1 of the labels that occur among right labels or answers.

    “Averaged F1” of Opitz and Burst 2019; equals scikit-learn's `f1_score(average="macro")`.
    """

    name = "macro_f1"
    title = "Macro F1"

    def compute_value(self, sums: Sums) -> Sums:
        hit_counts, answer_counts, right_counts = self._split_sums(sums)
        # Without the last column, which is not a label.
        hit_counts, answer_counts, right_counts = (
            hit_counts[..., :-1],
            answer_counts[..., :-1],
            right_counts[..., :-1],
        )
        f1 = divide(2 * hit_counts, answer_counts + right_counts, 0.0)
        return divide(f1.sum(axis=-1), (answer_counts + right_counts > 0).sum(axis=-1))


class MatthewsCorrelation(Confusion):
    """Gorodkin's R_K (2004), −1 to 1; for two labels Matthews' correlation (1975).

    0 if all answers or all right labels are the same, as in scikit-learn. Missing answers count as
    a separate label.
    """

    name = "matthews_correlation"
    title = gettext_noop("Matthews correlation")

    def compute_value(self, sums: Sums) -> Sums:
        import numpy as np

        hit_counts, answer_counts, right_counts = self._split_sums(sums)
        n = right_counts.sum(axis=-1)
        covariance = hit_counts.sum(axis=-1) * n - (answer_counts * right_counts).sum(axis=-1)
        spread = (n**2 - (answer_counts**2).sum(axis=-1)) * (n**2 - (right_counts**2).sum(axis=-1))
        # Undefined without examples; 0 if all answers or all right labels are equal.
        return np.where(n > 0, divide(covariance, np.sqrt(spread), 0.0), np.nan)
