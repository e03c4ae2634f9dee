"""The charts of rounds: people against models, and the catch rate. It loads numpy."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date

from django.utils.dateformat import format as date_words
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from core.charts import Point
from core.figures.figure import Figure, index_figures
from core.figures.plots import (
    Bracket,
    PlotLine,
    build_line_legend,
    build_line_scene,
    build_share_table,
    compute_share_axis_top,
    find_last_index,
)
from evaluation.templatetags.model_words import metric as in_words
from leaderboard.board.cells import Cell
from leaderboard.board.findings import MeasuredName
from leaderboard.rounds.findings import (
    describe_best_models,
    describe_catch_rate,
    describe_gap,
    describe_model_beside_people,
)
from leaderboard.rounds.matrix import ModelLine, RoundColumn, Rounds, subtract_cells

CHART_MODELS = 3
"""The most models in the chart with people, which has marks for four lines."""
MIN_EXAMPLES = 20
"""A share of fewer examples is drawn hollow."""


def build_round_figures(rounds: Rounds, main: str, day: date) -> Mapping[str, Figure]:
    """Return the charts of the page by name; none with fewer than two rounds.

    main: the metric of the models. day: when the numbers were counted.
    """
    if len(rounds.columns) < 2:
        return {}
    return index_figures([_build_people_figure(rounds, main, day), _build_rate_figure(rounds, day)])


def build_model_figure(rounds: Rounds, line: ModelLine, main: str, day: date) -> Figure | None:
    """Return a figure of one model's results and people's by round.

    None with fewer than two rounds, or if the model has no result.
    """
    cells = [round_cell.cell for round_cell in line.cells]
    # A line with only people's scores would be mistaken for the model's.
    last_index = _find_last_index(cells)
    if last_index is None or len(rounds.columns) < 2:
        return None
    people = [column.people for column in rounds.columns]
    column = rounds.columns[last_index]
    gap = subtract_cells(column.people, cells[last_index])
    title = describe_model_beside_people(cells[last_index], gap, column.number)
    model_line = PlotLine(line.model.name, _build_points(rounds.columns, cells), "chosen")
    lines = list(_iter_people_line(rounds.columns, people)) + [model_line]
    return _build_line_figure("by-round", title, rounds, lines, main, day)


def _build_people_figure(rounds: Rounds, main: str, day: date) -> Figure | None:
    """Return a figure of people and the first models by round.

    Its title states the gap on the newest round that has one. None if there is nothing to draw.
    """
    people = [column.people for column in rounds.columns]
    shown_lines = _choose_lines(rounds)
    lines = list(_iter_people_line(rounds.columns, people))
    best = _find_best_name(rounds)
    for line in shown_lines:
        cells = [round_cell.cell for round_cell in line.cells]
        role = "chosen" if line.model.name == best else "other"
        lines.append(PlotLine(line.model.name, _build_points(rounds.columns, cells), role))
    # A model without results on rounds would only be in the legend.
    lines = [line for line in lines if any(point.value is not None for point in line.points)]
    if not lines:
        return None
    column = _find_gap_column(rounds)
    bracket = None
    if column:
        title = describe_gap(column.gap, column.number, column.best)
        # The bracket is at the last point, so only that round's gap may be drawn there.
        if rounds.columns.index(column) == find_last_index(lines):
            bracket = _build_bracket(column)
    else:
        title = describe_best_models(*_find_newest_results(rounds))
    return _build_line_figure("people-and-models", title, rounds, lines, main, day, bracket)


def _build_line_figure(
    name: str,
    title: str,
    rounds: Rounds,
    lines: Sequence[PlotLine],
    main: str,
    day: date,
    bracket: Bracket | None = None,
) -> Figure:
    values = {
        "metric": in_words(main),
        "examples": _count_examples(rounds),
        "day": _format_day(day),
    }
    subtitle = _("%(metric)s by round with 95%% intervals, %(examples)s, %(day)s") % values
    return Figure(
        name=name,
        title=title,
        subtitle=subtitle,
        scene=build_line_scene(lines, top=1, bracket=bracket),
        table=build_share_table(lines),
        legend=build_line_legend(lines),
        has_end_labels=True,
    )


def _build_rate_figure(rounds: Rounds, day: date) -> Figure | None:
    """Return a figure of the catch rate by round, with each round's number of examples.

    None if no round has a catch rate.
    """
    points = []
    for column in rounds.columns:
        label = _("Round %(number)d") % {"number": column.number}
        if column.vmer_n:
            label = _("R%(number)d, n %(n)d") % {"number": column.number, "n": column.vmer_n}
        points.append(_build_point(label, column.vmer, is_thin=column.is_thin))
    last = _find_last_index([column.vmer for column in rounds.columns])
    if last is None:
        return None
    column = rounds.columns[last]
    # The round that it builds on, which need not be the previous one.
    rate_before = None
    for other in rounds.columns:
        if other.number == column.previous_number:
            rate_before = other.vmer.value
    title = describe_catch_rate(
        column.step.progress,
        column.number,
        column.vmer.value or 0,
        column.previous_number,
        rate_before,
    )
    lines = [PlotLine(_("Catch rate"), points, "chosen", has_label=False, is_connected=False)]
    scene = build_line_scene(lines, top=compute_share_axis_top(points))
    subtitle = _("Catches as a share of all tries (vMER), 95%% intervals, %(day)s")
    return Figure(
        name="catch-rate",
        title=title,
        subtitle=subtitle % {"day": _format_day(day)},
        scene=scene,
        table=build_share_table(lines),
    )


def _choose_lines(rounds: Rounds) -> list[ModelLine]:
    """Return the first models; if necessary, the newest round's best model replaces the last."""
    # The title may name a model that is not among the first.
    lines = list(rounds.lines[:CHART_MODELS])
    best = _find_best_name(rounds)
    for line in rounds.lines[CHART_MODELS:]:
        if line.model.name == best:
            lines[-1] = line
    return lines


def _find_best_name(rounds: Rounds) -> str:
    column = _find_gap_column(rounds)
    if column:
        return column.best
    results, _round = _find_newest_results(rounds)
    return max(results, key=lambda result: result.value).name if results else ""


def _find_gap_column(rounds: Rounds) -> RoundColumn | None:
    """Return the newest round on which people can be compared with a model."""
    # The newest comparison is the one that matters.
    for column in reversed(rounds.columns):
        if column.gap.value is not None:
            return column
    return None


def _find_newest_results(rounds: Rounds) -> tuple[list[MeasuredName], int]:
    """Return all results on the newest round that has any, and the round; ([], 0) if none has."""
    for column_index in reversed(range(len(rounds.columns))):
        results = []
        for line in rounds.lines:
            cell = line.cells[column_index].cell
            if cell.value is not None:
                results.append(MeasuredName(line.model.name, cell.value, cell.low, cell.high))
        if results:
            return results, rounds.columns[column_index].number
    return [], 0


def _build_bracket(column: RoundColumn) -> Bracket:
    gap, people = column.gap, column.people
    # The gap is people minus the model, so it connects the two.
    high, low = people.value or 0, (people.value or 0) - (gap.value or 0)
    values = {
        "points": f"{gap.value or 0:.0f}",
        "low": f"{gap.low or 0:.0f}",
        "high": f"{gap.high or 0:.0f}",
    }
    text = _("%(points)s points (%(low)s to %(high)s)") % values
    return Bracket(max(high, low) / 100, min(high, low) / 100, text)


def _iter_people_line(columns: Sequence[RoundColumn], cells: Sequence[Cell]) -> Iterator[PlotLine]:
    if any(cell.value is not None for cell in cells):
        yield PlotLine(_("People"), _build_points(columns, cells), "people")


def _build_points(columns: Sequence[RoundColumn], cells: Sequence[Cell]) -> list[Point]:
    points = []
    for column, cell in zip(columns, cells, strict=True):
        label = _("Round %(number)d") % {"number": column.number}
        is_thin = column.set is not None and column.set.size < MIN_EXAMPLES
        points.append(_build_point(label, cell, is_thin=is_thin))
    return points


def _build_point(label: str, cell: Cell, *, is_thin: bool) -> Point:
    value, low, high = cell.iterate_shares()
    return Point(label, value, low, high, is_thin)


def _find_last_index(cells: Sequence[Cell]) -> int | None:
    for column_index in reversed(range(len(cells))):
        if cells[column_index].value is not None:
            return column_index
    return None


def _count_examples(rounds: Rounds) -> str:
    """Return the number of examples in all test sets, in words."""
    # Rounds without a set have no examples here.
    n = sum(column.set.size for column in rounds.columns if column.set)
    return ngettext("n = %(n)d example", "n = %(n)d examples", n) % {"n": n}


def _format_day(day: date) -> str:
    return date_words(day, "j M Y")
