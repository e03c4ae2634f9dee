"""Charts as SVG: no script and no inline style; site.css colours the classes.

A chart is one picture with a title and a description, so each needs a table of the same numbers
beside it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import ceil, floor, log10

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

WIDTH, HEIGHT = 320, 200
LEFT, RIGHT, TOP, BOTTOM = 42, 12, 28, 24
"""Margins around the plot, in units of the view box; text is 12 units high."""
LINE = 16
"""What a line of text takes."""
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

    Values are 0 or more. Raises ValueError for more lines.
    """
    if len(lines) > len(SHAPES):
        raise ValueError(f"A chart shows at most {len(SHAPES)} lines.")
    everything = [point for points in lines.values() for point in points]
    top = _nice_top(max((max(p.value or 0, p.high or 0) for p in everything), default=0))
    drawn = format_html_join(
        "",
        '<g class="series-{}"><path class="band" d="{}"/><path class="line" d="{}"/>{}</g>',
        (
            (number, *_paths(points, top), _marks(name, points, SHAPES[number - 1], top, shown))
            for number, (name, points) in enumerate(lines.items(), start=1)
        ),
    )
    labels = [point.label for point in next(iter(lines.values()), ())]
    return _chart(title, description, labels, top, shown, drawn + _legend(list(lines)))


def bar_chart(
    bars: Mapping[str, float],
    *,
    title: str,
    description: str = "",
    shown: Shown = "{:g}".format,
) -> SafeString:
    """One column for each label, of a value of 0 or more."""
    top = _nice_top(max(bars.values(), default=0))
    width = (WIDTH - LEFT - RIGHT) / max(len(bars), 1) * 0.8
    drawn = format_html_join(
        "",
        '<rect class="series-1" x="{}" y="{}" width="{}" height="{}"><title>{}: {}</title></rect>',
        (
            (
                _text(_x(n, len(bars)) - width / 2),
                _text(_y(value, top)),
                _text(width),
                _text(_y(0, top) - _y(value, top)),
                label,
                shown(value),
            )
            for n, (label, value) in enumerate(bars.items())
        ),
    )
    return _chart(title, description, list(bars), top, shown, drawn)


def scatter(
    dots: Sequence[Dot],
    *,
    title: str,
    axes: tuple[str, str],
    description: str = "",
    shown: Shown = "{:.3g}".format,
) -> SafeString:
    """Named places, each a link, with a line through some of them. axes: what x and y are.

    Each axis goes from the least to the greatest value.
    """
    (left, right), (low, high) = _reach([dot.x for dot in dots]), _reach([dot.y for dot in dots])
    places = {
        dot: (_along((dot.x - left) / (right - left)), _up((dot.y - low) / (high - low)))
        for dot in dots
    }
    line = sorted(place for dot, place in places.items() if dot.on_line)
    drawn = format_html_join(
        "",
        '<a href="{0}"><title>{1}</title><circle class="reach" cx="{2}" cy="{3}" r="14"/>'
        '<path class="mark" d="{4}" transform="translate({2} {3})"/></a>',
        (
            (
                dot.url,
                f"{dot.name}: {axes[0]} {shown(dot.x)}, {axes[1]} {shown(dot.y)}",
                *map(_text, place),
                SHAPES[3 if dot.on_line else 0],
            )
            for dot, place in places.items()
        ),
    )
    return format_html(
        '<svg class="chart" viewBox="0 0 {} {}" role="group"><title>{}</title><desc>{}</desc>'
        '{}<text x="4" y="14">{}</text><text x="{}" y="{}" text-anchor="end">{}</text>'
        '<g class="series-2"><path class="line" d="{}"/></g><g class="series-1">{}</g></svg>',
        *(WIDTH, HEIGHT + LINE, title, description),
        _plane((left, right), (low, high), shown),
        *(axes[1], WIDTH - RIGHT, HEIGHT + LINE - 6, axes[0]),
        "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in line) if line else "",
        drawn,
    )


def _plane(across: tuple[float, float], up: tuple[float, float], shown: Shown) -> SafeString:
    """Lines at the ends and the middle of both axes, with their values."""
    return format_html_join(
        "",
        '<path class="grid" d="M{0} {1}V{2}M{3} {4}H{5}"/>'
        '<text x="{0}" y="{6}" text-anchor="{7}">{8}</text>'
        '<text x="{9}" y="{10}" text-anchor="end">{11}</text>',
        (
            (
                *(_text(_along(part)), TOP, HEIGHT - BOTTOM),
                *(LEFT, _text(_up(part)), WIDTH - RIGHT),
                *(HEIGHT - 6, anchor, shown(across[0] + part * (across[1] - across[0]))),
                *(LEFT - 6, _text(_up(part) + 4), shown(up[0] + part * (up[1] - up[0]))),
            )
            for part, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end"))
        ),
    )


def _along(share: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * share


def _up(share: float) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - share)


def _reach(values: Sequence[float]) -> tuple[float, float]:
    """From the least to the greatest, with room around a single one."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    return (low, high) if low < high else (low - 1, high + 1)


def _chart(
    title: str, description: str, labels: Sequence[str], top: float, shown: Shown, drawn: SafeString
) -> SafeString:
    """Axes around what was drawn. Of many labels, about six are written."""
    grid = format_html_join(
        "",
        '<path class="grid" d="M{} {}H{}"/><text x="{}" y="{}" text-anchor="end">{}</text>',
        (
            (LEFT, _text(y), WIDTH - RIGHT, LEFT - 6, _text(y + 4), shown(tick))
            for tick in (0, top / 2, top)
            for y in [_y(tick, top)]
        ),
    )
    step = ceil(len(labels) / MOST_LABELS)
    below = format_html_join(
        "",
        '<text x="{}" y="{}" text-anchor="middle">{}</text>',
        (
            (_text(_x(n, len(labels))), HEIGHT - 6, label)
            for n, label in enumerate(labels)
            if n % step == 0
        ),
    )
    return format_html(
        '<svg class="chart" viewBox="0 0 {} {}" role="img"><title>{}</title><desc>{}</desc>'
        "{}{}{}</svg>",
        *(WIDTH, HEIGHT, title, description, grid, below, drawn),
    )


def _paths(points: Sequence[Point], top: float) -> tuple[str, str]:
    """Band and line as path data, broken where a value is missing."""
    band = line = ""
    places = [(_x(n, len(points)), point) for n, point in enumerate(points)]
    for is_known, run in groupby(places, lambda place: place[1].value is not None):
        if is_known:
            known = list(run)
            line += "M" + "L".join(f"{x:.1f} {_y(p.value or 0, top):.1f}" for x, p in known)
            lows = [(x, p.low) for x, p in known if p.low is not None]
            highs = [(x, p.high) for x, p in known if p.high is not None]
            edge = [f"{x:.1f} {_y(value, top):.1f}" for x, value in highs + lows[::-1]]
            band += f"M{'L'.join(edge)}Z" if edge else ""
    return band, line


def _marks(name: str, points: Sequence[Point], shape: str, top: float, shown: Shown) -> SafeString:
    return format_html_join(
        "",
        '<path class="mark" d="{}" transform="translate({} {})"><title>{}</title></path>',
        (
            (
                shape,
                _text(_x(n, len(points))),
                _text(_y(point.value, top)),
                f"{name}, {point.label}: {shown(point.value)}",
            )
            for n, point in enumerate(points)
            if point.value is not None
        ),
    )


def _legend(names: Sequence[str]) -> SafeString:
    """The lines' names above the plot, each with its mark."""
    width = (WIDTH - LEFT) / max(len(names), 1)
    return format_html_join(
        "",
        '<g class="series-{}" transform="translate({} 10)"><path class="mark" d="{}"/>'
        '<text x="9" y="4">{}</text></g>',
        (
            (number, _text(LEFT + 6 + (number - 1) * width), SHAPES[number - 1], name)
            for number, name in enumerate(names, start=1)
        ),
    )


def _nice_top(highest: float) -> float:
    """The smallest of 1, 2, 4, 6, 8 times a power of ten that is not below `highest`; 1 for 0."""
    if highest < 1e-300:  # where powers of ten are no longer exact
        return 1
    power = 10.0 ** floor(log10(highest))
    return next(step * power for step in (1, 2, 4, 6, 8, 10) if step * power >= highest * 0.999999)


def _x(place: int, count: int) -> float:
    """The middle of the place's share of the width."""
    return LEFT + (WIDTH - LEFT - RIGHT) * (place + 0.5) / count


def _y(value: float, top: float) -> float:
    return _up(value / top)


def _text(number: float) -> str:
    return f"{number:.1f}"
