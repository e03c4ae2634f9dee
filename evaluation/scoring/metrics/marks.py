"""Metrics of answers that mark stretches of a text."""

from typing import Any

from annotation.rules.marks import marks_f1
from core.text.words import gettext_noop
from evaluation.contract import SetRow
from evaluation.scoring.metrics.base import Mean


class SpansF1(Mean):
    """Mean over the examples of the F1 of the marked stretches: equal bounds and tags.

    A missing answer is 0. Of several right answers the nearest.
    """

    name = "spans_f1"
    title = gettext_noop("Span F1")
    overlap = False

    def statistic(self, value: Any, row: SetRow) -> float:
        if value is None:
            return 0.0
        return max((marks_f1(value, gold, overlap=self.overlap) for gold in row.gold), default=0.0)


class SpansOverlapF1(SpansF1):
    """Span F1 by overlap: stretches agree that share a character and have the same tag."""

    name = "spans_overlap_f1"
    title = gettext_noop("Span F1 by overlap")
    overlap = True
