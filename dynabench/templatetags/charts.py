"""Template tags and filters for charts: small ones in tables and tiles, and whole figures."""

from typing import Any

from django import template
from django.utils.safestring import SafeString

from core.charts import Position, draw_sparkline
from core.figures.figure import Figure
from core.figures.names import shorten_name
from core.figures.rows import AxisRow, RowAxis, draw_row
from core.figures.steps import draw_part_bar

register = template.Library()
register.filter("sparkline", draw_sparkline)
register.filter("shorten_name", shorten_name)
WHISKER_HEIGHT, BAR_HEIGHT = 20, 3


@register.filter(name="whisker")
def draw_whisker(cell: Any, scale: RowAxis | Position) -> SafeString:
    """Draw a value with its interval on an axis, to show beside the numbers.

    cell: has `value`, `low` and `high`, and `least` and `most` if it is a range. Return "" if there
    is neither a value nor a range.
    """
    least, most = (getattr(cell, end, None) for end in ("least", "most"))
    if cell.value is None and least is None:
        return SafeString()
    # A pair is the scale of a small table, which has no ticks.
    axis = scale if isinstance(scale, RowAxis) else RowAxis(*scale, ticks=())
    row = AxisRow("", cell.value, cell.low, cell.high, least, most)
    return draw_row(row, axis, WHISKER_HEIGHT)


@register.filter(name="part_bar")
def draw_thin_bar(share: float) -> SafeString:
    """Draw a thin bar of `share` percent of its width, to show below a number."""
    return draw_part_bar("held bar", share, BAR_HEIGHT)


@register.inclusion_tag("components/figure.html", name="figure")
def draw_figure(figure: Figure, files: str = "", query: str = "") -> dict[str, Any]:
    """Draw a chart.

    files: the beginning of the URLs of its files, or "" without files. query: the end of these
    URLs, for example the weights of a board.
    """
    return {"figure": figure, **build_file_links(figure.name, figure.title, files, query)}


@register.inclusion_tag("components/figure_files.html", name="figure_files")
def link_figure_files(name: str, title: str, files: str, query: str = "") -> dict[str, str]:
    """Link to the files of a chart that the page itself draws, such as a table."""
    return build_file_links(name, title, files, query)


def build_file_links(name: str, title: str, files: str, query: str) -> dict[str, str]:
    """Return the URLs of a chart's files; empty ones if there are no files."""
    # Examples of the style guide have no address.
    if not files:
        return {"title": title, "svg_url": "", "png_url": ""}
    return {
        "title": title,
        "svg_url": f"{files}{name}.svg{query}",
        "png_url": f"{files}{name}.png{query}",
    }
