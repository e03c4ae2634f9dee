"""The parts of a chart: shapes with positions in the plot, and roles instead of colours.

Positions are in percent of the plot, from the left and from the top, so that pages can draw them at
any width. Texts and marks have sizes in pixels. `core.figures.drawing` draws any scene, on a page
or in a file.
"""

import unicodedata
from dataclasses import dataclass, field, replace

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
    target, or "". dx: by how many pixels it is moved to the right. mirrored_shape: the shape in a
    mirrored scene, or "" if it is the same.
    """

    role: str
    position: Position
    shape: str = DOT
    title: str = ""
    url: str = ""
    dx: float = 0
    mirrored_shape: str = ""


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


RIGHT_TO_LEFT, END_OF_ISOLATE = "\u2067", "\u2069"
"""The invisible characters around a text that is written from right to left."""
MIRRORED_ANCHORS = {"start": "end", "middle": "middle", "end": "start"}


def mirror_scene(scene: Scene) -> Scene:
    """Return the scene as readers of a right-to-left language expect it: axes begin at the right.

    Texts with letters of such a language are marked as written from right to left.
    """
    old = scene.margins
    margins = replace(old, left=old.right, right=old.left)
    shapes = tuple(_mirror_shape(shape) for shape in scene.shapes)
    return replace(scene, shapes=shapes, margins=margins)


def _mirror_shape(shape: Shape) -> Shape:
    match shape:
        case Segment():
            start, end = _mirror_position(shape.start), _mirror_position(shape.end)
            return replace(shape, start=start, end=end, dx=-shape.dx)
        case Polyline():
            return replace(shape, positions=tuple(map(_mirror_position, shape.positions)))
        case Box():
            # A box is placed by its left edge, which was its right one.
            x, y = shape.position
            return replace(shape, position=_mirror_position((x + shape.width, y)))
        case Mark():
            path = shape.mirrored_shape or shape.shape
            position = _mirror_position(shape.position)
            return replace(shape, position=position, dx=-shape.dx, shape=path)
        case Label():
            position, anchor = _mirror_position(shape.position), MIRRORED_ANCHORS[shape.anchor]
            text = isolate_text(shape.text)
            return replace(shape, position=position, dx=-shape.dx, anchor=anchor, text=text)


def _mirror_position(position: Position) -> Position:
    x, y = position
    # Rounded, because 100 − 28.6 has more digits than a drawing needs.
    return round(100 - x, 6), y


def isolate_text(text: str) -> str:
    """Mark a text with letters that are written from right to left; return any other unchanged.

    SVG takes every text for one from left to right. A number at its beginning, or its full stop,
    would stand at the wrong end.
    """
    if not any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in text):
        return text
    return text if text.startswith(RIGHT_TO_LEFT) else f"{RIGHT_TO_LEFT}{text}{END_OF_ISOLATE}"
