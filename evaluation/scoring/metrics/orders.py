"""Metrics of answers that put texts in order."""

from typing import Any

from annotation.verdict.outcome import compute_share_in_order
from core.text.words import gettext_noop
from evaluation.contract import SetRow
from evaluation.scoring.metrics.base import Mean


class PairAccuracy(Mean):
    """The share of pairs of texts in the right order: (1 + Kendall's tau) ÷ 2.

    A missing answer, or one that omits a text, counts 0. If there are several right orders, the
    best match counts.
    """

    name = "pair_accuracy"
    title = gettext_noop("Pair accuracy")

    def compute_statistic(self, value: Any, row: SetRow) -> float:
        if value is None:
            return 0.0
        # An order of other texts cannot be compared.
        orders = [gold for gold in row.gold if sorted(gold) == sorted(value)]
        return max((compute_share_in_order(value, gold) for gold in orders), default=0.0)
