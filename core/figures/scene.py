"""The parts of a chart: shapes with positions in the plot, and roles instead of colours.

Positions are in percent of the plot, from the left and from the top, so that pages can draw them at
any width. Texts and marks have sizes in pixels. `core.figures.drawing` draws any scene, on a page
or in a file.
"""

from dataclasses import dataclass, field

DOT = "M-4.5 0A4.5 4.5 0 1 0 4.5 0A4.5 4.5 0 1 0-4.5 0Z"
SQUARE = "M-4-4H4V4H-4Z"
TRIANGLE = "M0-5L5 4H-5Z"
DIAMOND = "M0-6L6 0L0 6L-6 0Z"
CAP = "M0-3V3"
"""The path of a cap at the end of a horizontal whisker."""
FLAT_CAP = "M-3 0H3"
"""The path of a cap at the end of a vertical whisker."""

# A pair and no class: there are thousands of them on a page.
Position = tuple[float, float]
"""A position in percent of the plot, from the left and from the top."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A straight line between two positions, shifted by dx and dy pixels."""

    role: str
    start: Position
    end: Position
    dx: float = 0
    dy: float = 0


@dataclass(frozen=True, slots=True)
class Polyline:
    """A line through several positions or, with `is_area`, the area that it encloses."""

    role: str
    positions: tuple[Position, ...]
    is_area: bool = False


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle. Its sizes are in percent of the plot.

    height_px: if not 0, its height in pixels, centred on `position`. title: the text shown on
    pointing at it. url: the link target, or "".
    """

    role: str
    position: Position
    width: float
    height: float = 0
    height_px: float = 0
    title: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """A small shape of fixed size at a position.

    shape: path data in pixels around 0 0. title: the text shown on pointing at it. url: the link
    target, or "". dx: by how many pixels it is moved to the right.
    """

    role: str
    position: Position
    shape: str = DOT
    title: str = ""
    url: str = ""
    dx: float = 0


@dataclass(frozen=True, slots=True)
class Label:
    """A text at a position, shifted by dx and dy pixels. anchor: start, middle or end."""

    role: str
    position: Position
    text: str
    dx: float = 0
    dy: float = 0
    anchor: str = "start"


# A union and no base class: mypy then knows that drawing handles each.
Shape = Segment | Polyline | Box | Mark | Label


@dataclass(frozen=True, slots=True)
class Margins:
    """The space around the plot for its labels, in pixels."""

    top: float = 12
    right: float = 12
    bottom: float = 28
    left: float = 40


@dataclass(frozen=True, slots=True)
class Scene:
    """The shapes of a chart, from back to front.

    height: the height of the plot in pixels. file_width: the width of the plot in files, in pixels.
    css_class: a CSS class of the chart on pages.
    """

    shapes: tuple[Shape, ...]
    height: float
    file_width: float
    margins: Margins = field(default_factory=Margins)
    css_class: str = ""
