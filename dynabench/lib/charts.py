"""Charts as SVG (templates/components/): no script, no inline style; site.css colours the classes.

A chart is one picture with a title and a description, so its page also has a table of its numbers.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import ceil, floor, log10

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

WIDTH, HEIGHT = 320, 200
LEFT, RIGHT, TOP, BOTTOM = 42, 12, 28, 24
"""Margins around the plot, in units of the view box; text is 12 units high."""
FRAME = {
    "width": WIDTH,
    "height": HEIGHT,
    "left": LEFT,
    "right": WIDTH - RIGHT,
    "top": TOP,
    "bottom": HEIGHT - BOTTOM,
}
MOST_LABELS = 6
SHAPES = (
    "M-4 0A4 4 0 1 0 4 0A4 4 0 1 0-4 0Z",
    "M-4-4H4V4H-4Z",
    "M0-5L5 4H-5Z",
    "M0-5L5 0L0 5L-5 0Z",
)
"""Marks of the lines, so that nobody needs their colours; as many as lines may be."""

Shown = Callable[[float], str]
"""Writes a value."""


@dataclass(frozen=True, slots=True)
class Point:
    """One place on the x axis; without a value the line has a gap there."""

    label: str
    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Dot:
    """One place in a plane; it leads to `url`. on_line: the frontier goes through it."""

    name: str
    x: float
    y: float
    url: str
    on_line: bool = False


def percent(share: float) -> str:
    """A share (0-1) in percent with one decimal, without the sign: 0.1564 is 15.6."""
    return f"{share * 100:.1f}".replace("-", "−")


def percent_sign(share: float) -> str:
    """A share as an axis writes it: 15.6%, 20%."""
    return f"{share * 100:.3g}%"


def line_chart(
    lines: Mapping[str, Sequence[Point]],
    *,
    title: str,
    description: str = "",
    shown: Shown = percent_sign,
) -> SafeString:
    """Up to four named lines over the same labels, with bands where points have an interval.

    Values are 0 or more; of many labels, about six are written. Raises ValueError for more lines.
    """
    if len(lines) > len(SHAPES):
        raise ValueError(f"A chart shows at most {len(SHAPES)} lines.")
    everything = [point for points in lines.values() for point in points]
    top = _nice_top(max((max(p.value or 0, p.high or 0) for p in everything), default=0))
    labels = [point.label for point in next(iter(lines.values()), ())]
    step = ceil(len(labels) / MOST_LABELS)
    legend_width = (WIDTH - LEFT) / max(len(lines), 1)
    values = {
        "title": title,
        "description": description,
        "ticks": [(_y(tick, top), shown(tick)) for tick in (0, top / 2, top)],
        "labels": [(_x(n, len(labels)), word) for n, word in enumerate(labels) if n % step == 0],
        "lines": [
            {
                "name": name,
                "shape": SHAPES[n],
                "legend_x": f"{LEFT + 6 + n * legend_width:.1f}",
                "marks": _marks(points, top, shown),
                **_paths(points, top),
            }
            for n, (name, points) in enumerate(lines.items())
        ],
    }
    return render_to_string("components/line_chart.html", FRAME | values)


def _marks(points: Sequence[Point], top: float, shown: Shown) -> list[tuple[str, str, str, str]]:
    """Where each known point is, its label and its value."""
    return [
        (_x(n, len(points)), _y(p.value, top), p.label, shown(p.value))
        for n, p in enumerate(points)
        if p.value is not None
    ]


def _paths(points: Sequence[Point], top: float) -> dict[str, str]:
    """Band and line as path data, broken where a value is missing."""
    band = line = ""
    places = [(_x(n, len(points)), point) for n, point in enumerate(points)]
    for is_known, run in groupby(places, lambda place: place[1].value is not None):
        if is_known:
            known = list(run)
            line += _path((x, _y(p.value or 0, top)) for x, p in known)
            lows = [(x, _y(p.low, top)) for x, p in known if p.low is not None]
            highs = [(x, _y(p.high, top)) for x, p in known if p.high is not None]
            band += _path(highs + lows[::-1], end="Z")
    return {"band": band, "line": line}


def scatter(dots: Sequence[Dot], *, title: str, axes: tuple[str, str]) -> SafeString:
    """Named places, each a link, with a line through some of them. axes: what x and y are.

    Each axis goes from the least to the greatest value.
    """
    (left, right), (low, high) = _reach([dot.x for dot in dots]), _reach([dot.y for dot in dots])
    places = {
        dot: (_along((dot.x - left) / (right - left)), _up((dot.y - low) / (high - low)))
        for dot in dots
    }
    values = {
        "title": title,
        "axes": axes,
        "ticks": [
            {
                "x": _along(part),
                "y": _up(part),
                "anchor": anchor,
                "across": f"{left + part * (right - left):.3g}",
                "up": f"{low + part * (high - low):.3g}",
            }
            for part, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end"))
        ],
        "line": _path(places[dot] for dot in sorted(places, key=lambda dot: dot.x) if dot.on_line),
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
    return render_to_string("components/scatter.html", FRAME | values)


def _reach(values: Sequence[float]) -> tuple[float, float]:
    """From the least to the greatest, with room around a single one."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    return (low, high) if low < high else (low - 1, high + 1)


def _nice_top(highest: float) -> float:
    """The smallest of 1, 2, 4, 6, 8 times a power of ten that is not below `highest`; 1 for 0."""
    if highest < 1e-300:  # where powers of ten are no longer exact
        return 1
    power = 10.0 ** floor(log10(highest))
    return next(step * power for step in (1, 2, 4, 6, 8, 10) if step * power >= highest * 0.999999)


def _along(share: float) -> str:
    return f"{LEFT + (WIDTH - LEFT - RIGHT) * share:.1f}"


def _up(share: float) -> str:
    return f"{TOP + (HEIGHT - TOP - BOTTOM) * (1 - share):.1f}"


def _x(place: int, count: int) -> str:
    """The middle of the place's share of the width."""
    return _along((place + 0.5) / count)


def _y(value: float, top: float) -> str:
    return _up(value / top)


def _path(places: Iterable[tuple[str, str]], end: str = "") -> str:
    """A line through the places as path data; empty without any."""
    corners = "L".join(map(" ".join, places))
    return f"M{corners}{end}" if corners else ""
