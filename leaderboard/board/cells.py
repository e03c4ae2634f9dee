"""The numbers of a board: each with its interval, a score also with what is not known of it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple


class Cell(NamedTuple):
    """A number with its interval of 95 %; None: none, or too few examples to show one."""

    value: float | None
    low: float | None = None
    high: float | None = None


class BoardScore(NamedTuple):
    """A model's score, between the worst and the best that its unmeasured metrics allow.

    value: None where `least` and `most` differ, or where there is no score at all. low, high: the
    interval, from the low end of the worst case to the high end of the best case.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    least: float | None = None
    most: float | None = None

    @property
    def is_range(self) -> bool:
        """Return whether the score depends on what was not measured."""
        return self.value is None and self.least is not None


class MetricColumn(NamedTuple):
    """One number of all models, by place; lists that the garbage collector passes by."""

    values: Sequence[float | None]
    low: Sequence[float | None]
    high: Sequence[float | None]

    def cell(self, place: int) -> Cell:
        """Return the number of one model."""
        return Cell(self.values[place], self.low[place], self.high[place])


class ScoreColumn(NamedTuple):
    """The scores of all models, by place; see `BoardScore`."""

    values: Sequence[float | None]
    low: Sequence[float | None]
    high: Sequence[float | None]
    least: Sequence[float | None]
    most: Sequence[float | None]

    def cell(self, place: int) -> BoardScore:
        """Return the score of one model."""
        return BoardScore(*(some[place] for some in self))


class Metrics(Mapping[str, Cell]):
    """A model's metrics over the weighted sets."""

    def __init__(self, columns: Mapping[str, MetricColumn], place: int) -> None:
        self._columns, self._place = columns, place

    def __getitem__(self, name: str) -> Cell:
        return self._columns[name].cell(self._place)

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)
