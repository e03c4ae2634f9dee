"""Score a model's answers, over all examples and by slice, with bootstrap intervals.

Examples are streamed. Only a count of each distinct statistic, or sums, stays in memory.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from evaluation.contract import MIN_RESAMPLED_EXAMPLES, Answer, Number, SetRow
from evaluation.scoring.mean_intervals import compute_mean_interval, compute_means, compute_powers
from evaluation.scoring.metrics import Metric, MetricUnavailable, make_metric
from evaluation.scoring.metrics.base import Mean, Sums
from validation.rates.rates import compute_student_quantile

MAX_SLICE_VALUES = 50  # the maximum number of scored slices of a field
MAX_DISTINCT_STATISTICS = 50_000  # in all tallies together, some hundred bytes each
EXAMPLES_PER_CHECK = 1000  # examples between two checks of the number of statistics
MAX_ARRAY_CELLS = 2**18  # numbers in one array, so that a matrix of draws takes two megabytes
MAX_DRAWS = 20_000
"""The maximum number of resamples for a score over all examples by a metric that is not a mean.

With it, from about 700 examples on, another seed moves the ends of the interval by less than 0.1
points. With fewer examples, more resamples are drawn.
"""
DRAWS_TIMES_EXAMPLES = 14_000_000
"""The product of resamples and examples from which another seed moves an end by < 0.1 points."""
MAX_DRAWS_OF_FEW = 100_000
MAX_SLICE_DRAWS = 2_000
MIN_DRAWS = 200
MAX_DRAWN_NUMBERS = 2_000_000
"""The maximum number of counts drawn for a metric over all examples.

More distinct examples need fewer resamples for the same stability, because the interval is
narrower.
"""
MAX_SLICE_NAME_CHARS = 200  # the maximum number of characters of a slice's name
UNDEFINED_NOTE = "It is not defined on these examples."


class Tally:
    """Sums of vectors over examples, and over `draws` bootstrap resamples of them.

    Uses the Poisson bootstrap (Hanley and MacGibbon 2006, Chamandy et al. 2012, section 3). Each
    example is drawn Poisson(1) times, so c examples with equal statistics are together drawn
    Poisson(c) times. This needs neither all examples at once nor their number.
    """

    def __init__(
        self,
        vectors: Callable[[Sequence[Any]], Sums],
        *,
        name: str,
        seed: int,
        draws: int | None = None,
        max_draws: int = MAX_DRAWS,
    ) -> None:
        """Create an empty tally.

        Tallies with different names are drawn independently of each other.

        Parameters
        ----------
        vectors
            Turns statistics into rows of numbers whose sums the metric needs.
        name
            Part of the random seed.
        seed
            The seed of the run.
        draws
            The number of resamples, 0 for none. If None, `choose_draws` decides, up to `max_draws`.
        max_draws
            The maximum number of resamples.
        """
        self.counts: Counter[Hashable] = Counter()
        self.n = 0
        self._vectors = vectors
        # Seeded by the name, so that adding a metric or a slice changes no other number.
        self._chance = np.random.default_rng([seed, crc32(name.encode())])
        self._draws, self._most = draws, max_draws
        self._sums: Sums | None = None  # None before the first examples are drawn

    def compute_sums(self) -> Sums:
        """Return the sums of the examples themselves (row 0), then those of each resample."""
        return self.flush_counts()

    def flush_counts(self) -> Sums:
        """Add the counted examples to the sums, clear the counts, and return the sums.

        Statistics are added in sorted order, so that the order of the examples does not matter.
        """
        sorted_counts = iter(sorted(self.counts.items()))  # type: ignore[arg-type]
        if self._draws is None:
            # Decided once, because all rows of sums must be about the same resamples.
            self._draws = choose_draws(len(self.counts), self.counts.total(), self._most)
        draws = self._draws
        sums = self._sums
        if sums is None:
            # Without columns, whose number depends on the metric's first vectors.
            sums = np.zeros((1 + draws, 0))
        # Draws of a chunk and its vectors are matrices; either may be the wider one.
        width = max(draws, sums.shape[1], 1)
        # Chunk by chunk, so that no matrix of draws has more than about CELLS numbers.
        while chunk := list(islice(sorted_counts, max(1, MAX_ARRAY_CELLS // width))):
            statistics, counts = zip(*chunk, strict=True)
            vectors = self._vectors(statistics)
            # Poisson draws do not depend on the total, so examples can be added in chunks.
            drawn_counts = self._chance.poisson(counts, (draws, len(counts)))
            new_sums = np.vstack([counts, drawn_counts]).astype(float) @ vectors
            # Later vectors may have more columns than earlier ones, on the right.
            new_sums[:, : sums.shape[1]] += sums
            sums = new_sums
        self.n += self.counts.total()
        # From now on, these examples are only in the sums.
        self.counts.clear()
        self._sums = sums
        return sums


def choose_draws(distinct_count: int, n: int, max_draws: int = MAX_DRAWS) -> int:
    """Return how many resamples to draw.

    Parameters
    ----------
    distinct_count
        The number of distinct statistics among the examples.
    n
        The number of examples.
    max_draws
        The maximum: MAX_DRAWS for a score over all examples, MAX_SLICE_DRAWS for a slice.

    Returns
    -------
    int
        From MIN_DRAWS to MAX_DRAWS_OF_FEW, so that another seed moves an end of the interval by
        less than 0.1 points. MIN_DRAWS if there are too few examples for an interval.
    """
    if n < MIN_RESAMPLED_EXAMPLES:
        return MIN_DRAWS
    # More distinct statistics cost more for each draw.
    affordable_draws = MAX_DRAWN_NUMBERS * max_draws // (MAX_DRAWS * max(1, distinct_count))
    # Slices keep their bound. A score over few examples gets more draws, which are cheap.
    if max_draws == MAX_DRAWS:
        max_draws = min(MAX_DRAWS_OF_FEW, max(max_draws, DRAWS_TIMES_EXAMPLES // n))
    return min(max_draws, max(MIN_DRAWS, affordable_draws))


def compute_scores(
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
    """Compute each metric over all examples, then for each slice, with 95% intervals.

    Memory use does not depend on the number of examples. The same seed gives the same numbers. The
    order of the rows does not matter if there are at most MAX_DISTINCT_STATISTICS distinct
    statistics.

    Parameters
    ----------
    rows
        Examples and answers. A missing answer is None and counts as wrong.
    metrics
        Names of metrics, the main one first.
    labels
        The task's labels, if its answers are choices.
    slices
        The fields for whose values examples are also scored separately.
    seed
        The seed of the draws.
    draws
        The number of resamples; None as in `Tally`.
    sp_model
        A SentencePiece file, for spBLEU.
    language
        The task's language.

    Returns
    -------
    list of Number
        First the numbers over all examples. n is the number of examples. In each slice field, the
        first MAX_SLICE_VALUES values are scored. A Number without a value counts the examples with
        other values, or says why a metric cannot be computed here.

    Notes
    -----
    Intervals of means are computed exactly (`evaluation.scoring.mean_intervals`), other intervals
    by resampling.
    """
    usable_metrics, missing_numbers = _split_by_availability(metrics, labels, sp_model, language)

    def make_tallies(slice_name: str) -> list[Tally]:
        return [make_tally(metric, slice_name, seed, draws) for metric in usable_metrics]

    # Tallies by slice. Slices are added as their values appear.
    tallies_by_slice = {"": make_tallies("")}
    values: dict[str, set[str]] = {field: set() for field in slices}
    left_out_counts: Counter[str] = Counter()
    for number, (row, answer) in enumerate(rows, 1):
        value = None if answer is None else answer.value
        # Once per example, not per slice, because some metrics are slow.
        statistics = [metric.compute_statistic(value, row) for metric in usable_metrics]
        for slice_name in list_slice_names(row, values, left_out_counts):
            if slice_name not in tallies_by_slice:
                tallies_by_slice[slice_name] = make_tallies(slice_name)
            for tally, statistic in zip(tallies_by_slice[slice_name], statistics, strict=True):
                tally.counts[statistic] += 1
        # Not after each example, which would take longer than scoring it.
        if number % EXAMPLES_PER_CHECK == 0:
            flush_large_tallies(list(chain.from_iterable(tallies_by_slice.values())))
    numbers = []
    for slice_name, tallies in tallies_by_slice.items():
        for metric, tally in zip(usable_metrics, tallies, strict=True):
            numbers.append(compute_number(metric, tally, slice_name))
    numbers += missing_numbers
    for field, count in left_out_counts.items():
        numbers.append(_make_left_out_number(metrics[0], field, count))
    return numbers


def make_tally(metric: Metric, slice_name: str, seed: int, draws: int | None) -> Tally:
    """Return an empty tally of a metric for a slice, or for all examples if `slice_name` is empty.

    draws: the number of resamples; None as in `Tally`. The tally of a mean draws none.
    """
    if isinstance(metric, Mean):
        # Its interval is computed from sums of powers, without draws.
        return Tally(compute_statistic_powers, name=metric.name, seed=seed, draws=0)
    max_draws = MAX_SLICE_DRAWS if slice_name else MAX_DRAWS
    name = f"{metric.name} {slice_name}"
    return Tally(metric.compute_vectors, name=name, seed=seed, draws=draws, max_draws=max_draws)


def _split_by_availability(
    names: Sequence[str], labels: Sequence[str] | None, sp_model: Path | None, language: str
) -> tuple[list[Metric], list[Number]]:
    """Return the metrics that can be computed, and a Number for each other one.

    Duplicate names count once. The Number's note says why the metric cannot be computed.
    """
    usable_metrics, missing_numbers = [], []
    for name in dict.fromkeys(names):
        try:
            usable_metrics.append(make_metric(name, labels, sp_model, language))
        except MetricUnavailable as error:
            missing_numbers.append(Number(name, None, None, None, 0, note=str(error)))
    return usable_metrics, missing_numbers


def list_slice_names(
    row: SetRow, values: dict[str, set[str]], left_out_counts: Counter[str]
) -> Iterator[str]:
    """Yield the names of the slices that an example belongs to; "" stands for all examples.

    values: the scored values of each field, which this extends. left_out_counts: the numbers
    of other values by field, which this increases.
    """
    yield ""
    for field, field_values in values.items():
        # Sorted, because only the first values are kept.
        for value in sorted(set(row.slices.get(field, ()))):
            if value in field_values or len(field_values) < MAX_SLICE_VALUES:
                field_values.add(value)
                yield f"{field}={value}"[:MAX_SLICE_NAME_CHARS]
            else:
                left_out_counts[field] += 1


def flush_large_tallies(tallies: Sequence[Tally]) -> None:
    """Flush all tallies if they contain many distinct statistics, which limits their memory."""
    if sum(len(tally.counts) for tally in tallies) > MAX_DISTINCT_STATISTICS:
        for tally in tallies:
            tally.flush_counts()


def _make_left_out_number(metric: str, field: str, count: int) -> Number:
    note = f"Values of {field} after the first {MAX_SLICE_VALUES} are left out."
    return Number(metric, None, None, None, count, slice=f"{field}=…", note=note)


def compute_number(metric: Metric, tally: Tally, slice_name: str = "") -> Number:
    """Return the value of a metric with its interval.

    Parameters
    ----------
    metric
        The metric.
    tally
        The tally of its statistics.
    slice_name
        The slice that the tally covers, "" for all examples.

    Returns
    -------
    Number
        Without a value if there are no examples, or if the metric is not defined on them.
    """
    sums = tally.compute_sums()
    # All rows of the set were left out.
    if tally.n == 0:
        return Number(
            metric.name, None, None, None, 0, slice=slice_name, note="There are no examples."
        )
    if isinstance(metric, Mean):
        # Means have no draws, so the first row is the only one.
        (mean,) = compute_means(sums[0])
        return Number(metric.name, *compute_mean_interval(mean), tally.n, slice=slice_name)
    values = metric.compute_value(sums)
    # Undefined, such as a correlation with a single label.
    if np.isnan(values[0]):
        note = UNDEFINED_NOTE
        return Number(metric.name, None, None, None, tally.n, slice=slice_name, note=note)
    value, low, high = compute_resampled_interval(values, tally.n)
    return Number(metric.name, value, low, high, tally.n, slice=slice_name)


def compute_statistic_powers(statistics: Sequence[float]) -> Sums:
    """Return one vector per statistic of a mean; their first two sums are count and total."""
    return compute_powers(np.array(statistics, dtype=float))


def compute_mean_number(values: Sequence[float], *, name: str) -> Number:
    """Return the mean, with its interval, of one number (0-1) for each example."""
    (mean,) = compute_means(compute_statistic_powers(values).sum(axis=0))
    return Number(name, *compute_mean_interval(mean), len(values))


def compute_quantile_interval(values: NDArray[np.float64]) -> tuple[float, float, float]:
    """Return the first value and the 2.5 % and 97.5 % quantiles of all values.

    The interval is widened to include the first value. Resamples on which the metric is not defined
    (NaN) are ignored.
    """
    value = float(values[0])
    low, high = np.nanquantile(values, (0.025, 0.975))
    return value, min(value, float(low)), max(value, float(high))


def compute_resampled_interval(
    values: NDArray[np.float64], n: int
) -> tuple[float, float | None, float | None]:
    """Return the value and its interval from resamples, as (value, low end, high end).

    Both ends are None for few examples and for equal values, where the interval of
    `compute_quantile_interval` would be too narrow. n: the number of examples.
    """
    value, low, high = compute_quantile_interval(values)
    shows_interval = n >= MIN_RESAMPLED_EXAMPLES and low < high
    return (value, low, high) if shows_interval else (value, None, None)


def compute_resampled_difference(
    values: NDArray[np.float64], n: int
) -> tuple[float, float | None, float | None]:
    """Return the difference of two scores (0-1) with Student's interval, from its resamples.

    Parameters
    ----------
    values
        The difference on the examples, then on each resample.
    n
        The number of examples.

    Returns
    -------
    tuple
        The difference, the low end and the high end. Both ends are None for few examples and for
        equal values.

    Notes
    -----
    value ± t(n - 1) · s, where s is the standard deviation of the resamples.
    """
    value, half_width = (
        float(values[0]),
        compute_student_quantile(n - 1) * float(np.nanstd(values[1:], ddof=1)),
    )
    if n < MIN_RESAMPLED_EXAMPLES or not half_width:
        return value, None, None
    return value, max(-1.0, value - half_width), min(1.0, value + half_width)
