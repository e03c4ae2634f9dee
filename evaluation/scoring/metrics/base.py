"""The base classes of metrics, which need only sums of the statistics of single examples."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from core.text.words import compose
from evaluation.contract import SetRow
from tasks.config import schema

if TYPE_CHECKING:  # pages need only the names of metrics
    import numpy as np
    from numpy.typing import NDArray

Sums: TypeAlias = "NDArray[np.float64]"
METRICS: "dict[str, type[Metric]]" = {}
"""All metrics by name. The modules of this folder fill it."""


class MetricUnavailable(ValueError):
    """Raised for a metric that cannot be computed here; the message says what it needs."""


class Metric(ABC):
    """A way to turn answers into a number.

    Equal statistics can be counted instead of stored, and `compute_value` needs only a weighted sum
    of their vectors. So examples can be streamed, and a bootstrap resample is the same sum with
    other weights. A missing answer (None) is wrong.
    """

    name: ClassVar[str]
    title: ClassVar[str]  # shown on pages
    version: ClassVar[int] = 1  # increased whenever an answer may be scored differently
    higher_is_better: ClassVar[bool] = True  # if false, it counts errors, and 0 is perfect

    def __init_subclass__(cls) -> None:
        if "name" in vars(cls):
            # A class without a name of its own is a common base, such as `Mean`.
            METRICS[cls.name] = cls
            # Tasks are an earlier room, so this registers the metrics' names with configurations.
            schema.METRIC_NAMES.append(cls.name)
            if not cls.higher_is_better:
                schema.ERROR_METRICS.append(cls.name)

    def __init__(
        self, labels: Sequence[str] | None, sp_model: Path | None, language: str = ""
    ) -> None:
        """Set up the metric for a task. Raises MetricUnavailable.

        Parameters
        ----------
        labels
            The labels of a task with choices, otherwise None.
        sp_model
            A SentencePiece file.
        language
            The task's language.
        """
        self.labels = tuple(labels or ())
        self.language = language

    @classmethod
    def get_version_for(cls, language: str) -> int:
        """Return the version of the metric that scores tasks in a language."""
        return cls.version

    @abstractmethod
    def compute_statistic(self, value: Any, row: SetRow) -> Any:
        """Return one answer's contribution to the metric, a hashable value that can be sorted."""

    @abstractmethod
    def compute_vectors(self, statistics: Sequence[Any]) -> Sums:
        """Return one row of numbers per statistic. Later calls may add columns on the right."""

    @abstractmethod
    def compute_value(self, sums: Sums) -> Sums:
        """Return the metric for each row of sums (… × columns), NaN where there are no examples."""

    @abstractmethod
    def grade(self, statistic: Any) -> float:
        """Return how right a single answer is, 0-1. More is better, also for error rates."""


class Mean(Metric):
    """A metric that is the mean of one number per example."""

    def compute_vectors(self, statistics: Sequence[float]) -> Sums:
        import numpy as np

        return np.column_stack([np.ones(len(statistics)), np.array(statistics, dtype=float)])

    def compute_value(self, sums: Sums) -> Sums:
        return divide(sums[..., 1], sums[..., 0])

    def grade(self, statistic: float) -> float:
        return statistic if self.higher_is_better else 1 - statistic


def divide(numerators: Sums, denominators: Sums, empty_quotient: float = math.nan) -> Sums:
    """Divide arrays element by element.

    Parameters
    ----------
    numerators, denominators
        Arrays of the same shape.
    empty_quotient
        The quotient where the denominator is 0.
    """
    import numpy as np

    # With `where`, numpy leaves all other entries of the result unchanged.
    quotients: Sums = np.full(np.shape(numerators), empty_quotient)
    np.divide(numerators, denominators, out=quotients, where=denominators != 0)
    return quotients


def extract_text(value: Any) -> str:
    """Return an answer as text.

    For a span (`{"text": …, "start": …, "end": …}`), return its text.
    """
    return str(value["text"] if isinstance(value, Mapping) and "text" in value else value)


def make_comparable(value: Any) -> Any:
    """Return an answer in comparable form.

    Texts are in NFC, spans become their text, and choices are sorted.
    """
    if isinstance(value, str):
        return compose(value)
    if isinstance(value, Mapping):
        return compose(extract_text(value))
    if isinstance(value, Iterable):
        return sorted(str(make_comparable(choice)) for choice in value)
    return value


def is_right(value: Any, row: SetRow) -> bool:
    """Return whether an answer equals one of the accepted answers."""
    answer = make_comparable(value)
    return value is not None and any(answer == make_comparable(gold) for gold in row.gold)
