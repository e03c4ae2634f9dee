"""Charts over rounds, days or weeks: lines with intervals, or stacked columns."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from django.utils.translation import gettext as _

from core.charts import Point, compute_axis_top
from core.figures.figure import FigureTable, LegendItem
from core.figures.names import shorten_names
from core.figures.scene import (
    DIAMOND,
    DOT,
    FLAT_CAP,
    SQUARE,
    TRIANGLE,
    Box,
    Label,
    Margins,
    Mark,
    Polyline,
    Scene,
    Segment,
    Shape,
)
from core.numbers import (
    add_percent_sign,
    format_percent_axis,
    format_percent_number,
    format_short_number,
)

PLOT_HEIGHT, WIDE_HEIGHT = 260, 300
FILE_PLOT_WIDTH = 760
END_MARGIN = 180
"""Width in pixels of the space for labels at the ends of lines."""
LABEL_GAP = 15
"""The minimum distance between two labels, in pixels."""
INSET = 16
"""The distance between the axis and the first point, in pixels."""
MAX_LABEL_CHARS = 22
"""The maximum number of characters of a label at the end of a line."""
MAX_ZOOMED_SHARE = 0.6
"""If the highest share is above this, the axis ends at 100 %."""
PHONE_PLOT_WIDTH, LETTER_WIDTH = 232, 7
"""The widths of a plot on a phone and of a letter, in pixels."""
SHAPES = (DOT, SQUARE, TRIANGLE, DIAMOND)
"""The marks of lines, so that readers need not tell their colours apart."""
OTHER_ROLES = ("second", "third")
"""The roles of the first other models that have a label. Further ones are grey."""
DODGE_DISTANCE, MAX_DODGED_POINTS = 7, 12
"""The distance between the points of two lines in pixels, in charts of at most so many points.

Otherwise points and intervals of similar models would lie on each other.
"""

FormatValue = Callable[[float], str]


@dataclass(frozen=True)
class PlotLine:
    """A line of a chart.

    role: people, chosen or other. has_label: whether its name is shown at its end. is_connected:
    whether a line joins the points.
    """

    name: str
    points: Sequence[Point]
    role: str = "other"
    has_label: bool = True
    is_connected: bool = True


@dataclass(frozen=True)
class Bracket:
    """A bracket that marks the distance between two values at the last point.

    high, low: the two values. text: the label of the bracket.
    """

    high: float
    low: float
    text: str


@dataclass(frozen=True)
class ColumnPart:
    """A part that occurs in each column of a chart.

    role: determines the colour. name: the name of the part. counts: its count in each column.
    """

    role: str
    name: str
    counts: Sequence[int]


def compute_share_axis_top(points: Sequence[Point]) -> float:
    """Return the top of an axis for shares: 1, or a round number if all shares are small."""
    highest = max((max(point.value or 0, point.high or 0) for point in points), default=0)
    return 1 if highest > MAX_ZOOMED_SHARE else compute_axis_top({"": points})


def build_line_scene(
    lines: Sequence[PlotLine],
    *,
    top: float,
    format_value: FormatValue = format_percent_axis,
    threshold: float | None = None,
    bracket: Bracket | None = None,
) -> Scene:
    """Return a line chart. All lines must have the same labels.

    Points behind the last known value are left out, so that labels stand at the ends of lines.

    top: the upper end of the axis. threshold: a value to mark by a dashed line.
    """
    lines = _trim_lines(lines)
    # All lines have the same labels, also where a value is missing.
    labels = [point.label for point in lines[0].points]
    shapes: list[Shape] = list(_draw_frame(top, format_value))
    shapes += _label_points([_compute_point_x(n, len(labels)) for n in range(len(labels))], labels)
    # Below the lines, which must stay readable where they cross it.
    if threshold is not None:
        y = _compute_value_y(threshold, top)
        shapes.append(Segment("threshold", (0, y), (100, y)))
        text = format_value(threshold)
        shapes.append(Label("axis text", (100, y), text, dy=-6, anchor="end"))
    lines = _colour_lines(lines)
    shifts = _compute_line_shifts(lines)
    # The others first, so that people and the chosen model lie above them.
    order = {"chosen": 1, "people": 2}
    for number, line in sorted(enumerate(lines), key=lambda pair: order.get(pair[1].role, 0)):
        shape = SHAPES[number % len(SHAPES)]
        shapes += _draw_line(line, shape, top, format_value, shifts[number])
    shapes += _label_ends(lines, top, bracket, max(shifts))
    has_labels = bracket is not None or any(line.has_label for line in lines)
    margins = Margins(left=60 + INSET, right=END_MARGIN if has_labels else 40)
    css_class = "lines with-ends" if has_labels else "lines"
    return Scene(tuple(shapes), PLOT_HEIGHT, FILE_PLOT_WIDTH, margins, css_class)


def build_line_legend(lines: Sequence[PlotLine]) -> list[LegendItem]:
    """Return the legend of a line chart, in the order of the lines at the last point.

    Lines without a value come last.
    """
    items: list[tuple[float, LegendItem]] = []
    for number, line in enumerate(_colour_lines(lines)):
        values = [point.value for point in line.points if point.value is not None]
        last_value = values[-1] if values else -1.0
        shape = SHAPES[number % len(SHAPES)]
        items.append((last_value, LegendItem(f"{line.role} dot", line.name, shape)))
    # From top to bottom, as the lines are seen.
    return [item for _value, item in sorted(items, key=lambda pair: -pair[0])]


def build_column_scene(
    labels: Sequence[str],
    parts: Sequence[ColumnPart],
    *,
    height: int = PLOT_HEIGHT,
    css_class: str = "",
) -> Scene:
    """Return a chart of stacked columns, each with its total above.

    parts: disjoint counts, from the bottom up. css_class: a CSS class for the page.
    """
    # The scale is that of the totals: a part can only be shorter.
    totals = [sum(part.counts[n] for part in parts) for n in range(len(labels))]
    top = compute_axis_top({"": [Point("", total) for total in totals]})
    # The middle of the axis has a label, and there is no half of a thing that is counted.
    top = max(top, 2)
    shapes: list[Shape] = list(_draw_frame(top, format_short_number))
    middles = [100 * (n + 0.5) / len(labels) for n in range(len(labels))]
    shapes += _label_points(middles, labels)
    # Wide columns of few days would look like areas.
    width = min(8.0, 70 / max(len(labels), 1))
    for number, middle in enumerate(middles):
        base = 0
        for part in parts:
            count = part.counts[number]
            if count:
                y = _compute_value_y(base + count, top)
                title = f"{labels[number]}, {part.name}: {count}"
                position = (middle - width / 2, y)
                shapes.append(Box(part.role, position, width, 100 * count / top, title=title))
            # The next part stands on this one.
            base += count
        # An empty day has no number, which would hide the axis.
        if base:
            position = (middle, _compute_value_y(base, top))
            total = format_short_number(base)
            shapes.append(Label("axis text", position, total, dy=-5, anchor="middle"))
    margins = Margins(top=20, left=60, right=24)
    return Scene(tuple(shapes), height, FILE_PLOT_WIDTH, margins, f"columned {css_class}".strip())


def find_last_index(lines: Sequence[PlotLine]) -> int | None:
    """Return the index of the last point at which a line has a value; None without values."""
    for index in reversed(range(len(lines[0].points))):
        if any(line.points[index].value is not None for line in lines):
            return index
    return None


def _trim_lines(lines: Sequence[PlotLine]) -> list[PlotLine]:
    last_index = find_last_index(lines)
    # Without any value, the axis with its labels is all that there is.
    if last_index is None:
        return list(lines)
    return [replace(line, points=line.points[: last_index + 1]) for line in lines]


def _colour_lines(lines: Sequence[PlotLine]) -> list[PlotLine]:
    """Return the lines, with colours of their own for the first other models."""
    free_roles = list(OTHER_ROLES)
    coloured_lines = []
    for line in lines:
        if line.role == "other" and line.has_label and free_roles:
            line = replace(line, role=free_roles.pop(0))
        coloured_lines.append(line)
    return coloured_lines


def _compute_line_shifts(lines: Sequence[PlotLine]) -> list[float]:
    """Return by how many pixels each line is moved to the side, so that no point hides another."""
    if len(lines) < 2 or len(lines[0].points) > MAX_DODGED_POINTS:
        return [0.0] * len(lines)
    middle = (len(lines) - 1) / 2
    return [DODGE_DISTANCE * (number - middle) for number in range(len(lines))]


def spread_labels(heights: Sequence[float], gap: float = LABEL_GAP) -> list[float]:
    """Return positions at least `gap` apart, near the given heights and in the same order.

    >>> spread_labels([10, 12, 60], 14)
    [4.0, 18.0, 60.0]
    """
    order = sorted(range(len(heights)), key=lambda number: heights[number])
    # Labels that touch form a group, which is centred on the mean of their places.
    groups: list[list[int]] = []
    for number in order:
        groups.append([number])
        while len(groups) > 1 and _find_start(groups[-1], heights, gap) < (
            _find_start(groups[-2], heights, gap) + gap * len(groups[-2])
        ):
            last_group = groups.pop()
            groups[-1] += last_group
    label_positions = [0.0] * len(heights)
    for group in groups:
        start = _find_start(group, heights, gap)
        for position, number in enumerate(group):
            label_positions[number] = start + gap * position
    return label_positions


def _find_start(group: Sequence[int], heights: Sequence[float], gap: float) -> float:
    """Return the position of the first label in a group centred on the mean of its heights."""
    mean = sum(heights[number] for number in group) / len(group)
    return mean - gap * (len(group) - 1) / 2


def _compute_point_x(number: int, count: int) -> float:
    return 100 * number / (count - 1) if count > 1 else 50.0


def _compute_value_y(value: float, top: float) -> float:
    return round(100 * (1 - value / top), 3)


def _draw_frame(top: float, format_value: FormatValue) -> Iterator[Shape]:
    """Yield the horizontal grid lines, every second one labelled with its value.

    They begin to the left of the first point.
    """
    # Five hairlines: more would compete with the lines.
    for share in (0, 0.25, 0.5, 0.75, 1):
        y = 100 * (1 - share)
        yield Segment("grid", (0, y), (100, y))
        yield Mark("grid", (0, y), f"M-{INSET} 0H0", mirrored_shape=f"M0 0H{INSET}")
        # Each second line has its value, so that counts stay whole numbers.
        if share in (0, 0.5, 1):
            text = format_value(share * top)
            yield Label("axis text", (0, y), text, -INSET - 6, 4, "end")


def _label_points(x_positions: Sequence[float], labels: Sequence[str]) -> Iterator[Shape]:
    """Yield the labels under the points, counted from the last one, as far as there is room.

    Labels for which only wider screens and files have room get the role "rare text", and phones
    hide them.
    """
    # The longest label decides, so that none touches its neighbour.
    label_width = LETTER_WIDTH * max((len(label) for label in labels), default=0) + LETTER_WIDTH
    # Rounded up: with one label too many, all would touch.
    step = max(1, -(-int(label_width * len(labels)) // PHONE_PLOT_WIDTH))
    # A file and a desk have room for three times as many.
    wide_step = max(1, -(-int(label_width * len(labels)) // FILE_PLOT_WIDTH))
    # Counted from the end: the newest label is always there.
    last = len(labels) - 1
    for number, label in enumerate(labels):
        if (last - number) % wide_step:
            continue
        role = "rare text" if (last - number) % step else "axis text"
        yield Label(role, (x_positions[number], 100), label, dy=20, anchor="middle")


def _draw_line(
    line: PlotLine, shape: str, top: float, format_value: FormatValue, dx: float
) -> Iterator[Shape]:
    """Yield the band or the intervals, the line and the points of a series, moved by dx pixels."""
    # A missing value has no point; the line goes on to the next one.
    positions = []
    for number, point in enumerate(line.points):
        if point.value is not None:
            x = _compute_point_x(number, len(line.points))
            positions.append((x, _compute_value_y(point.value, top), point))
    if line.role == "people":
        yield from _draw_bands(line.points, top)
    if line.is_connected:
        for (x1, y1, first), (x2, y2, second) in pairwise(positions):
            suffix = " thin" if first.is_thin or second.is_thin else ""
            yield Segment(f"{line.role} line{suffix}", (x1, y1), (x2, y2), dx)
    for x, y, point in positions:
        # A band says it for people; for models whiskers do, so that no band hides another.
        if line.role != "people" and point.low is not None and point.high is not None:
            yield from _draw_interval(line.role, x, point.low, point.high, top, dx)
        suffix = " thin" if point.is_thin else ""
        title = f"{line.name}, {point.label}: {format_value(point.value or 0)}"
        yield Mark(f"{line.role} dot{suffix}", (x, y), shape, title, dx=dx)


def _draw_interval(
    role: str, x: float, low: float, high: float, top: float, dx: float
) -> Iterator[Shape]:
    # An interval may go beyond 100 %, the plot does not.
    lower, upper = _compute_value_y(low, top), _compute_value_y(min(high, top), top)
    yield Segment(f"{role} whisker", (x, lower), (x, upper), dx)
    yield Mark(f"{role} whisker", (x, lower), FLAT_CAP, dx=dx)
    yield Mark(f"{role} whisker", (x, upper), FLAT_CAP, dx=dx)


def _draw_bands(points: Sequence[Point], top: float) -> Iterator[Shape]:
    """Yield a band for each run of points with intervals, or a whisker for a single such point."""
    lows: list[tuple[float, float]] = []
    highs: list[tuple[float, float]] = []
    for number, point in enumerate([*points, Point("", None)]):
        if point.low is not None and point.high is not None:
            x = _compute_point_x(number, len(points))
            lows.append((x, _compute_value_y(point.low, top)))
            highs.append((x, _compute_value_y(min(point.high, top), top)))
            continue
        if len(lows) == 1:
            yield Segment("people whisker", lows[0], highs[0])
        elif lows:
            yield Polyline("people band", tuple(highs + lows[::-1]), is_area=True)
        # A point without an interval ends the band; the next one begins another.
        lows, highs = [], []


def _label_ends(
    lines: Sequence[PlotLine], top: float, bracket: Bracket | None, edge: float
) -> Iterator[Shape]:
    """Yield the names at the ends of lines and, if there is a bracket, its shapes and label.

    edge: by how many pixels the outermost line is moved to the right.
    """
    labelled_lines = [line for line in lines if line.has_label]
    names = shorten_names([line.name for line in labelled_lines], MAX_LABEL_CHARS)
    texts: list[tuple[float, str, str]] = []
    for line, name in zip(labelled_lines, names, strict=True):
        # Beside the last known value, also where the last round has none.
        values = [point.value for point in line.points if point.value is not None]
        if values:
            y = _compute_value_y(values[-1], top) * PLOT_HEIGHT / 100
            texts.append((y, f"{line.role} text", name))
    dx = 10 + edge
    if bracket:
        upper, lower = _compute_value_y(bracket.high, top), _compute_value_y(bracket.low, top)
        yield Segment("bracket", (100, upper), (100, lower), 12 + edge)
        yield Mark("bracket", (100, upper), "M8 0H12", dx=edge)
        yield Mark("bracket", (100, lower), "M8 0H12", dx=edge)
        middle = (upper + lower) / 2 * PLOT_HEIGHT / 100
        texts.append((middle, "bracket text", bracket.text))
        dx += 8
    heights = spread_labels([y for y, _role, _text in texts])
    for label_y, (_y, role, text) in zip(heights, texts, strict=True):
        position = (100.0, 100 * label_y / PLOT_HEIGHT)
        yield Label(f"{role} end", position, text, dx, 4)


def build_share_table(lines: Sequence[PlotLine], *, has_sign: bool = False) -> FigureTable:
    """Return the numbers behind lines of shares, in percent, with their intervals.

    has_sign: whether the percent sign follows each value.
    """
    rows = []
    for number, point in enumerate(lines[0].points):
        cells = []
        for line in lines:
            cells.append(_format_point(line.points[number], has_sign))
        rows.append((point.label, cells))
    return FigureTable([line.name for line in lines], rows)


def _format_point(point: Point, has_sign: bool) -> str:
    if point.value is None:
        return ""
    text = format_percent_number(point.value)
    if has_sign:
        text = add_percent_sign(text)
    if point.low is None or point.high is None:
        return text
    values = {
        "value": text,
        "low": format_percent_number(point.low),
        "high": format_percent_number(point.high),
    }
    # Translators: a number and its interval
    return _("%(value)s (%(low)s to %(high)s)") % values
