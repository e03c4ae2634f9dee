"""The numbers of a board: each with its interval, scores also with their range."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple


class Cell(NamedTuple):
    """A number with its 95% interval. low, high: None without an interval or with few examples."""

    value: float | None
    low: float | None = None
    high: float | None = None

    def iterate_shares(self) -> Iterator[float | None]:
        """Yield a percentage and the ends of its interval as shares (0-1)."""
        for number in self:
            yield None if number is None else number / 100


class BoardScore(NamedTuple):
    """A model's score, between the worst and the best case that its unmeasured metrics allow.

    value: None if `least` and `most` differ, or if there is no score. low, high: the interval, from
    the low end of the worst case to the high end of the best case.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    least: float | None = None
    most: float | None = None

    @property
    def is_range(self) -> bool:
        """Return whether the score depends on metrics that were not measured."""
        return self.value is None and self.least is not None


class MetricColumn(NamedTuple):
    """A column of a board: the values of all models and the ends of their intervals, by index."""

    values: Sequence[float | None]
    low: Sequence[float | None]
    high: Sequence[float | None]

    def get_cell(self, model_index: int) -> Cell:
        """Return the value and interval of the model at index `model_index`."""
        return Cell(self.values[model_index], self.low[model_index], self.high[model_index])


class ScoreColumn(NamedTuple):
    """The scores of all models, by index; see `BoardScore`."""

    values: Sequence[float | None]
    low: Sequence[float | None]
    high: Sequence[float | None]
    least: Sequence[float | None]
    most: Sequence[float | None]

    def get_cell(self, model_index: int) -> BoardScore:
        """Return the score of the model at index `model_index`."""
        return BoardScore(
            self.values[model_index],
            self.low[model_index],
            self.high[model_index],
            self.least[model_index],
            self.most[model_index],
        )


class ModelMetrics(Mapping[str, Cell]):
    """A model's metrics over the weighted sets."""

    def __init__(self, columns: Mapping[str, MetricColumn], model_index: int) -> None:
        self._columns, self._place = columns, model_index

    def __getitem__(self, name: str) -> Cell:
        return self._columns[name].get_cell(self._place)

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)
