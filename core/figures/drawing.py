"""Draw scenes as SVG: on pages with CSS classes at any width, in files with fixed colours."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

from django.utils.safestring import SafeString
from django.utils.translation import get_language_bidi

from core.figures.scene import (
    Box,
    Label,
    Mark,
    Polyline,
    Position,
    Scene,
    Segment,
    Shape,
    mirror_scene,
)

INK, MUTED, LINE, ACCENT, OTHERS = "#14171C", "#56606D", "#E1E4EA", "#3B4FE4", "#7A8594"
CATCH, REFUTED = "#0A6E64", "#A04E00"
SECOND, THIRD = CATCH, REFUTED

Attributes = Mapping[str, Any]


def _build_line_attributes(colour: str, width: float, dash: str = "") -> Attributes:
    # Without it, browsers fill the area under a line in black.
    attributes = {"stroke": colour, "stroke-width": width, "fill": "none"}
    return {**attributes, "stroke-dasharray": dash} if dash else attributes


def _build_text_attributes(colour: str, weight: int = 400, size: int = 12) -> Attributes:
    return {"fill": colour, "font-weight": weight, "font-size": size}


ROLES: Mapping[str, Attributes] = {
    "grid": _build_line_attributes(LINE, 1),
    "zero": _build_line_attributes(INK, 1),
    "chance": _build_line_attributes(MUTED, 1.5, "2 3"),
    "threshold": _build_line_attributes(MUTED, 1.5, "6 4"),
    "front": _build_line_attributes(ACCENT, 1.5),
    "bracket": _build_line_attributes(INK, 1.5),
    "joint": _build_line_attributes(OTHERS, 2),
    "people line": _build_line_attributes(INK, 2.5),
    "people line thin": _build_line_attributes(INK, 2.5, "5 4"),
    "chosen line": _build_line_attributes(ACCENT, 2.5),
    "chosen line thin": _build_line_attributes(ACCENT, 2.5, "5 4"),
    "second line": _build_line_attributes(SECOND, 2, "6 3"),
    "second line thin": _build_line_attributes(SECOND, 2, "5 4"),
    "third line": _build_line_attributes(THIRD, 2, "2 3"),
    "third line thin": _build_line_attributes(THIRD, 2, "5 4"),
    "other line": _build_line_attributes(OTHERS, 1.5),
    "other line thin": _build_line_attributes(OTHERS, 1.5, "5 4"),
    "people whisker": _build_line_attributes(INK, 2),
    "chosen whisker": _build_line_attributes(ACCENT, 2),
    "second whisker": _build_line_attributes(SECOND, 1.5),
    "third whisker": _build_line_attributes(THIRD, 1.5),
    "other whisker": _build_line_attributes(OTHERS, 1.5),
    "lose whisker": _build_line_attributes(REFUTED, 2),
    "pale whisker": {**_build_line_attributes(OTHERS, 1.5), "stroke-opacity": 0.5},
    "people band": {"fill": INK, "fill-opacity": 0.12},
    "people dot": {"fill": INK},
    "people dot thin": {"fill": "#FFFFFF", "stroke": INK, "stroke-width": 2},
    "chosen dot": {"fill": ACCENT},
    "chosen dot thin": {"fill": "#FFFFFF", "stroke": ACCENT, "stroke-width": 2},
    "second dot": {"fill": SECOND},
    "second dot thin": {"fill": "#FFFFFF", "stroke": SECOND, "stroke-width": 2},
    "third dot": {"fill": THIRD},
    "third dot thin": {"fill": "#FFFFFF", "stroke": THIRD, "stroke-width": 2},
    "other dot": {"fill": OTHERS},
    "other dot thin": {"fill": "#FFFFFF", "stroke": OTHERS, "stroke-width": 2},
    "lose dot": {"fill": REFUTED},
    "chosen range": {"fill": ACCENT},
    "people tick": _build_line_attributes(INK, 2),
    "other tick": _build_line_attributes(OTHERS, 1.5),
    "held bar": {"fill": "#C9CED6"},
    "step bar": {"fill": ACCENT},
    "lose bar": {"fill": REFUTED},
    "empty bar": {"fill": "#FFFFFF", "stroke": OTHERS, "stroke-width": 1},
    "waiting bar": {"fill": "#AAB4F4"},
    "catch bar": {"fill": CATCH},
    "refuted bar": {"stroke": REFUTED, "stroke-width": 1},
    "loss bar": {"stroke": OTHERS, "stroke-width": 1},
    "refuted hatch": _build_line_attributes(REFUTED, 2),
    "loss hatch": _build_line_attributes("#C9CED6", 2),
    "heat-0 bar": {"fill": ACCENT, "fill-opacity": 0.06},
    "heat-1 bar": {"fill": ACCENT, "fill-opacity": 0.2},
    "heat-2 bar": {"fill": ACCENT, "fill-opacity": 0.4},
    "heat-3 bar": {"fill": ACCENT, "fill-opacity": 0.65},
    "heat-4 bar": {"fill": ACCENT},
    "axis text": _build_text_attributes(MUTED),
    "rare text": _build_text_attributes(MUTED),
    "name text": _build_text_attributes(INK),
    "value text": _build_text_attributes(INK),
    "people text": _build_text_attributes(INK, 600),
    "chosen text": _build_text_attributes(ACCENT, 600),
    "second text": _build_text_attributes(SECOND, 600),
    "third text": _build_text_attributes(THIRD, 600),
    "other text": _build_text_attributes(MUTED),
    "bracket text": _build_text_attributes(INK, 600),
}
"""The SVG attributes of each role in files. static/css/charts.css has the same roles for pages."""


def get_file_attributes(role: str) -> dict[str, str]:
    """Return the SVG attributes of a role in a file."""
    # Labels at the ends of lines are apart on pages alone: phones hide them.
    attributes = ROLES[role.removesuffix(" end")]
    return {name: str(value) for name, value in attributes.items()}


@dataclass(frozen=True)
class _PageStyle:
    """The style of a chart on a page: positions in percent, CSS classes."""

    def x(self, share: float) -> str:
        return f"{share:.4g}%"

    def y(self, share: float) -> str:
        return f"{share:.4g}%"

    def width(self, share: float) -> str:
        return f"{share:.4g}%"

    # On a page both are shares of their own side.
    height = width

    def get_attributes(self, role: str) -> dict[str, str]:
        return {"class": role}


@dataclass(frozen=True)
class _FileStyle:
    """The style of a chart in a file: positions in pixels, presentation attributes.

    left, top: the corner of the plot. plot_width, plot_height: its size. All in pixels.
    """

    left: float
    top: float
    plot_width: float
    plot_height: float

    def x(self, share: float) -> str:
        return f"{self.left + self.plot_width * share / 100:.1f}"

    def y(self, share: float) -> str:
        return f"{self.top + self.plot_height * share / 100:.1f}"

    def width(self, share: float) -> str:
        return f"{self.plot_width * share / 100:.1f}"

    def height(self, share: float) -> str:
        return f"{self.plot_height * share / 100:.1f}"

    def get_attributes(self, role: str) -> dict[str, str]:
        return get_file_attributes(role)


Style = _PageStyle | _FileStyle
HATCHED = ("refuted bar", "loss bar")
"""Roles that are filled with stripes, so that readers need not tell their colours apart."""


def arrange_scene(scene: Scene) -> Scene:
    """Return the scene in the reader's direction, on pages and in files."""
    # Whiskers, bars and axes of one page all begin where its lines of text do.
    return mirror_scene(scene) if get_language_bidi() else scene


def draw_on_page(scene: Scene, title: str, description: str = "") -> SafeString:
    """Return the scene as inline SVG that takes the width of its container.

    title: the chart's accessible name. description: its longer description, or "".
    """
    scene = arrange_scene(scene)
    # CSS cannot know it: it depends on the number of rows.
    height = scene.height + scene.margins.top + scene.margins.bottom
    attributes = {
        "class": f"figure {scene.css_class}".strip(),
        "role": "img",
        "height": f"{height:g}",
    }
    # A picture hides the links in it from screen readers.
    if any(getattr(shape, "url", "") for shape in scene.shapes):
        attributes["role"] = "group"
    root = Element("svg", attributes)
    SubElement(root, "title").text = title
    # An empty one would be read out as a pause.
    if description:
        SubElement(root, "desc").text = description
    root.extend(_draw_shapes(scene, _PageStyle()))
    return _write_markup(root)


def draw_decoration(scene: Scene) -> SafeString:
    """Return the scene as inline SVG that screen readers skip, to show beside its numbers."""
    scene = arrange_scene(scene)
    height = scene.height + scene.margins.top + scene.margins.bottom
    attributes = {"class": scene.css_class, "aria-hidden": "true", "height": f"{height:g}"}
    root = Element("svg", attributes)
    root.extend(_draw_shapes(scene, _PageStyle()))
    return _write_markup(root)


def draw_in_file(scene: Scene, left: float, top: float) -> list[Element]:
    """Return the elements of a scene in a file. left, top: the plot's corner in pixels."""
    return list(_draw_shapes(scene, _FileStyle(left, top, scene.file_width, scene.height)))


def _write_markup(root: Element) -> SafeString:
    # The serializer escapes texts and attributes.
    return SafeString(tostring(root, encoding="unicode"))


def _draw_shapes(scene: Scene, style: Style) -> Iterator[Element]:
    # First, because shapes refer to it.
    for role in HATCHED:
        if any(shape.role == role for shape in scene.shapes):
            yield _draw_hatching(scene, role, style)
    for shape in scene.shapes:
        element = _draw_shape(shape, style)
        if shape.role in HATCHED:
            element.set("fill", f"url(#{_name_hatching(scene, shape.role)})")
        title, url = getattr(shape, "title", ""), getattr(shape, "url", "")
        # Made once: it goes into the link or into the shape.
        title_element = Element("title")
        title_element.text = title
        # A file has no pages beside it, so only pages link.
        if url and isinstance(style, _PageStyle):
            link = Element("a", {"href": url})
            link.extend((title_element, element))
            element = link
        elif title:
            # The title says what one points at, also in the file.
            target = element[0] if element.tag == "svg" else element
            target.insert(0, title_element)
        yield element


def _name_hatching(scene: Scene, role: str) -> str:
    # A page may have several charts, and ids are unique on it.
    return f"hatching-{scene.css_class}-{role}".replace(" ", "-")


def _draw_hatching(scene: Scene, role: str, style: Style) -> Element:
    """Return the SVG definition of the striped pattern for a role."""
    definitions = Element("defs")
    pattern = SubElement(
        definitions,
        "pattern",
        {
            "id": _name_hatching(scene, role),
            "width": "5",
            "height": "5",
            "patternUnits": "userSpaceOnUse",
            "patternTransform": "rotate(45)",
        },
    )
    stripe = {"x1": "0", "y1": "0", "x2": "0", "y2": "5"}
    SubElement(pattern, "line", {**style.get_attributes(role.replace("bar", "hatch")), **stripe})
    return definitions


def _draw_shape(shape: Shape, style: Style) -> Element:
    match shape:
        case Segment():
            return _draw_segment(shape, style)
        case Polyline():
            return _draw_polyline(shape, style)
        case Box():
            return _draw_box(shape, style)
        case Mark():
            return _draw_mark(shape, style)
        case Label():
            return _draw_label(shape, style)


def _draw_segment(shape: Segment, style: Style) -> Element:
    (x1, y1), (x2, y2) = shape.start, shape.end
    ends = {"x1": style.x(x1), "y1": style.y(y1), "x2": style.x(x2), "y2": style.y(y2)}
    # Percentages cannot be added to pixels, but may be shifted by them.
    if shape.dx or shape.dy:
        ends["transform"] = f"translate({shape.dx:g} {shape.dy:g})"
    return Element("line", {**style.get_attributes(shape.role), **ends})


def _draw_polyline(shape: Polyline, style: Style) -> Element:
    if isinstance(style, _FileStyle):
        path = _write_path(
            [(float(style.x(x)), float(style.y(y))) for x, y in shape.positions], shape
        )
        return Element("path", {**style.get_attributes(shape.role), "d": path})
    # Path data has no percentages, so the path is stretched and its stroke is not.
    frame = {"width": "100%", "height": "100%", "viewBox": "0 0 100 100"}
    root = Element("svg", {**frame, "preserveAspectRatio": "none"})
    path_attributes = {
        "d": _write_path(shape.positions, shape),
        "vector-effect": "non-scaling-stroke",
    }
    SubElement(root, "path", {**style.get_attributes(shape.role), **path_attributes})
    return root


def _write_path(positions: tuple[Position, ...] | list[Position], shape: Polyline) -> str:
    corners = "L".join(f"{x:.6g} {y:.6g}" for x, y in positions)
    # A path without corners is invalid.
    if not corners:
        return ""
    return f"M{corners}Z" if shape.is_area else f"M{corners}"


def _draw_box(shape: Box, style: Style) -> Element:
    x, y = shape.position
    attributes = {"x": style.x(x), "y": style.y(y), "width": style.width(shape.width)}
    attributes["height"] = style.height(shape.height)
    # Bars of ranges have the same height in rows of any height.
    if shape.height_px:
        attributes["height"] = f"{shape.height_px:g}"
        # The box stands around its place.
        attributes["transform"] = f"translate(0 {-shape.height_px / 2:g})"
    return Element("rect", {**style.get_attributes(shape.role), **attributes})


def _draw_mark(shape: Mark, style: Style) -> Element:
    x, y = shape.position
    if isinstance(style, _FileStyle):
        left = float(style.x(x)) + shape.dx
        attributes = {"transform": f"translate({left:.1f} {style.y(y)})", "d": shape.shape}
        return Element("path", {**style.get_attributes(shape.role), **attributes})
    root = Element("svg", {"x": style.x(x), "y": style.y(y)})
    attributes = {"d": shape.shape}
    # The frame is at a percentage, to which pixels cannot be added.
    if shape.dx:
        attributes["transform"] = f"translate({shape.dx:g} 0)"
    SubElement(root, "path", {**style.get_attributes(shape.role), **attributes})
    return root


def _draw_label(shape: Label, style: Style) -> Element:
    x, y = shape.position
    attributes = {"x": style.x(x), "y": style.y(y), "text-anchor": shape.anchor}
    if shape.dx:
        attributes["dx"] = f"{shape.dx:g}"
    if shape.dy:
        attributes["dy"] = f"{shape.dy:g}"
    element = Element("text", {**style.get_attributes(shape.role), **attributes})
    element.text = shape.text
    return element
