"""A table of shares of wins between models. Colours show how far a share is from one half."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from core.numbers import format_percent

PALE_DISTANCE, STRONG_DISTANCE = 0.05, 0.15
"""The distances from one half at which a share gets the pale and the strong colour."""


@dataclass(frozen=True)
class WinCell:
    """A cell with the share of battles that the row's model wins against the column's model.

    share: None if the two never met. url: the link target, or "". link_label: the accessible name
    of the link. is_thin: whether too few battles were counted to colour the share.
    """

    share: float | None
    url: str = ""
    link_label: str = ""
    is_thin: bool = False

    @property
    def text(self) -> str:
        """Return the share in percent, or a dash."""
        return "–" if self.share is None else format_percent(self.share, 0)

    @property
    def css_class(self) -> str:
        """Return the CSS class of the cell."""
        return "" if self.share is None else shade_share(self.share, is_thin=self.is_thin)


def shade_share(share: float, *, is_thin: bool = False) -> str:
    """Return the CSS class for a share of wins, in five steps around one half.

    >>> [shade_share(share) for share in (0, 0.4, 0.52, 0.6, 1)]
    ['lose-2', 'lose-1', '', 'win-1', 'win-2']
    """
    # A colour would claim what a handful of battles cannot show.
    if is_thin:
        return "thin"
    # Even on both sides, because each pair stands in the table twice.
    distance = abs(share - 0.5)
    side = "win" if share > 0.5 else "lose"
    if distance >= STRONG_DISTANCE:
        return f"{side}-2"
    return f"{side}-1" if distance >= PALE_DISTANCE else ""


def draw_wins(
    names: Sequence[str], rows: Sequence[Sequence[WinCell]], *, title: str, corner: str
) -> SafeString:
    """Return the table as HTML.

    names: the models. rows: the cells by row. corner: the text of the top left cell. Columns are
    headed by the number of the model's row.
    """
    # Columns have numbers alone: long names would make cells wide.
    table_rows = []
    for number, (name, cells) in enumerate(zip(names, rows, strict=True), start=1):
        table_rows.append({"number": number, "name": name, "cells": cells})
    values = {"title": title, "corner": corner, "names": names, "rows": table_rows}
    return render_to_string("components/wins.html", values)
