"""A chart with its finding, and its rendering as a file for a paper or a talk."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from textwrap import wrap
from xml.etree.ElementTree import Element, SubElement, tostring

from django.utils.safestring import SafeString
from django.utils.translation import get_language_bidi

from core.figures.drawing import (
    INK,
    MUTED,
    arrange_scene,
    draw_decoration,
    draw_in_file,
    draw_on_page,
    get_file_attributes,
)
from core.figures.scene import Box, Margins, Mark, Scene, isolate_text

PNG_ZOOM = 2
"""Pixels of the PNG per pixel of the drawing, so that it is sharp on slides."""
MAX_PNG_PIXELS = 4_000_000
"""The maximum size of a PNG. Larger ones are scaled down, so that a request stays cheap."""
FONT_FOLDER = Path(__file__).parent / "fonts"
FONT_FILES = ("Inter-Regular.ttf", "Inter-SemiBold.ttf")
LAST_CODE_POINT = 0x052F
"""The last code point of the alphabets that our font has: Latin, Greek and Cyrillic."""
PUNCTUATION = range(0x2000, 0x2213)
EDGE, TITLE_LINE, SUBTITLE_LINE, SOURCE_LINE = 24, 26, 20, 28
"""The margin of a file, and the heights of its lines of text, in pixels."""
LETTER_SHARE = 0.57
"""The average width of a letter as a share of the font size."""
TITLE_SIZE, TEXT_SIZE, SOURCE_SIZE = 20, 13, 11


@dataclass(frozen=True)
class FigureTable:
    """The numbers behind a chart.

    column_titles: the titles of the columns. rows: the name and the cells of each row.
    """

    column_titles: Sequence[str]
    rows: Sequence[tuple[str, Sequence[str]]]


@dataclass(frozen=True)
class LegendItem:
    """A series in a legend, with its mark and its name.

    role: determines the colour. shape: the path of the mark; "" for a part of columns, which has a
    rectangle.
    """

    role: str
    name: str
    shape: str = ""


@dataclass(frozen=True)
class Figure:
    """A chart with its texts.

    name: the chart's name in the URL of its file. title: the finding, in words. subtitle: what was
    measured, on how many examples, on which day. note: how to read the chart. legend: the series to
    explain. has_end_labels: whether lines have labels at their ends; then only phones, which hide
    these labels, show the legend. table: the numbers; None if the page shows them anyway.
    """

    name: str
    title: str
    subtitle: str
    scene: Scene
    table: FigureTable | None = None
    note: str = ""
    legend: Sequence[LegendItem] = ()
    has_end_labels: bool = False

    @property
    def inline_svg(self) -> SafeString:
        """Return the chart as inline SVG for a page."""
        return draw_on_page(self.scene, self.title, self.subtitle)

    @property
    def legend_marks(self) -> list[tuple[SafeString, str]]:
        """Return each legend item as a pair: its mark as inline SVG, and its name."""
        items = []
        for number, item in enumerate(self.legend):
            # Lines are told by their mark, parts of columns by their colour.
            shape = Mark(item.role, (50, 50), item.shape)
            ground = Box(item.role, (0, 0), 100, 100)
            scene = Scene(
                (shape if item.shape else ground,),
                height=12,
                file_width=0,
                margins=Margins(0, 0, 0, 0),
                # Stripes have an id, which is unique on the page.
                css_class=f"sign {self.name}-{number}",
            )
            items.append((draw_decoration(scene), item.name))
        return items


def write_figure_svg(figure: Figure, source: str) -> str:
    """Return the chart as a self-contained SVG file. source: the text of its last line."""
    # From top to bottom: title, subtitle, legend, plot, note, source.
    scene = arrange_scene(figure.scene)
    width = scene.margins.left + scene.file_width + scene.margins.right
    title_lines = _wrap_text(figure.title, width, TITLE_SIZE)
    subtitle_lines = _wrap_text(figure.subtitle, width, TEXT_SIZE)
    note_lines = _wrap_text(figure.note, width, SOURCE_SIZE)
    head_height = EDGE / 2 + TITLE_LINE * len(title_lines) + SUBTITLE_LINE * len(subtitle_lines)
    plot_top = head_height + _measure_legend(figure) + scene.margins.top
    plot_end = plot_top + scene.height + scene.margins.bottom
    height = plot_end + SUBTITLE_LINE * len(note_lines) + SOURCE_LINE
    root = Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "width": f"{width:g}",
            "height": f"{height:g}",
            "viewBox": f"0 0 {width:g} {height:g}",
            "font-family": "Inter, Helvetica, Arial, sans-serif",
            "role": "img",
        },
    )
    SubElement(root, "title").text = figure.title
    SubElement(root, "desc").text = figure.subtitle
    # A chart without a ground is unreadable on a dark slide.
    SubElement(root, "rect", {"width": f"{width:g}", "height": f"{height:g}", "fill": "#FFFFFF"})
    y = EDGE / 2
    y = _add_lines(root, title_lines, y, TITLE_LINE, TITLE_SIZE, INK, "600")
    _add_lines(root, subtitle_lines, y, SUBTITLE_LINE, TEXT_SIZE, MUTED)
    _add_legend(root, figure, head_height)
    root.extend(draw_in_file(scene, scene.margins.left, plot_top))
    y = _add_lines(root, note_lines, plot_end, SUBTITLE_LINE, SOURCE_SIZE, MUTED)
    _add_lines(root, [source], y, SUBTITLE_LINE, SOURCE_SIZE, MUTED)
    return tostring(root, encoding="unicode")


def render_figure_png(svg: str) -> bytes:
    """Return an SVG file as PNG with at most MAX_PNG_PIXELS."""
    # It is needed for files alone, so no page waits until it is loaded.
    import resvg_py

    # Our own files begin with their size, so they need no parser.
    root_tag = svg.split(">", 1)[0]
    width, height = (_read_length(root_tag, name) for name in ("width", "height"))
    # The root, because both sides grow with it.
    zoom = min(PNG_ZOOM, (MAX_PNG_PIXELS / (width * height)) ** 0.5)
    picture = resvg_py.svg_to_bytes(
        svg_string=svg,
        width=int(width * zoom),
        font_files=list(_find_fonts()),
        font_family="Inter",
        sans_serif_family="Inter",
        # The fonts of the machine are read for other alphabets alone: that takes a while.
        skip_system_fonts=_is_covered_by_our_fonts(svg),
    )
    return bytes(picture)


def _read_length(tag: str, name: str) -> float:
    return float(tag.split(f' {name}="', 1)[1].split('"', 1)[0])


@cache
def _find_fonts() -> tuple[str, ...]:
    return tuple(str(FONT_FOLDER / name) for name in FONT_FILES)


def _is_covered_by_our_fonts(text: str) -> bool:
    return all(ord(letter) <= LAST_CODE_POINT or ord(letter) in PUNCTUATION for letter in text)


def _wrap_text(text: str, width: float, size: int) -> list[str]:
    # Measured by the mean letter: a line may be a little shorter than it could.
    letter_count = int((width - 2 * EDGE) / (LETTER_SHARE * size))
    return wrap(text, letter_count)


def _add_lines(
    root: Element,
    lines: Sequence[str],
    top: float,
    line_height: float,
    size: int,
    colour: str,
    weight: str = "400",
) -> float:
    """Add lines of text to a file; return the vertical position below them, in pixels."""
    # The baseline of a line is a quarter of its height above its end.
    y = top
    for line in lines:
        y += line_height
        attributes = {**_place_text(root, EDGE), "y": f"{y - line_height * 0.25:g}"}
        style = {"font-size": f"{size}", "fill": colour, "font-weight": weight}
        SubElement(root, "text", {**attributes, **style}).text = isolate_text(line)
    return y


def _place_text(root: Element, distance: float) -> dict[str, str]:
    """Return the attributes of a text that begins so many pixels from the side of the first words.

    That side is the right one for readers of Arabic.
    """
    if not get_language_bidi():
        return {"x": f"{distance:g}"}
    # Anchored at its end, because programs that draw files know no direction of a line.
    return {"x": f"{float(root.attrib['width']) - distance:g}", "text-anchor": "end"}


def _measure_legend(figure: Figure) -> float:
    return SUBTITLE_LINE + 4 if figure.legend and not figure.has_end_labels else 0


def _add_legend(root: Element, figure: Figure, top: float) -> None:
    """Add the legend to a file, in one line, unless the lines have labels at their ends."""
    if figure.has_end_labels:
        return
    x, y = float(EDGE), top + SUBTITLE_LINE * 0.75
    for item in figure.legend:
        style = get_file_attributes(item.role)
        # Stripes are too fine for a sign, so it has their frame.
        style.setdefault("fill", "#FFFFFF")
        left = float(root.attrib["width"]) - x - 10 if get_language_bidi() else x
        attributes = {"x": f"{left:g}", "y": f"{y - 9:g}", "width": "10", "height": "10"}
        SubElement(root, "rect", {**style, **attributes})
        attributes = {**_place_text(root, x + 16), "y": f"{y:g}"}
        style = {"font-size": "12", "fill": INK}
        SubElement(root, "text", {**attributes, **style}).text = isolate_text(item.name)
        # The next sign begins after the sign, its words and a gap.
        x += 16 + LETTER_SHARE * 12 * len(item.name) + 24


def index_figures(figures: Sequence[Figure | None]) -> Mapping[str, Figure]:
    """Return the charts by name. Leave out None, which stands for a chart that was not drawn."""
    return {figure.name: figure for figure in figures if figure}
