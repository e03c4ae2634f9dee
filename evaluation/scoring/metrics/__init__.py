"""The metrics of tasks, by the names in a task's configuration (docs/evaluation.md, “Scores”)."""

from collections.abc import Sequence
from pathlib import Path

from evaluation.scoring.metrics.answers import (
    Accuracy,
    DataperfF1,
    ExactMatch,
    SquadF1,
    VqaAccuracy,
)
from evaluation.scoring.metrics.base import Metric, Unavailable
from evaluation.scoring.metrics.labels import MacroF1, MatthewsCorrelation
from evaluation.scoring.metrics.ngrams import Bleu, ChrF, ChrFpp, SpBleu

__all__ = ["METRICS", "Metric", "Unavailable", "metric_of"]

METRICS: dict[str, type[Metric]] = {
    each.name: each
    for each in (
        Accuracy, MacroF1, MatthewsCorrelation, SquadF1, ExactMatch, Bleu, SpBleu, ChrF, ChrFpp,
        VqaAccuracy, DataperfF1,
    )
}  # fmt: skip


def metric_of(
    name: str, labels: Sequence[str] | None = None, sp_model: Path | None = None
) -> Metric:
    """The metric of that name. Raises Unavailable, with the reason, and KeyError."""
    return METRICS[name](labels, sp_model)
