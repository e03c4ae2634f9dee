"""The metrics of tasks, by the names in a task's configuration (docs/evaluation.md, “Scores”).

Every class in this folder that has a name is a metric. A new one needs no further registration.
"""

from collections.abc import Sequence
from pathlib import Path

from core.plugins import load_plugins
from core.registry import import_modules
from evaluation.scoring.metrics.base import METRICS, Metric, MetricUnavailable

__all__ = ["METRICS", "Metric", "MetricUnavailable", "make_metric"]

import_modules(__path__, __name__)
load_plugins("dynabench.metrics", Metric)  # importing a class registers it


def make_metric(
    name: str,
    labels: Sequence[str] | None = None,
    sp_model: Path | None = None,
    language: str = "",
) -> Metric:
    """Return the metric with a name, set up for a task.

    Parameters
    ----------
    name
        The name in the configuration.
    labels
        The task's labels, if its answers are choices.
    sp_model
        A SentencePiece file, for spBLEU.
    language
        The task's language, a tag such as `de`.

    Raises
    ------
    MetricUnavailable
        If the metric cannot be computed here, with the reason.
    KeyError
        For an unknown name.
    """
    return METRICS[name](labels, sp_model, language)
