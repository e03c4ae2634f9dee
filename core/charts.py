"""Charts as SVG and tables (templates/components/): no script, no inline style (charts.css).

Places are percentages of the plot, which has no view box: it takes any width, and text keeps its
size. Every chart brings its numbers as text or as a table. Time runs from left to right in every
language; bars follow the direction of the text.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import ceil, floor, log10
from typing import Any

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

NARROW, LETTER, EDGES = 232, 7, (44, 12)
"""Pixels of the plot on a phone (320 px), of a letter, and of the margins left and right of it."""
LONGEST = 13
"""Letters of a label on an axis; the table has all of them."""
SHAPES = (
    "M-4 0A4 4 0 1 0 4 0A4 4 0 1 0-4 0Z",
    "M-4-4H4V4H-4Z",
    "M0-5L5 4H-5Z",
    "M0-5L5 0L0 5L-5 0Z",
)
"""Marks of the lines, so that nobody needs their colours; as many as lines may be."""
SERIES = len(SHAPES)
STEPS = 5
"""Shades of a heat cell."""

Shown = Callable[[float], str]
"""Writes a value."""
Place = tuple[float, float]
"""Percent of the plot from the left and from the top."""


@dataclass(frozen=True, slots=True)
class Point:
    """A value with its interval. A missing value interrupts the line."""

    label: str
    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Dot:
    """A point of a scatter plot that links to `url`. on_line: whether it is on the frontier."""

    name: str
    x: float
    y: float
    url: str
    on_line: bool = False


@dataclass(frozen=True, slots=True)
class Heat:
    """A cell of a matrix: its text, and its darkness (0-1; None if empty).

    url: what it links to, or "". words: the link's label.
    """

    text: str
    share: float | None = None
    url: str = ""
    words: str = ""


Lines = Mapping[str, Sequence[Point]]
"""Named series over the same labels; values are 0 or more."""


def percent(share: float) -> str:
    """Format a share (0-1) as a percentage with one decimal and no sign: 0.1564 is 15.6."""
    return f"{share * 100:.1f}".replace("-", "−")


def percent_sign(share: float) -> str:
    """Format a share for an axis: 15.6%, 20%."""
    return f"{share * 100:.3g}%"


def plain(value: float) -> str:
    """Format a count for an axis: 0.5, 1,200."""
    return f"{value:,.6g}"


def line_chart(
    lines: Lines, *, title: str, description: str = "", format_value: Shown = percent_sign
) -> SafeString:
    """Return a chart of up to four lines, with bands if points have an interval.

    Raises ValueError for more lines.
    """
    if len(lines) > SERIES:
        raise ValueError(f"A chart shows at most {SERIES} lines.")
    top = nice_top(lines)
    drawn_lines = [
        {
            "name": name,
            "shape": SHAPES[n],
            "marks": [
                (x, _up(p.value, top), p.label, format_value(p.value))
                for x, p in _placed(points)
                if p.value is not None
            ],
            **_paths(points, top),
        }
        for n, (name, points) in enumerate(lines.items())
    ]
    frame = _frame(lines, top, title, description, format_value)
    return render_to_string(
        "components/line_chart.html", frame | {"lines": drawn_lines, "look": "chart"}
    )


def column_chart(
    parts: Lines, *, title: str, description: str = "", format_value: Shown = plain
) -> SafeString:
    """Return a column chart by label. Each part is drawn over the previous, which contains it."""
    top = nice_top(parts)
    count = max(map(len, parts.values()), default=0)
    width = 70 / max(count, 1)
    drawn_columns = [
        {
            "name": name,
            "shape": SHAPES[1],
            "columns": [
                (round(x - width / 2, 2), y, round(100 - y, 2), p.label, format_value(p.value))
                for x, p in _placed(points)
                if p.value
                for y in [_up(p.value, top)]
            ],
        }
        for name, points in parts.items()
    ]
    frame = _frame(parts, top, title, description, format_value)
    values = frame | {"lines": drawn_columns, "width": round(width, 2), "look": "chart columned"}
    return render_to_string("components/column_chart.html", values)


def bars(
    values: Mapping[str, float | None],
    *,
    title: str,
    format_value: Shown = plain,
    is_funnel: bool = False,
) -> SafeString:
    """Return a bar chart. In a funnel, each bar also has its share of the previous one."""
    largest_value = max((value or 0 for value in values.values()), default=0) or 1
    previous_values = [None, *values.values()] if is_funnel else [None] * len(values)
    drawn_bars = [
        {
            "label": label,
            "width": round(100 * (value or 0) / largest_value, 2),
            "value": None if value is None else format_value(value),
            "share": f"{value / last:.0%}" if value is not None and last else "",
        }
        for (label, value), last in zip(values.items(), previous_values, strict=False)
    ]
    return render_to_string("components/bars.html", {"title": title, "rows": drawn_bars})


def stacked_bars(
    totals: Mapping[str, Sequence[float]],
    labels: Sequence[str],
    *,
    title: str,
    full_value: float | None = None,
    format_value: Shown = plain,
) -> SafeString:
    """Return a bar for each total, divided into one part per label.

    full_value: the value of a full bar; None for each total itself, and then the table lists
    shares.
    """
    shares_by_name = {name: _shares(counts, full_value) for name, counts in totals.items()}
    values = {
        "title": title,
        "names": list(totals),
        "bars": [
            {"name": name, "parts": [*_parts(shares, labels)]}
            for name, shares in shares_by_name.items()
        ],
        "rows": [
            (
                _series(n),
                label,
                [
                    (
                        format_value(counts[n]),
                        "" if full_value else f"{shares_by_name[name][n]:.0%}",
                    )
                    for name, counts in totals.items()
                ],
            )
            for n, label in enumerate(labels)
        ],
    }
    return render_to_string("components/stacked_bars.html", values)


def matrix(
    names: Sequence[str],
    rows: Iterable[tuple[str, Sequence[Heat]]],
    *,
    title: str,
    corner: str,
) -> SafeString:
    """Return a table whose cells are darker for higher shares. corner: the heading of the rows."""
    drawn = [(name, [(cell, heat(cell.share)) for cell in row]) for name, row in rows]
    values = {"title": title, "corner": corner, "names": names, "rows": drawn}
    return render_to_string("components/matrix.html", values)


def scatter(dots: Sequence[Dot], *, title: str, axes: tuple[str, str]) -> SafeString:
    """Return a plot of linked points, with a line through some of them. axes: labels of x and y.

    Each axis extends from the least to the greatest value.
    """
    (left, right), (low, high) = reach([dot.x for dot in dots]), reach([dot.y for dot in dots])
    places = {
        dot: (along(dot.x, (left, right)), round(100 - along(dot.y, (low, high)), 2))
        for dot in dots
    }
    values = {
        "title": title,
        "axes": axes,
        "ticks": [
            {
                "x": 100 * share,
                "y": 100 * (1 - share),
                "anchor": anchor,
                "across": f"{left + share * (right - left):.3g}",
                "up": f"{low + share * (high - low):.3g}",
            }
            for share, anchor in ((0, "start"), (0.5, "middle"), (1, "end"))
        ],
        "line": _path(sorted(place for dot, place in places.items() if dot.on_line)),
        "dots": [
            {
                "url": dot.url,
                "words": f"{dot.name}: {axes[0]} {dot.x:.3g}, {axes[1]} {dot.y:.3g}",
                "x": x,
                "y": y,
                "shape": SHAPES[3 if dot.on_line else 0],
            }
            for dot, (x, y) in places.items()
        ],
    }
    return render_to_string("components/scatter.html", values)


def whisker(cell: Any, scale: Place) -> SafeString:
    """Return a dot with its interval on a horizontal scale, as decoration of the numbers.

    cell: has value, low and high. For a range of values, a bar extends from `least` to `most`.
    Empty if all of them are missing.
    """
    range_low, range_high = (getattr(cell, end, None) for end in ("least", "most"))
    if cell.value is None and (range_low is None or range_high is None):
        return SafeString()
    range_start, range_end = (cell.value if end is None else end for end in (range_low, range_high))
    end_values = {
        "low": range_start if cell.low is None else cell.low,
        "least": range_start,
        "most": range_end,
        "high": range_end if cell.high is None else cell.high,
    }
    places = {name: along(end, scale) for name, end in end_values.items()}
    return render_to_string(
        "components/whisker.html", {**places, "is_range": range_start != range_end}
    )


def sparkline(values: Sequence[float | None]) -> SafeString:
    """Return a line of values over time without axes, as decoration of the numbers.

    Empty for fewer than two values.
    """
    known_values = [value for value in values if value is not None]
    if len(known_values) < 2:
        return SafeString()
    scale = reach(known_values)
    places = [
        (round(100 * n / (len(values) - 1), 2), round(100 - along(value, scale), 2))
        for n, value in enumerate(values)
        if value is not None
    ]
    return render_to_string("components/sparkline.html", {"line": _path(places), "end": places[-1]})


def heat(share: float | None) -> int | None:
    """Return the shade of a cell, from 0 to STEPS - 1; None for no share."""
    return None if share is None else min(STEPS - 1, max(0, floor(share * STEPS)))


def reach(values: Iterable[float | None]) -> Place:
    """Return the least and the greatest known value; for a single value, extended by 1 each way."""
    known_values = [value for value in values if value is not None]
    low, high = min(known_values, default=0.0), max(known_values, default=0.0)
    return (low, high) if low < high else (low - 1, high + 1)


def along(value: float, scale: Place) -> float:
    """Return a value's position on a scale in percent, limited to 0 and 100."""
    low, high = scale
    return round(100 * min(1.0, max(0.0, (value - low) / (high - low))), 2)


def nice_top(lines: Lines) -> float:
    """Return the least of 1, 2, 4, 6, 8 times a power of ten above all values and intervals."""
    points = [point for line in lines.values() for point in line]
    highest = max((max(p.value or 0, p.high or 0) for p in points), default=0)
    if highest < 1e-300:  # where powers of ten are no longer exact
        return 1
    power = 10.0 ** floor(log10(highest))
    return next(step * power for step in (1, 2, 4, 6, 8, 10) if step * power >= highest * 0.999999)


def axis_labels(labels: Sequence[str]) -> Iterator[tuple[float, str]]:
    """Yield the position in percent and shortened text of labels that fit on a phone.

    Labels that would touch each other or cross the edge are skipped.
    """
    share = NARROW / max(len(labels), 1)
    words = [text if len(text) <= LONGEST else text[: LONGEST - 1] + "…" for text in labels]
    widest = LETTER * max(map(len, words), default=0)
    step = max(1, ceil((widest + LETTER) / share))
    for n in range(0, len(words), step):
        middle, half = (n + 0.5) * share, LETTER * len(words[n]) / 2
        if middle - half >= -EDGES[0] and middle + half <= NARROW + EDGES[1]:
            yield round(100 * middle / NARROW, 2), words[n]


def _frame(
    lines: Lines, top: float, title: str, description: str, format_value: Shown
) -> dict[str, Any]:
    """Return the template values for a chart's axes and its table of numbers."""
    labels = [point.label for point in next(iter(lines.values()), ())]
    return {
        "title": title,
        "description": description,
        "ticks": [(_up(tick, top), format_value(tick)) for tick in (0, top / 2, top)],
        "labels": [*axis_labels(labels)],
        "names": list(lines),
        "rows": [
            (label, [_in_words(points[n], format_value) for points in lines.values()])
            for n, label in enumerate(labels)
        ],
    }


def _in_words(point: Point, format_value: Shown) -> tuple[str, str, str]:
    """Return a value and its interval's ends as texts, "" for unknown ones."""
    value, low, high = (
        "" if number is None else format_value(number)
        for number in (point.value, point.low, point.high)
    )
    return value, low, high


def _placed(points: Sequence[Point]) -> Iterator[tuple[float, Point]]:
    """Yield each point with its x position, the middle of its share of the width."""
    for n, point in enumerate(points):
        yield round(100 * (n + 0.5) / len(points), 2), point


def _up(value: float, top: float) -> float:
    return round(100 * (1 - value / top), 2)


def _paths(points: Sequence[Point], top: float) -> dict[str, str]:
    """Return the band and the line as path data, interrupted at missing values."""
    band = line = ""
    for is_known, run in groupby(_placed(points), lambda place: place[1].value is not None):
        if is_known:
            points_of_run = list(run)
            line += _path([(x, _up(p.value or 0, top)) for x, p in points_of_run])
            lows = [(x, _up(p.low, top)) for x, p in points_of_run if p.low is not None]
            highs = [(x, _up(p.high, top)) for x, p in points_of_run if p.high is not None]
            band += _path(highs + lows[::-1], end="Z")
    return {"band": band, "line": line}


def _path(places: Sequence[Place], end: str = "") -> str:
    """Return a line through the points as path data; "" without points."""
    corners = "L".join(f"{x} {y}" for x, y in places)
    return f"M{corners}{end}" if corners else ""


def _shares(counts: Sequence[float], full_value: float | None) -> list[float]:
    total = full_value or sum(counts) or 1
    return [count / total for count in counts]


def _series(n: int) -> int:
    return n % SERIES + 1


def _parts(shares: Sequence[float], labels: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the parts of a stacked bar from left to right."""
    start = 0.0
    for n, (share, label) in enumerate(zip(shares, labels, strict=True)):
        yield {
            "series": _series(n),
            "x": round(100 * start, 2),
            "width": round(100 * share, 2),
            "words": f"{label}: {share:.0%}",
        }
        start += share
