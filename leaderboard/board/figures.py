"""The charts of a board: the ranking as rows on one axis, two metrics, the rounds.

It loads numpy (see `leaderboard.board.matrix`).
"""

from collections.abc import Sequence
from typing import NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from core.charts import Point, compute_axis_top
from core.figures.figure import Figure, FigureTable
from core.figures.planes import PlaneDot, build_plane_scene
from core.figures.plots import PlotLine, build_line_legend, build_line_scene, build_share_table
from core.figures.rows import PERCENT_AXIS, AxisRow, RowAxis, build_rows_scene
from core.numbers import format_decimal, format_short_number
from evaluation.templatetags.model_words import metric as in_words
from leaderboard.board.cells import BoardScore, Cell
from leaderboard.board.columns import COST_METRICS, DETAIL_METRICS
from leaderboard.board.exports import choose_digits
from leaderboard.board.findings import (
    MeasuredName,
    RankedName,
    describe_front,
    describe_ranking,
    describe_trend,
    is_clearly_better,
)
from leaderboard.board.matrix import Matrix
from leaderboard.board.ranked import RankedBoard, RankedModel
from leaderboard.board.tables import read_cell

MAX_LINE_MODELS = 4
"""The most models in the trend: as many as a chart has marks for."""


class PlaneRow(NamedTuple):
    """A model in the plane of two metrics. is_best: no other model beats it in both."""

    name: str
    url: str
    x: Cell
    y: Cell
    is_best: bool


def format_cell(name: str, cell: Cell | BoardScore) -> tuple[str, str]:
    """Return the formatted number (or range of a score) and its interval; "" if missing."""
    if isinstance(cell, BoardScore) and cell.is_range:
        value = _format_range(name, cell.least, cell.most)
        return value, _format_range(name, cell.low, cell.high) or _("too few examples")
    if cell.value is None:
        return "", ""
    if cell.low is None or cell.high is None:
        if (
            name in COST_METRICS or name in DETAIL_METRICS
        ):  # they have no interval, whatever the number of examples
            return format_value(name, cell.value), ""
        return format_value(name, cell.value), _("too few examples")
    return format_value(name, cell.value), _format_range(name, cell.low, cell.high)


def _format_range(name: str, low: float | None, high: float | None) -> str:
    """Return a formatted range; "" if one end is missing."""
    if low is None or high is None:
        return ""
    # Translators: a range of numbers, such as ranks 2 to 4
    return _("%(low)s to %(high)s") % {
        "low": format_value(name, low),
        "high": format_value(name, high),
    }


def format_value(name: str, value: float) -> str:
    """Format a metric's value with as many digits as it needs."""
    return format_decimal(value, choose_digits(name, value), is_grouped=True)


def build_score_axis(board: RankedBoard) -> RowAxis:
    """Return the axis of a board's scores: 0 to 100 if anchored, else as wide as the scores."""
    if board.mode == "anchored":
        return PERCENT_AXIS
    ends = [0.0]
    if board.rows:
        for column in board.rows[0].scores:
            ends += [end for end in column if end is not None]
    # Scores by exchange rates have no fixed ends, and some are below 0.
    top = compute_axis_top({"": [Point("", max(ends))]})
    low = -compute_axis_top({"": [Point("", -min(ends))]}) if min(ends) < 0 else 0.0
    ticks = []
    for share in (0, 0.25, 0.5, 0.75, 1):
        value = low + share * (top - low)
        ticks.append((value, format_short_number(value, 4)))
    return RowAxis(low, top, ticks, zero=0 if low else None)


def build_score_row(row: RankedModel) -> AxisRow:
    """Return a model's score as a row of the chart."""
    score, interval = format_cell("dynascore", row.dynascore)
    # Translators: a number and its interval
    text = _("%(value)s (%(interval)s)") % {"value": score, "interval": interval}
    return AxisRow(
        name=row.model.name,
        value=row.dynascore.value,
        low=row.dynascore.low,
        high=row.dynascore.high,
        range_low=row.dynascore.least,
        range_high=row.dynascore.most,
        text=text if interval else score,
        rank=row.open_rank,
        # Only a shared rank has a sign after its number.
        group=row.rank_number or 0 if row.rank.endswith("=") else 0,
    )


def build_ranking_title(board: RankedBoard) -> str:
    """Return a sentence that says who leads the board, for use as a chart's title."""
    # Models without a score are not in the sentence.
    models = []
    for row in board.rows:
        if row.first is not None and row.last is not None:
            score, _interval = format_cell("dynascore", row.dynascore)
            models.append(RankedName(row.model.name, row.first, row.last, score))
    return describe_ranking(models)


def build_ranking_figure(board: RankedBoard, matrix: Matrix, day: str) -> Figure | None:
    """Return the ranking as a figure for download; None without scores. day: the date as text."""
    # Without a run, there is nothing to draw.
    rows = [build_score_row(row) for row in board.rows if row.rank]
    if not rows:
        return None
    n = sum(board_set.size for board_set in matrix.sets if board_set.counts)
    models = ngettext("%(n)d model", "%(n)d models", len(rows)) % {"n": len(rows)}
    examples = ngettext("n = %(n)d example", "n = %(n)d examples", n) % {"n": n}
    values = {"models": models, "examples": examples, "day": day}
    return Figure(
        name="ranking",
        title=build_ranking_title(board),
        subtitle=_("Dynascore with 95%% intervals, %(models)s, %(examples)s, %(day)s") % values,
        scene=build_rows_scene(rows, build_score_axis(board)),
    )


def build_plane_figure(
    plane_rows: Sequence[PlaneRow],
    axes: tuple[str, str],
    metrics: tuple[str, str],
    less_is_better: tuple[bool, bool],
    day: str,
) -> Figure:
    """Return a figure in which two metrics are plotted against each other.

    axes: the metrics' titles with units. metrics: their names. day: the day of the numbers, as
    text.
    """
    dots, rows = [], []
    for plane_row in plane_rows:
        dots.append(_build_dot(plane_row, axes, metrics))
        values = [format_value(metrics[0], plane_row.x.value or 0)]
        values.append(format_value(metrics[1], plane_row.y.value or 0))
        values.append(_("yes") if plane_row.is_best else _("no"))
        rows.append((plane_row.name, values))
    # The file has no column headings that say it.
    words = []
    for axis, is_less_better in zip(axes, less_is_better, strict=True):
        words.append(_add_direction(axis, is_less_better))
    names = [place.name for place in plane_rows if place.is_best]
    model_count_text = ngettext("%(n)d model", "%(n)d models", len(plane_rows)) % {
        "n": len(plane_rows)
    }
    return Figure(
        name="two-metrics",
        title=describe_front(
            names,
            in_words(metrics[0]),
            in_words(metrics[1]),
            is_clear=_is_clearly_best(plane_rows, less_is_better),
        ),
        # Translators: subtitle of a chart: two metrics, number of models, date
        subtitle=_("%(y)s against %(x)s, %(models)s, %(day)s")
        % {"x": axes[0], "y": axes[1], "models": model_count_text, "day": day},
        scene=build_plane_scene(dots, (words[0], words[1]), less_is_better),
        table=FigureTable([*axes, _("Best trade-off")], rows),
        note=_("The line joins the models that no other model beats in both metrics."),
    )


def _is_clearly_best(plane_rows: Sequence[PlaneRow], less_is_better: tuple[bool, bool]) -> bool:
    """Return whether one model is clearly better than all others in both metrics."""
    best_rows = [row for row in plane_rows if row.is_best]
    if len(best_rows) != 1:
        return False
    for row in plane_rows:
        if row is best_rows[0]:
            continue
        for axis, is_less_better in zip(("x", "y"), less_is_better, strict=True):
            best = MeasuredName(best_rows[0].name, *getattr(best_rows[0], axis))
            other = MeasuredName(row.name, *getattr(row, axis))
            if not is_clearly_better(best, other, is_less_better=is_less_better):
                return False
    return True


def _add_direction(axis: str, is_less_better: bool) -> str:
    if is_less_better:
        return _("%(axis)s, lower is better") % {"axis": axis}
    return _("%(axis)s, higher is better") % {"axis": axis}


def _build_dot(plane_row: PlaneRow, axes: tuple[str, str], metrics: tuple[str, str]) -> PlaneDot:
    x, y = plane_row.x, plane_row.y
    texts = format_value(metrics[0], x.value or 0), format_value(metrics[1], y.value or 0)
    return PlaneDot(
        name=plane_row.name,
        x=x.value or 0,
        y=y.value or 0,
        url=plane_row.url,
        x_ends=_find_ends(x),
        y_ends=_find_ends(y),
        is_best=plane_row.is_best,
        title=f"{plane_row.name}: {axes[0]} {texts[0]}, {axes[1]} {texts[1]}",
    )


def _find_ends(cell: Cell) -> tuple[float, float] | None:
    if cell.low is None or cell.high is None:
        return None
    return cell.low, cell.high


def build_trend_figure(board: RankedBoard, matrix: Matrix, day: str) -> Figure | None:
    """Return a figure of the first models' main metric over the rounds.

    None with fewer than two rounds or without models. day: the date as text.
    """
    rounds = [(place, each) for place, each in enumerate(matrix.sets) if each.round is not None]
    # A round may have two sets, which differ by name.
    rounds.sort(key=lambda pair: (pair[1].round, pair[1].name))
    if len(rounds) < 2:
        return None
    lines = []
    for number, row in enumerate(board.rows[:MAX_LINE_MODELS]):
        points = []
        for place, each in rounds:
            value, low, high = read_cell(
                matrix, row.model_index, place, matrix.main
            ).iterate_shares()
            points.append(Point(each.name, value, low, high))
        # The title is about the first model.
        role = "other" if number else "chosen"
        lines.append(PlotLine(row.model.name, points, role))
    if not lines:
        return None
    metric = in_words(matrix.main)
    newest_results = []
    for line in lines:
        point = line.points[-1]
        if point.value is not None:
            ends = (None if end is None else 100 * end for end in (point.low, point.high))
            newest_results.append(MeasuredName(line.name, 100 * point.value, *ends))
    title = describe_trend(newest_results, metric, rounds[-1][1].name)
    # All sets of the chart together.
    n = sum(each.size for _place, each in rounds)
    examples = ngettext("n = %(n)d example", "n = %(n)d examples", n) % {"n": n}
    values = {"metric": metric, "examples": examples, "day": day}
    return Figure(
        name="trend",
        title=title,
        subtitle=_("%(metric)s by round with 95%% intervals, %(examples)s, %(day)s") % values,
        scene=build_line_scene(lines, top=1),
        table=build_share_table(lines),
        legend=build_line_legend(lines),
        has_end_labels=True,
    )
