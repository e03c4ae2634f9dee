"""Scores of a model's answers, over all examples and by slice, with bootstrap intervals.

Examples stream by; what is kept is a count of each distinct statistic, or sums.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from evaluation.contract import LEAST_RESAMPLED, Answer, Number, SetRow
from evaluation.scoring.mean_intervals import mean_interval, means_of, powers
from evaluation.scoring.metrics import Metric, Unavailable, metric_of
from evaluation.scoring.metrics.base import Mean, Sums
from validation.rules.rates import student

MOST_VALUES = 50  # slices of a field
MOST_KEPT = 50_000  # distinct statistics of all tallies together, some hundred bytes each
LOOK_EVERY = 1000  # examples
CELLS = 2**18  # of one array
MOST_DRAWS = 20_000
"""Of a metric over all examples, which is no mean: another seed then moves the ends of its interval
by less than 0.1 points, from some 700 examples on. Fewer examples are drawn more often."""
WIDE = 14_000_000
"""Draws times examples of which another seed moves an end by less than 0.1 points."""
MOST_OF_FEW = 100_000
MOST_OF_SLICE = 2_000
LEAST_DRAWS = 200
DRAWN = 2_000_000
"""Numbers that are drawn for a metric over all examples, at most. More distinct examples need fewer
draws for the same steadiness, as the interval is narrower."""
NAME = 200  # characters of a slice's name
UNDEFINED = "It is not defined on these examples."


class Tally:
    """Sums of vectors over examples, and over `draws` resamples of them.

    The bootstrap is Poisson's: each example is drawn Poisson(1) times, so c examples with equal
    statistics are together drawn Poisson(c) times (Hanley and MacGibbon 2006; Chamandy et al. 2012,
    section 3). It needs neither all examples at once nor their number.
    """

    def __init__(
        self,
        vectors: Callable[[Sequence[Any]], Sums],
        *,
        name: str,
        seed: int,
        draws: int | None = None,
        most: int = MOST_DRAWS,
    ) -> None:
        """Tallies of different names are drawn independently of one another.

        draws: how many, 0 for none; None: as many as `draws_for` says, up to `most`.
        """
        self.counts: Counter[Hashable] = Counter()
        self.n = 0
        self._vectors = vectors
        self._chance = np.random.default_rng([seed, crc32(name.encode())])
        self._draws, self._most = draws, most
        self._sums: Sums | None = None  # none before the first examples are drawn

    def sums(self) -> Sums:
        """Row 0: of the examples themselves; the others: of each resample."""
        return self.settle()

    def settle(self) -> Sums:
        """Turns counts into sums. Sorted, so that the order of the examples does not matter."""
        ordered = iter(sorted(self.counts.items()))  # type: ignore[arg-type]
        if self._draws is None:
            self._draws = draws_for(len(self.counts), self.counts.total(), self._most)
        draws = self._draws
        sums = np.zeros((1 + draws, 0)) if self._sums is None else self._sums
        width = max(draws, sums.shape[1], 1)
        while some := list(islice(ordered, max(1, CELLS // width))):
            statistics, counts = zip(*some, strict=True)
            vectors = self._vectors(statistics)
            drawn = self._chance.poisson(counts, (draws, len(counts)))
            more = np.vstack([counts, drawn]).astype(float) @ vectors
            more[:, : sums.shape[1]] += sums
            sums = more
        self.n += self.counts.total()
        self.counts.clear()
        self._sums = sums
        return sums


def draws_for(distinct: int, n: int, most: int = MOST_DRAWS) -> int:
    """Return how many resamples to draw of n examples with so many distinct statistics.

    Of too few examples for an interval the least.
    """
    if n < LEAST_RESAMPLED:
        return LEAST_DRAWS
    affordable = DRAWN * most // (MOST_DRAWS * max(1, distinct))
    if most == MOST_DRAWS:
        most = min(MOST_OF_FEW, max(most, WIDE // n))
    return min(most, max(LEAST_DRAWS, affordable))


def score(
    rows: Iterable[tuple[SetRow, Answer | None]],
    *,
    metrics: Sequence[str],
    labels: Sequence[str] | None,
    slices: Sequence[str],
    seed: int,
    draws: int | None = None,
    sp_model: Path | None = None,
    language: str = "",
) -> list[Number]:
    """Each metric over all examples, then by slice, with percentile intervals of 95 %.

    Those of means are exact (`evaluation.scoring.mean_intervals`), those of others are drawn.
    draws: see `Tally`.

    An answer that is None is missing, and wrong. n counts examples. Of each slice field the first
    MOST_VALUES values are scored; a Number without a value says how often others occurred.
    Memory is bounded whatever the number of examples. The same numbers come for the same seed and,
    up to MOST_KEPT distinct statistics, in any order of the rows.
    """
    usable, lacking = _usable(metrics, labels, sp_model, language)

    def tallies(part: str) -> list[Tally]:
        return [_tally(each, part, seed, draws) for each in usable]

    board = {"": tallies("")}
    values: dict[str, set[str]] = {field: set() for field in slices}
    left_out: Counter[str] = Counter()
    for number, (row, answer) in enumerate(rows, 1):
        value = None if answer is None else answer.value
        statistics = [metric.statistic(value, row) for metric in usable]
        for part in _parts(row, values, left_out):
            if part not in board:
                board[part] = tallies(part)
            for tally, statistic in zip(board[part], statistics, strict=True):
                tally.counts[statistic] += 1
        if number % LOOK_EVERY == 0:
            settle_many([tally for part in board.values() for tally in part])
    found = [
        number_of(metric, tally, part)
        for part, of_part in board.items()
        for metric, tally in zip(usable, of_part, strict=True)
    ]
    return found + lacking + [_left_out(metrics[0], *item) for item in left_out.items()]


def _tally(metric: Metric, part: str, seed: int, draws: int | None) -> Tally:
    """What counts a metric of a part of the examples; of a mean nothing is drawn."""
    if isinstance(metric, Mean):
        return Tally(powers_of, name=metric.name, seed=seed, draws=0)
    most = MOST_OF_SLICE if part else MOST_DRAWS
    name = f"{metric.name} {part}"
    return Tally(metric.vectors, name=name, seed=seed, draws=draws, most=most)


def _usable(
    names: Sequence[str], labels: Sequence[str] | None, sp_model: Path | None, language: str
) -> tuple[list[Metric], list[Number]]:
    """The metrics that can be computed, each once; and for the others numbers that say why not."""
    usable, lacking = [], []
    for name in dict.fromkeys(names):
        try:
            usable.append(metric_of(name, labels, sp_model, language))
        except Unavailable as error:
            lacking.append(Number(name, None, None, None, 0, note=str(error)))
    return usable, lacking


def _parts(row: SetRow, values: dict[str, set[str]], left_out: Counter[str]) -> Iterator[str]:
    """The names of the parts that an example belongs to; the empty one is all."""
    yield ""
    for field, known in values.items():
        for value in sorted(set(row.slices.get(field, ()))):
            if value in known or len(known) < MOST_VALUES:
                known.add(value)
                yield f"{field}={value}"[:NAME]
            else:
                left_out[field] += 1


def settle_many(tallies: Sequence[Tally]) -> None:
    if sum(len(tally.counts) for tally in tallies) > MOST_KEPT:
        for tally in tallies:
            tally.settle()


def _left_out(metric: str, field: str, count: int) -> Number:
    note = f"Values of {field} after the first {MOST_VALUES} are left out."
    return Number(metric, None, None, None, count, slice=f"{field}=…", note=note)


def number_of(metric: Metric, tally: Tally, part: str = "") -> Number:
    """The metric of what was counted."""
    sums = tally.sums()
    if tally.n == 0:
        return Number(metric.name, None, None, None, 0, slice=part, note="There are no examples.")
    if isinstance(metric, Mean):
        (mean,) = means_of(sums[0])
        return Number(metric.name, *mean_interval(mean), tally.n, slice=part)
    values = metric.value(sums)
    if np.isnan(values[0]):
        note = UNDEFINED
        return Number(metric.name, None, None, None, tally.n, slice=part, note=note)
    value, low, high = bounded(values, tally.n)
    return Number(metric.name, value, low, high, tally.n, slice=part)


def powers_of(statistics: Sequence[float]) -> Sums:
    """Vectors of the statistics of a mean; the first two sums are a count and a total."""
    return powers(np.array(statistics, dtype=float))


def mean_of(values: Sequence[float], *, name: str) -> Number:
    """The mean of a number (0-1) of each example, with its interval."""
    (mean,) = means_of(powers_of(values).sum(axis=0))
    return Number(name, *mean_interval(mean), len(values))


def interval(values: NDArray[np.float64]) -> tuple[float, float, float]:
    """The first value, and the 2.5 and 97.5 % quantiles of all; the value is never outside them.

    Resamples where it is not defined (NaN) do not count.
    """
    value = float(values[0])
    low, high = np.nanquantile(values, (0.025, 0.975))
    return value, min(value, float(low)), max(value, float(high))


def bounded(values: NDArray[np.float64], n: int) -> tuple[float, float | None, float | None]:
    """The value and its interval as in `interval`; None where n examples do not show one.

    Resamples of few examples, or of such as are all alike, look surer than they are.
    """
    value, low, high = interval(values)
    return (value, low, high) if n >= LEAST_RESAMPLED and low < high else (value, None, None)


def bounded_difference(
    values: NDArray[np.float64], n: int
) -> tuple[float, float | None, float | None]:
    """A difference of two scores (0-1) with Student's interval, by the deviation of its draws."""
    value, half = float(values[0]), student(n - 1) * float(np.nanstd(values[1:], ddof=1))
    if n < LEAST_RESAMPLED or not half:
        return value, None, None
    return value, max(-1.0, value - half), min(1.0, value + half)
