"""Strip plots: one value among all others on a line."""

from collections.abc import Sequence

from django.utils.safestring import SafeString

from core.charts import compute_value_range
from core.figures.drawing import draw_decoration
from core.figures.rows import RowAxis
from core.figures.scene import Margins, Mark, Scene, Segment, Shape

STRIP_HEIGHT = 24
TICK, MEDIAN_TICK = "M0-5V5", "M0-9V9"


def draw_strip(values: Sequence[float], value: float | None, median: float | None) -> SafeString:
    """Return a strip plot: all values as ticks, the median as a longer tick, one value as a dot.

    value: the value of the dot, or None. median: the median, or None. Returns "" for fewer than two
    values.
    """
    if len(values) < 2:
        return SafeString()
    # Its own scale: a strip tells places, not sizes.
    low, high = compute_value_range(values)
    axis = RowAxis(low, high, ())
    shapes: list[Shape] = [Segment("grid", (0, 50), (100, 50))]
    # Ticks before the dot, which lies above the others.
    for other in values:
        shapes.append(Mark("other tick", (axis.compute_position(other), 50), TICK))
    if median is not None:
        shapes.append(Mark("people tick", (axis.compute_position(median), 50), MEDIAN_TICK))
    if value is not None:
        shapes.append(Mark("chosen dot", (axis.compute_position(value), 50)))
    scene = Scene(tuple(shapes), STRIP_HEIGHT, 0, Margins(0, 0, 0, 0), "row-plot strip")
    return draw_decoration(scene)
