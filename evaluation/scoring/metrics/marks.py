"""Metrics of answers that mark stretches of a text."""

from typing import Any

from annotation.verdict.marks import compute_marks_f1
from core.text.words import gettext_noop
from evaluation.contract import SetRow
from evaluation.scoring.metrics.base import Mean


class SpansF1(Mean):
    """The mean over examples of the F1 of marked spans, which match if bounds and tag are equal.

    A missing answer counts 0. If there are several right answers, the best match counts.
    """

    name = "spans_f1"
    title = gettext_noop("Span F1")
    matches_overlaps = False

    def compute_statistic(self, value: Any, row: SetRow) -> float:
        if value is None:
            return 0.0
        return max(
            (compute_marks_f1(value, gold, overlap=self.matches_overlaps) for gold in row.gold),
            default=0.0,
        )


class SpansOverlapF1(SpansF1):
    """Span F1 in which spans with the same tag match if they share a character."""

    name = "spans_overlap_f1"
    title = gettext_noop("Span F1 by overlap")
    matches_overlaps = True
