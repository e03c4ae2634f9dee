"""Charts of two measures against each other. They mark models that no other model beats in both."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from core.charts import ValueRange, choose_ticks, compute_scale_percent, compute_value_range
from core.figures.names import shorten_names
from core.figures.plots import LABEL_GAP, spread_labels
from core.figures.scene import (
    DIAMOND,
    DOT,
    Label,
    Margins,
    Mark,
    Polyline,
    Position,
    Scene,
    Segment,
    Shape,
)

PLANE_HEIGHT, FILE_PLOT_WIDTH = 340, 760
MIN_DOT_DISTANCE = 10
"""The minimum distance between two points in pixels, on a plot of FILE_PLOT_WIDTH."""
MAX_LABEL_CHARS = 24
"""The maximum number of characters of a name beside its point."""


@dataclass(frozen=True)
class PlaneDot:
    """A model in a chart of two measures.

    x_ends, y_ends: the ends of its interval in each measure, or None. is_best: whether no other
    model beats it in both measures.
    """

    name: str
    x: float
    y: float
    url: str = ""
    x_ends: tuple[float, float] | None = None
    y_ends: tuple[float, float] | None = None
    is_best: bool = False
    title: str = ""


def build_plane_scene(
    dots: Sequence[PlaneDot], axis_names: tuple[str, str], less_is_better: tuple[bool, bool]
) -> Scene:
    """Return the chart of the models.

    axis_names: the names of both measures. less_is_better: whether lower values are better, by
    axis. Each axis extends to the ends of the intervals.
    """
    # Intervals count, or whiskers would leave the plot.
    x_values: list[float] = []
    y_values: list[float] = []
    for dot in dots:
        x_values += [dot.x, *(dot.x_ends or ())]
        y_values += [dot.y, *(dot.y_ends or ())]
    x_ticks = choose_ticks(*compute_value_range(x_values))
    y_ticks = choose_ticks(*compute_value_range(y_values))
    x_range, y_range = _find_tick_range(x_ticks), _find_tick_range(y_ticks)
    shapes: list[Shape] = list(_draw_axes(x_ticks, y_ticks))
    # Under the points, which are to be clicked.
    shapes += _draw_front(dots, x_range, y_range, less_is_better)
    positions = [_compute_position(dot, x_range, y_range) for dot in dots]
    shifts = compute_shifts(positions)
    for dot, position, dx in zip(dots, positions, shifts, strict=True):
        shapes += _draw_dot(dot, position, dx, x_range, y_range)
    shapes += _label_best(dots, positions, shifts)
    x_words, y_words = axis_names
    shapes.append(Label("axis text", (50, 100), x_words, dy=40, anchor="middle"))
    shapes.append(Label("axis text", (0, 0), y_words, dx=-40, dy=-14))
    margins = Margins(top=32, right=24, bottom=52, left=56)
    return Scene(tuple(shapes), PLANE_HEIGHT, FILE_PLOT_WIDTH, margins, "plane")


def _find_tick_range(ticks: Sequence[tuple[float, str]]) -> ValueRange:
    """Return the first and the last tick: the ends of an axis."""
    return ticks[0][0], ticks[-1][0]


def _compute_position(dot: PlaneDot, x_range: ValueRange, y_range: ValueRange) -> Position:
    # SVG counts from the top, values from the bottom.
    y = round(100 - compute_scale_percent(dot.y, y_range), 2)
    return compute_scale_percent(dot.x, x_range), y


def compute_shifts(positions: Sequence[Position]) -> list[float]:
    """Return by how many pixels each point is moved to the side, so that no point hides another.

    >>> compute_shifts([(50, 50), (50, 50), (50.1, 50), (90, 50)])
    [0, 10, -10, 0]
    """
    shifts: list[float] = []
    placed: list[Position] = []
    for x, y in positions:
        x_px, y_px = x * FILE_PLOT_WIDTH / 100, y * PLANE_HEIGHT / 100
        # Alternately to the right and to the left: 0, 1, -1, 2, -2 times the distance.
        step = 0
        shift = 0
        while any(
            abs(x_px + shift - other_x) < MIN_DOT_DISTANCE - 1
            and abs(y_px - other_y) < MIN_DOT_DISTANCE - 1
            for other_x, other_y in placed
        ):
            step += 1
            shift = MIN_DOT_DISTANCE * ((step + 1) // 2) * (1 if step % 2 else -1)
        placed.append((x_px + shift, y_px))
        shifts.append(shift)
    return shifts


def _draw_axes(
    x_ticks: Sequence[tuple[float, str]], y_ticks: Sequence[tuple[float, str]]
) -> Iterator[Shape]:
    y_range, x_range = _find_tick_range(y_ticks), _find_tick_range(x_ticks)
    for value, text in y_ticks:
        y = round(100 - compute_scale_percent(value, y_range), 2)
        yield Segment("grid", (0, y), (100, y))
        yield Label("axis text", (0, y), text, -8, 4, "end")
    for value, text in x_ticks:
        x = compute_scale_percent(value, x_range)
        yield Label("axis text", (x, 100), text, dy=20, anchor="middle")


def _draw_front(
    dots: Sequence[PlaneDot],
    x_range: ValueRange,
    y_range: ValueRange,
    less_is_better: tuple[bool, bool],
) -> Iterator[Shape]:
    """Yield the stepped line between the models that no other model beats in both measures."""
    # From left to right, as the line is drawn.
    front = sorted((dot.x, dot.y) for dot in dots if dot.is_best)
    positions: list[tuple[float, float]] = []
    for number, (x, y) in enumerate(front):
        position = (
            compute_scale_percent(x, x_range),
            round(100 - compute_scale_percent(y, y_range), 2),
        )
        if number:
            previous = positions[-1]
            # What lies between two of them is at least as good as the worse of both.
            corner = (
                (previous[0], position[1]) if not less_is_better[0] else (position[0], previous[1])
            )
            positions.append(corner)
        positions.append(position)
    # A single point has no steps.
    if len(front) > 1:
        yield Polyline("front", tuple(positions))


def _draw_dot(
    dot: PlaneDot, position: Position, dx: float, x_range: ValueRange, y_range: ValueRange
) -> Iterator[Shape]:
    """Yield a model's whiskers and its mark. dx: by how many pixels they are moved to the side."""
    x, y = position
    if dot.x_ends:
        yield Segment(
            "pale whisker",
            (compute_scale_percent(dot.x_ends[0], x_range), y),
            (compute_scale_percent(dot.x_ends[1], x_range), y),
        )
    if dot.y_ends:
        low, high = (round(100 - compute_scale_percent(end, y_range), 2) for end in dot.y_ends)
        yield Segment("pale whisker", (x, low), (x, high), dx)
    # By shape too, so that nobody needs the colour.
    role = "chosen dot" if dot.is_best else "other dot"
    shape = DIAMOND if dot.is_best else DOT
    yield Mark(role, (x, y), shape, dot.title or dot.name, dot.url, dx)


def _label_best(
    dots: Sequence[PlaneDot], positions: Sequence[Position], shifts: Sequence[float]
) -> Iterator[Shape]:
    """Yield the names of the best models beside their points, apart from each other."""
    best = [number for number, dot in enumerate(dots) if dot.is_best]
    names = shorten_names([dots[number].name for number in best], MAX_LABEL_CHARS)
    # Labels on different sides of their points do not touch, so each side is spread by itself.
    for is_right in (False, True):
        group = []
        for number, name in zip(best, names, strict=True):
            # Names stay inside the plot.
            if (positions[number][0] <= 70) == is_right:
                group.append((number, name))
        heights = [positions[number][1] * PLANE_HEIGHT / 100 - 7 for number, _name in group]
        for (number, name), height in zip(group, spread_labels(heights, LABEL_GAP), strict=True):
            anchor, dx = ("start", 9) if is_right else ("end", -9)
            position = (positions[number][0], 100 * height / PLANE_HEIGHT)
            yield Label("name text", position, name, shifts[number] + dx, 0, anchor)
