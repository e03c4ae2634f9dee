"""Draw bars and sparklines for tables, and compute scales.

There are no scripts and no inline styles (see charts.css).
Positions are percentages of the plot, which has no view box: it takes any width, and text keeps its
size. Time and bars begin where a line of text does: at the right for readers of Arabic.
Charts with axes are in `core.figures`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Any

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from core.numbers import format_decimal, format_percent, format_short_number

MAX_SERIES = 4
"""The maximum number of parts of a bar, one per colour."""

FormatValue = Callable[[float], str]
"""A function that formats a value as text."""
Position = tuple[float, float]
"""A position as percentages of the plot, from the left and from the top."""
ValueRange = tuple[float, float]
"""The ends of a scale, the lower one first."""


@dataclass(frozen=True, slots=True)
class Point:
    """A value with its interval. A missing value interrupts the line.

    is_thin: whether the value is based on too few examples, so that its dot is drawn hollow.
    """

    label: str
    value: float | None
    low: float | None = None
    high: float | None = None
    is_thin: bool = False


SeriesByName = Mapping[str, Sequence[Point]]
"""Series of points with the same labels, by name. Values are 0 or more."""


def draw_bars(
    values: Mapping[str, float | None],
    *,
    title: str,
    format_value: FormatValue = format_short_number,
    is_funnel: bool = False,
) -> SafeString:
    """Return a bar chart. In a funnel, each bar also shows its share of the previous one."""
    # Where all values are 0 the bars have no width, and nothing is divided by zero.
    largest_value = max((value or 0 for value in values.values()), default=0) or 1
    # The first bar of a funnel has nothing before it.
    previous_values = [None, *values.values()] if is_funnel else [None] * len(values)
    bar_rows = [
        {
            "label": label,
            "width": round(100 * (value or 0) / largest_value, 2),
            "value": None if value is None else format_value(value),
            "share": format_percent(value / previous_value, 0)
            if value is not None and previous_value
            else "",
        }
        for (label, value), previous_value in zip(values.items(), previous_values, strict=False)
    ]
    return render_to_string("components/bars.html", {"title": title, "rows": bar_rows})


def draw_stacked_bars(
    totals: Mapping[str, Sequence[float]],
    labels: Sequence[str],
    *,
    title: str,
    full_value: float | None = None,
    format_value: FormatValue = format_short_number,
) -> SafeString:
    """Return a chart with one bar per total, divided into one part per label.

    totals: the counts of the parts, by the bar's name. full_value: the value of a full bar. If it
    is None, each bar is as long as its own total, and the table lists shares.
    """
    shares_by_name = {name: _compute_shares(counts, full_value) for name, counts in totals.items()}
    context = {
        "title": title,
        "names": list(totals),
        "bars": [
            {"name": name, "parts": [*_iterate_parts(shares, labels)]}
            for name, shares in shares_by_name.items()
        ],
        "rows": [
            (
                _get_series_number(index),
                label,
                [
                    (
                        format_value(counts[index]),
                        "" if full_value else format_percent(shares_by_name[name][index], 0),
                    )
                    for name, counts in totals.items()
                ],
            )
            for index, label in enumerate(labels)
        ],
    }
    return render_to_string("components/stacked_bars.html", context)


def draw_sparkline(values: Sequence[float | None]) -> SafeString:
    """Return a sparkline of the values, without axes, to show beside the numbers.

    The line skips None. Returns "" for fewer than two known values.
    """
    known_values = [value for value in values if value is not None]
    # One value has no course over time.
    if len(known_values) < 2:
        return SafeString()
    scale = compute_value_range(known_values)
    positions = [
        (
            round(100 * index / (len(values) - 1), 2),
            round(100 - compute_scale_percent(value, scale), 2),
        )
        for index, value in enumerate(values)
        if value is not None
    ]
    return render_to_string(
        "components/sparkline.html", {"line": _build_path(positions), "end": positions[-1]}
    )


def compute_value_range(values: Iterable[float | None]) -> ValueRange:
    """Return the smallest and the largest known value. If they are equal, extend both ends by 1.

    Without known values, returns (-1, 1).
    """
    known_values = [value for value in values if value is not None]
    low, high = min(known_values, default=0.0), max(known_values, default=0.0)
    # A range of no width would have every position divide by zero.
    return (low, high) if low < high else (low - 1, high + 1)


def compute_scale_percent(value: float, scale: ValueRange) -> float:
    """Return a value's position on a scale in percent, limited to the range 0 to 100."""
    low, high = scale
    return round(100 * min(1.0, max(0.0, (value - low) / (high - low))), 2)


def compute_axis_top(series: SeriesByName) -> float:
    """Return the smallest of 1, 2, 4, 6, 8 times a power of ten that no value exceeds.

    The ends of intervals count as values. Returns 1 if all values are 0.
    """
    points = [point for line in series.values() for point in line]
    highest = max((max(p.value or 0, p.high or 0) for p in points), default=0)
    if highest < 1e-300:  # where powers of ten are no longer exact
        return 1
    power = 10.0 ** floor(log10(highest))
    # A little less than the highest, as 3 × 0.1 is not exactly 0.3.
    return next(step * power for step in (1, 2, 4, 6, 8, 10) if step * power >= highest * 0.999999)


def choose_ticks(low: float, high: float, max_steps: int = 4) -> list[tuple[float, str]]:
    """Return round values with their labels, from at most `low` to at least `high`.

    They lie at multiples of 1, 2, 2.5 or 5 times a power of ten. There are at most `max_steps` + 2
    of them.

    >>> choose_ticks(43.7, 81.2)
    [(40.0, '40'), (50.0, '50'), (60.0, '60'), (70.0, '70'), (80.0, '80'), (90.0, '90')]
    """
    if low >= high:
        low, high = low - 1, high + 1
    rough_step = (high - low) / max_steps
    power = 10.0 ** floor(log10(rough_step))
    # A little less than the rough step, as 3 × 0.1 is not exactly 0.3.
    factor = next(each for each in (1, 2, 2.5, 5, 10) if each * power >= rough_step * 0.999999)
    step = factor * power
    # As many digits as the step needs, so that no two labels are the same.
    digits = max(0, -floor(log10(step)) + (1 if factor == 2.5 else 0))
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    ticks = []
    for number in range(first, last + 1):
        value = number * step
        ticks.append((value, format_decimal(value, digits, is_grouped=True)))
    return ticks


def _build_path(positions: Sequence[Position], end: str = "") -> str:
    """Return path data for a line through the points, followed by `end`; "" without points."""
    # Path data: M moves to the first point, each L draws a line to the next one.
    corners = "L".join(f"{x} {y}" for x, y in positions)
    return f"M{corners}{end}" if corners else ""


def _compute_shares(counts: Sequence[float], full_value: float | None) -> list[float]:
    total = full_value or sum(counts) or 1
    return [count / total for count in counts]


def _get_series_number(index: int) -> int:
    """Return the number of the colour of a part, from 1 to MAX_SERIES."""
    # Beyond the last colour the first ones come again.
    return index % MAX_SERIES + 1


def _iterate_parts(shares: Sequence[float], labels: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the parts of a stacked bar from left to right, as values for its template."""
    start = 0.0
    for index, (share, label) in enumerate(zip(shares, labels, strict=True)):
        yield {
            "series": _get_series_number(index),
            "x": round(100 * start, 2),
            "width": round(100 * share, 2),
            "words": f"{label}: {format_percent(share, 0)}",
        }
        start += share
