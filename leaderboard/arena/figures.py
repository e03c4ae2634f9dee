"""The charts of an arena: strengths on one axis, and who beats whom."""

from math import ceil, exp

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from core.figures.drawing import draw_decoration
from core.figures.figure import Figure
from core.figures.rows import AXIS_HEIGHT, AxisRow, RowAxis, build_rows_scene, draw_row
from core.figures.scene import Label, Margins, Scene, Shape
from core.figures.wins import WinCell, draw_wins
from core.numbers import format_decimal, format_percent, format_points
from leaderboard.arena.board import ArenaLine, Table
from leaderboard.arena.findings import describe_arena

MAX_STRENGTH = 6
"""The greatest strength on the axis, so that wide intervals do not stretch it."""
MIN_PAIR_BATTLES = 10
"""A share of fewer battles has no colour."""


def compute_chance(strength: float) -> float:
    """Return the probability that a model of this strength beats the average model.

    >>> [round(100 * compute_chance(strength)) for strength in (-2, -1, 0, 1, 2)]
    [12, 27, 50, 73, 88]
    """
    return 1 / (1 + exp(-strength))


def build_strength_axis(lines: list[ArenaLine]) -> RowAxis:
    """Return an axis around 0, the average model, with room for all intervals."""
    # At least one unit on each side, because tiny differences would otherwise look large.
    ends = [1.0]
    for line in lines:
        ends += [abs(end) for end in (line.value, line.low, line.high) if end is not None]
    top = min(MAX_STRENGTH, ceil(max(ends)))
    # At most five labels, which fit on a phone.
    step = 1 if top <= 2 else ceil(top / 2)
    ticks = []
    for value in range(-step * (top // step), top + 1, step):
        ticks.append((float(value), f"{value:+d}".replace("-", "−").replace("+0", "0")))
    return RowAxis(
        -top, top, ticks, zero=0, end_texts=(_("loses more often"), _("wins more often"))
    )


def draw_strength_axis(axis: RowAxis) -> SafeString:
    """Return the axis for the table's head: chances of beating the average, then strengths."""
    shapes: list[Shape] = []
    for value, text in axis.ticks:
        x = axis.compute_position(value)
        chance = format_percent(compute_chance(value), 0)
        shapes.append(Label("axis text", (x, 0), chance, dy=12, anchor="middle"))
        shapes.append(Label("axis text", (x, 100), text, dy=-6, anchor="middle"))
    margins = Margins(0, 0, 0, 0)
    return draw_decoration(Scene(tuple(shapes), 2 * AXIS_HEIGHT, 0, margins, "row-plot axis"))


def draw_strengths(
    lines: list[ArenaLine], axis: RowAxis
) -> list[tuple[ArenaLine, SafeString, str]]:
    """Return each line with its plot and its place in a run of shared ranks.

    The place is "begin", "middle" or "end", or "" if the rank is not shared.
    """
    drawn_lines = []
    for number, line in enumerate(lines):
        rank = line.model["rank"]
        # A group of models that share a rank may begin and end anywhere.
        has_before = number > 0 and lines[number - 1].model["rank"] == rank
        has_after = number + 1 < len(lines) and lines[number + 1].model["rank"] == rank
        tie = ""
        if rank and (has_before or has_after):
            tie = "middle"
            if not has_before:
                tie = "begin"
            elif not has_after:
                tie = "end"
        plot = draw_row(_build_strength_row(line), axis) if line.value is not None else SafeString()
        drawn_lines.append((line, plot, tie))
    return drawn_lines


def build_strength_figure(table: Table, lines: list[ArenaLine], day: str) -> Figure | None:
    """Return the ranking as a figure for download; None without strengths. day: as text."""
    rows = [_build_strength_row(line) for line in lines if line.value is not None]
    if not rows:
        return None
    names = [line.model["name"] for line in lines]
    ranks = [line.model["rank"] for line in lines]
    n = table["battles"]
    battles = ngettext("n = %(n)d comparison", "n = %(n)d comparisons", n) % {"n": n}
    values = {"battles": battles, "voters": table["voters"], "day": day}
    subtitle = _("Strength with 95%% intervals, 0 is the average model, %(battles)s, %(day)s")
    return Figure(
        name="strengths",
        title=describe_arena(names, ranks),
        subtitle=subtitle % values,
        scene=build_rows_scene(rows, build_strength_axis(lines)),
        note=_(
            "A model with a strength of 1 beats the average model in 73%% of "
            "battles. With a strength of 2, it wins 88%%."
        )
        % {},
    )


def _build_strength_row(line: ArenaLine) -> AxisRow:
    text = "" if line.value is None else format_points(line.value, 2)
    if line.low is not None and line.high is not None:
        values = {
            "value": text,
            "low": format_decimal(line.low, 2),
            "high": format_decimal(line.high, 2),
        }
        text = _("%(value)s (%(low)s to %(high)s)") % values
    return AxisRow(
        name=line.model["name"],
        value=line.value,
        low=line.low,
        high=line.high,
        text=text.replace("-", "−"),
        rank=str(line.model["rank"] or ""),
        group=line.model["rank"] or 0,
    )


def draw_arena_wins(table: Table) -> SafeString:
    """Return the table of who beats whom among the first models."""
    # Older snapshots have no counts of pairs.
    counts = table.get("pair_battles") or []
    rows = []
    for row_number, shares in enumerate(table["wins"]):
        cells = []
        for column_number, share in enumerate(shares):
            is_thin = False
            if counts:
                is_thin = counts[row_number][column_number] < MIN_PAIR_BATTLES
            cells.append(WinCell(share, is_thin=is_thin))
        rows.append(cells)
    # Only the first models have shares.
    names = [model["name"] for model in table["models"]][: len(rows)]
    return draw_wins(names, rows, title=_("Wins"), corner=_("Model"))
