"""Charts with one row per model, test or set: dots with whiskers on one horizontal axis.

A page draws each row in a table cell. A file draws all rows above one axis.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.utils.safestring import SafeString

from core.figures.drawing import draw_decoration
from core.figures.names import shorten_names
from core.figures.scene import CAP, Box, Label, Margins, Mark, Scene, Segment, Shape

ROW_HEIGHT = 44
"""The height of a row on a page, in pixels."""
FILE_ROW_HEIGHT, FILE_NAME_WIDTH, FILE_PLOT_WIDTH, FILE_VALUE_WIDTH = 30, 240, 560, 160
"""Sizes in a file, in pixels: row height, and the widths of names, plot and numbers."""
MAX_FILE_ROWS = 60
"""The maximum number of rows in a file. The page says how many rows exist."""
MAX_NAME_CHARS = 30
"""The maximum number of characters of a name in a file."""
AXIS_HEIGHT = 20


@dataclass(frozen=True)
class RowAxis:
    """The axis shared by all rows of a chart.

    low, high: its ends. ticks: values with their labels. zero: a value marked by a line, or None.
    chance: the score reached by guessing. band: the range that people reach. end_texts: the texts
    at the left and right end.
    """

    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    zero: float | None = None
    chance: float | None = None
    band: tuple[float, float] | None = None
    end_texts: tuple[str, str] = ("", "")

    def compute_position(self, value: float) -> float:
        """Return the position of a value in percent from the left, limited to the axis."""
        # Limited, because an interval may be longer than the axis.
        share = (value - self.low) / (self.high - self.low)
        return round(100 * min(1.0, max(0.0, share)), 2)


@dataclass(frozen=True)
class AxisRow:
    """A row of a chart.

    value: None if unknown. low, high: the ends of its interval. text: the value as text. role:
    people, chosen, other or lose, which determines the colour.

    range_low, range_high: the ends, if the value is a range. earlier_value: an earlier value and
    the ends of its interval. rank: the text in front of the name. group: rows of the same group
    share a rank; 0 for none.
    """

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    range_low: float | None = None
    range_high: float | None = None
    text: str = ""
    role: str = "chosen"
    earlier_value: tuple[float, float | None, float | None] | None = None
    rank: str = ""
    group: int = 0


PERCENT_AXIS = RowAxis(0, 100, tuple((float(tick), str(tick)) for tick in (0, 25, 50, 75, 100)))
"""The axis for scores and shares in percent."""


def draw_row(row: AxisRow, axis: RowAxis, height: int = ROW_HEIGHT) -> SafeString:
    """Return the plot of a row for a table cell. The page shows its numbers beside it as text."""
    # The ground goes from edge to edge, so that rows join.
    shapes = (*_draw_background(axis, 0, 100), *_draw_values(row, axis, 50))
    return draw_decoration(Scene(shapes, height, 0, Margins(0, 0, 0, 0), "row-plot"))


def draw_axis(axis: RowAxis) -> SafeString:
    """Return the axis for the header of a table."""
    shapes = tuple(_label_ticks(axis, 100, -6))
    return draw_decoration(Scene(shapes, AXIS_HEIGHT, 0, Margins(0, 0, 0, 0), "row-plot axis"))


def build_rows_scene(rows: Sequence[AxisRow], axis: RowAxis) -> Scene:
    """Return a scene with the first MAX_FILE_ROWS rows on one axis, for a file."""
    shapes: list[Shape] = list(_draw_background(axis, 0, 100))
    shapes += _label_ticks(axis, 0, -8)
    left_end, right_end = axis.end_texts
    if left_end or right_end:
        shapes.append(Label("axis text", (0, 0), left_end, dy=-26))
        shapes.append(Label("axis text", (100, 0), right_end, dy=-26, anchor="end"))
    # A file of a thousand rows is no picture for a paper.
    rows = rows[:MAX_FILE_ROWS]
    names = shorten_names([row.name for row in rows], MAX_NAME_CHARS)
    for number, (row, name) in enumerate(zip(rows, names, strict=True)):
        y = 100 * (number + 0.5) / len(rows)
        shapes += _draw_values(row, axis, y)
        shapes.append(Label("name text", (0, y), name, -16, 4, "end"))
        shapes.append(Label("value text", (100, y), row.text, 14, 4))
        if row.rank:
            shapes.append(Label("axis text", (0, y), row.rank, 24 - FILE_NAME_WIDTH, 4))
    shapes += draw_brackets([row.group for row in rows], 16 - FILE_NAME_WIDTH)
    # The texts at both ends take a line of their own above the ticks.
    top = 26 + (18 if left_end or right_end else 0)
    margins = Margins(top, FILE_VALUE_WIDTH, 8, FILE_NAME_WIDTH)
    return Scene(tuple(shapes), FILE_ROW_HEIGHT * len(rows), FILE_PLOT_WIDTH, margins, "rows")


def draw_brackets(groups: Sequence[int], dx: float) -> Iterator[Shape]:
    """Yield a bracket beside each run of rows with the same group.

    groups: the group of each row; 0 for none. dx: distance from the plot in pixels.
    """
    # One beyond the end, which closes the last run.
    start = 0
    for number in range(1, len(groups) + 1):
        if number < len(groups) and groups[number] and groups[number] == groups[start]:
            continue
        # A row alone shares its rank with no other.
        if number - start > 1:
            top = 100 * (start + 0.2) / len(groups)
            bottom = 100 * (number - 0.2) / len(groups)
            yield Segment("bracket", (0, top), (0, bottom), dx)
        start = number


def _draw_background(axis: RowAxis, top: float, bottom: float) -> Iterator[Shape]:
    """Yield the shapes behind the values: the band of people, hairlines, chance and zero lines."""
    # People first: hairlines and models lie above their band.
    if axis.band:
        left, right = axis.compute_position(axis.band[0]), axis.compute_position(axis.band[1])
        yield Box("people band", (left, top), right - left, bottom - top)
    for value, _text in axis.ticks:
        x = axis.compute_position(value)
        yield Segment("grid", (x, top), (x, bottom))
    if axis.chance is not None:
        x = axis.compute_position(axis.chance)
        yield Segment("chance", (x, top), (x, bottom))
    if axis.zero is not None:
        x = axis.compute_position(axis.zero)
        yield Segment("zero", (x, top), (x, bottom))


def _label_ticks(axis: RowAxis, y: float, dy: float) -> Iterator[Shape]:
    for value, text in axis.ticks:
        yield Label("axis text", (axis.compute_position(value), y), text, dy=dy, anchor="middle")


def _draw_values(row: AxisRow, axis: RowAxis, y: float) -> Iterator[Shape]:
    """Yield the dot of a row with its whisker, and its earlier value, if any."""
    if row.earlier_value:
        value, low, high = row.earlier_value
        yield from _draw_whisker("pale", low, high, axis, y)
        if row.value is not None:
            ends = (axis.compute_position(value), y), (axis.compute_position(row.value), y)
            yield Segment("joint", *ends)
        yield Mark("other dot", (axis.compute_position(value), y))
    # Of two values both whiskers are pale, or they would hide the line between.
    whisker_role = "pale" if row.earlier_value else row.role
    low, high = _get_whisker_ends(row)
    yield from _draw_whisker(whisker_role, low, high, axis, y)
    if row.value is not None:
        yield Mark(f"{row.role} dot", (axis.compute_position(row.value), y))
    elif row.range_low is not None and row.range_high is not None:
        # A score that is a range has no middle, so a bar shows where it may be.
        left, right = axis.compute_position(row.range_low), axis.compute_position(row.range_high)
        yield Box("chosen range", (left, y), right - left, height_px=6)


def _get_whisker_ends(row: AxisRow) -> tuple[float | None, float | None]:
    """Return the ends of the whisker: those of the interval, otherwise those of the range.

    Both are None if the row has neither.
    """
    low = row.range_low if row.low is None else row.low
    high = row.range_high if row.high is None else row.high
    return low, high


def _draw_whisker(
    role: str, low: float | None, high: float | None, axis: RowAxis, y: float
) -> Iterator[Shape]:
    # With too few examples there is a dot without a whisker.
    if low is None or high is None:
        return
    left, right = axis.compute_position(low), axis.compute_position(high)
    yield Segment(f"{role} whisker", (left, y), (right, y))
    yield Mark(f"{role} whisker", (left, y), CAP)
    yield Mark(f"{role} whisker", (right, y), CAP)
