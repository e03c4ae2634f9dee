"""The values of the leaderboard's page: columns, lines, a plot and a trend.

It loads numpy (see `leaderboard.board.matrix`).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from core.charts import compute_scale_percent, draw_stacked_bars
from core.figures.rows import RowAxis, draw_axis, draw_row
from core.numbers import format_decimal, format_short_number
from core.web.lists import get_numbered_page
from evaluation.judges.custom_metrics.selectors import CustomMetricColumn as Custom
from evaluation.judges.llm_judges.selectors import MetricJudge
from evaluation.models import EvaluationRun
from evaluation.runs.selectors import filter_counting_runs
from evaluation.submissions.results import SetResults, group_results_by_set
from evaluation.templatetags.model_words import metric as in_words
from leaderboard.board.cells import Cell
from leaderboard.board.columns import DETAIL_METRICS
from leaderboard.board.editions import describe_today
from leaderboard.board.figures import (
    PlaneRow,
    build_plane_figure,
    build_ranking_title,
    build_score_axis,
    build_score_row,
    build_trend_figure,
    format_cell,
)
from leaderboard.board.matrix import Matrix
from leaderboard.board.presets import iter_presets
from leaderboard.board.query import BoardRequest, build_sliders
from leaderboard.board.ranked import RankedBoard, RankedModel, describe_moves, rank_board
from leaderboard.board.scales import build_rule
from leaderboard.board.tables import describe_anchors
from leaderboard.ranking.formula import describe_formula, describe_priced_formula
from leaderboard.ranking.pareto import find_pareto_front
from leaderboard.ranking.ranks import compute_min_examples
from leaderboard.ranking.weights import METRIC_PREFIX, SET_PREFIX, Weighting
from tasks.config.schema import DETAIL_COLUMNS, LLM_JUDGE

UNITS = {
    "throughput": gettext_noop("examples/s"),
    "latency_p95": gettext_noop("seconds"),
    "memory": "GiB",
    "memory_mean": "GiB",
    "robustness_drop": gettext_noop("points"),
    "fairness_gap": gettext_noop("points"),
}
"""Units of metrics that are not percentages."""
MAX_ROOMY_COLUMNS = 4
"""The most metrics that a table shows in columns of full width."""
MAX_HEAVY_COLUMNS = 3
"""The number of metrics that small screens show at first."""
PAGE_ROWS = 25
"""Rows per page."""
MAX_PART_BARS = 10
"""The most models whose scores are drawn in parts."""
TIE_POSITIONS = {
    (False, False): "",
    (False, True): "begin",
    (True, True): "middle",
    (True, False): "end",
}
"""A line's place in a run of shared ranks, by whether the lines before and after are in it."""
MAX_DOTS = 100
"""The number of first models in the plot; of the others, only those on the frontier are shown."""
MIN_DOTS = 3
"""The fewest models for a plot."""


@dataclass(frozen=True)
class BoardColumn:
    """A metric's column. sort: the query string that sorts by it. order: `aria-sort`, or empty.

    greatest: the greatest value of all models, of which bars show a share.
    """

    name: str
    title: str
    unit: str
    is_less_better: bool
    is_light: bool  # hidden on small screens until requested
    sort: str
    order: str
    greatest: float
    judge: MetricJudge | None  # a language model as judge, whose agreement is shown with it
    custom: Custom | None  # the owners' own metric, whose version is shown with it
    can_order: bool  # whether models may be ordered by it
    is_measured: bool  # whether a model of the board has a value

    @property
    def is_shown(self) -> bool:
        """Return whether the table shows the column.

        A column without values is shown only if its header names a judge or an owners' metric.
        """
        return self.is_measured or self.judge is not None or self.custom is not None

    def compute_bar_percent(self, cell: Cell) -> float | None:
        """Return the length of a cell's bar, in percent of the longest; None without a bar."""
        if cell.value is None or not self.can_order or self.greatest <= 0:
            return None
        return compute_scale_percent(cell.value, (0, self.greatest))


class LineCell(NamedTuple):
    """A metric of a row as the page shows it. text: empty if nothing was measured."""

    column: BoardColumn
    share: float | None  # the length of its bar, in percent
    text: str
    interval: str
    details: list[str]  # further facts about the metric


@dataclass(frozen=True)
class BoardLine:
    """A row with its texts in the order of the columns. open: the query string that expands it."""

    row: RankedModel
    rank: str
    marks: list[str]
    score: str
    interval: str
    plot: SafeString
    cells: list[LineCell]
    open: str
    is_open: bool
    tie: str = ""  # its position among models that share a rank: begin, middle, end


def build_page_values(
    matrix: Matrix, board_request: BoardRequest, previous_weighting: Weighting | None
) -> dict[str, Any]:
    """Return the template's values.

    previous_weighting: the weights with which the reader last saw the board; None if they come from
    another page.
    """
    options = board_request.options
    board, sort = (
        rank_board(matrix, board_request.weighting, board_request.mode),
        options.get("sort", ""),
    )
    rows = sort_rows(board, sort, matrix.less_is_better)
    page = get_numbered_page(
        rows,
        options.get("page", ""),
        lambda number: board_request.link(page=number),
        size=PAGE_ROWS,
    )
    columns = build_board_columns(matrix, board_request, board)
    opened_id = options.get("open", "")
    axis = build_score_axis(board)
    # In another order, models of one rank are not adjacent.
    is_by_rank = not sort
    lines = []
    for row in page:
        line = _build_line(matrix, row, columns, board_request, axis)
        lines.append(line)
    if is_by_rank:
        lines = mark_ties(lines)
    metric_sliders = build_sliders(METRIC_PREFIX, board_request.weighting.metrics)
    set_sliders = build_sliders(SET_PREFIX, board_request.weighting.sets)
    return {
        "matrix": matrix,
        "usual_least": compute_min_examples(),
        "asked": board_request,
        "ranked": board,
        "effect": _describe_effect(matrix, board, board_request, previous_weighting),
        "page": page,
        "columns": columns,
        "axis": draw_axis(axis),
        "finding": build_ranking_title(board),
        "files": reverse("leaderboard:board-chart", args=[matrix.task, "x", "svg"]).removesuffix(
            "x.svg"
        ),
        "file_query": board_request.link(mine="", open="", page=""),
        "look": _choose_table_look(columns),
        "shown_columns": [column for column in columns if column.is_shown],
        "unmeasured": [column.title for column in columns if not column.is_shown],
        "width": sum(column.is_shown for column in columns) + 3,
        "lines": lines,
        "results": read_opened_results(matrix, opened_id) if opened_id else [],
        "opened": _find_name(matrix, opened_id),
        "opened_line": _find_opened_line(matrix, board, columns, board_request, axis),
        "sort": sort,
        "model_order": {"model": "ascending", "-model": "descending"}.get(sort, ""),
        "links": _build_links(board_request),
        "presets": list(iter_presets(board_request, matrix.main)),
        "metric_sliders": metric_sliders,
        "set_sliders": set_sliders,
        "sliders": metric_sliders + set_sliders,
        "formulas": _list_formulas(matrix, board_request, board),
        "parts": draw_part_bars(page.rows),
        "formula": _describe_formula(matrix, board_request, board),
        "plane": draw_plane(board, matrix, board_request),
        "trend": build_trend_figure(board, matrix, describe_today()),
    }


def _choose_table_look(columns: Sequence[BoardColumn]) -> str:
    """Return the table's CSS classes; if there are many columns, they are narrower."""
    shown_count = sum(column.is_shown for column in columns)
    return "stack board many" if shown_count > MAX_ROOMY_COLUMNS else "stack board"


def _find_name(matrix: Matrix, model_id: str) -> str:
    """Return the name of the model with this id; "" if the board has none."""
    for model in matrix.models:
        if str(model.id) == model_id:
            return model.name
    return ""


def _describe_formula(matrix: Matrix, board_request: BoardRequest, board: RankedBoard) -> str:
    """Describe how the scores are computed, with the anchors or the exchange rates."""
    weights, main_metric = board_request.weighting.metrics, matrix.main
    if board.anchors:
        return describe_formula(
            weights,
            main_metric,
            describe_anchors(matrix, board),
            translate=_,
            name_metric=in_words,
            format_number=format_short_number,
        )
    budgets = build_rule(matrix, weights).budgets
    return describe_priced_formula(
        weights,
        main_metric,
        board.rates.values,
        budgets,
        translate=_,
        name_metric=in_words,
        format_number=format_short_number,
    )


def _describe_effect(
    matrix: Matrix, board: RankedBoard, board_request: BoardRequest, seen_weights: Weighting | None
) -> str:
    """Describe the changes of rank since the reader last saw the board.

    On a first visit, describe the changes from the board with the opening weights. Returns "" if
    the weights are the same.
    """
    previous_weighting = seen_weights or board_request.start
    if previous_weighting == board_request.weighting:
        return ""
    moves = describe_moves(rank_board(matrix, previous_weighting, board_request.mode), board)
    sentences = " ".join(moves)
    if seen_weights:
        return sentences
    return _("Compared with the default weights: %(moves)s") % {"moves": sentences}


def _build_links(board_request: BoardRequest) -> dict[str, str]:
    """Return the query strings of the page's other links, by name."""
    options, link = board_request.options, board_request.link
    is_by_model = options.get("sort") == "model"
    links = {
        "rank": link(sort=""),
        "model": link(sort="-model" if is_by_model else "model"),
        # Each click turns these two on or off.
        "all": link(all="" if options.get("all") else "1"),
        "mine": link(mine="" if options.get("mine") else "1"),
        "fork": link(mode="", mine="", sort="", all="", x="", y=""),
    }
    # Files never contain unpublished models.
    for name in ("csv", "json", "latex"):
        links[name] = link(mine="", format=name)
    links["every_eval_ever"] = link(mine="", format="every-eval-ever")
    return links


def _list_formulas(
    matrix: Matrix, board_request: BoardRequest, board: RankedBoard
) -> list[tuple[str, str]]:
    """Return the query string and the name of each formula except the current one."""
    usual_mode = matrix.modes[0]
    links: list[tuple[str, str]] = []
    for mode in matrix.modes:
        if mode == board.mode:
            continue
        if mode == usual_mode:  # it is left out, so that URLs stay short
            links.append((board_request.link(mode=""), mode))
        else:
            links.append((board_request.link(mode=mode), mode))
    return links


def draw_part_bars(rows: Sequence[RankedModel]) -> Mapping[str, Any] | None:
    """Draw the points that each metric adds, for the first models with known scores.

    Returns the chart and the number of models in it; None if no score is anchored.
    """
    bars: dict[str, list[float]] = {}
    names: list[str] = []
    for row in rows:
        # If a score is a range, some of its parts are unknown.
        if not row.points_by_metric or len(row.points_by_metric) < len(row.points):
            continue
        names = names or list(row.points_by_metric)
        bars[f"{row.rank} {row.model.name}"] = [row.points_by_metric[name] for name in names]
        if len(bars) == MAX_PART_BARS:
            break
    if not bars:
        return None
    chart = draw_stacked_bars(
        bars,
        [in_words(name) for name in names],
        title=_("Contribution of each metric to the score"),
        full_value=100,
        format_value=format_decimal,
    )
    return {"chart": chart, "shown": len(bars)}


def _is_measured(board: RankedBoard, name: str) -> bool:
    """Return whether a model of the board has a value of the metric."""
    if not board.rows:
        return False
    return any(value is not None for value in board.rows[0].columns[name].values)


def _find_greatest_value(board: RankedBoard, name: str) -> float:
    """Return the greatest value of a metric; 0 without values."""
    if not board.rows:
        return 0
    # All rows have the same columns, so any row will do.
    values = board.rows[0].columns[name].values
    return max((value for value in values if value is not None), default=0)


def build_board_columns(
    matrix: Matrix, board_request: BoardRequest, board: RankedBoard
) -> list[BoardColumn]:
    """Return the metrics' columns in the order of the configuration.

    Leaves out columns that only detail another metric.
    """
    weights = board_request.weighting.metrics
    heaviest_metrics = sorted(weights, key=lambda name: -weights[name])[:MAX_HEAVY_COLUMNS]
    shows_all = bool(board_request.options.get("all"))
    columns = []
    for name in matrix.metrics:
        if name in DETAIL_METRICS:
            continue
        is_less_better = name in matrix.less_is_better
        sort, order = _build_sorting(board_request, name, is_less_better=is_less_better)
        column = BoardColumn(
            name=name,
            title=in_words(name),
            unit=_find_unit(name),
            is_less_better=is_less_better,
            is_light=name not in heaviest_metrics and not shows_all,
            sort=sort,
            order=order,
            greatest=_find_greatest_value(board, name),
            judge=matrix.judge if name == LLM_JUDGE else None,
            custom=matrix.customs.get(name),
            can_order=name in matrix.weighable_metrics,
            is_measured=_is_measured(board, name),
        )
        columns.append(column)
    return columns


def _describe_details(row: RankedModel, name: str) -> list[str]:
    """Describe further results of a metric, such as the drop and the consistency for robustness."""
    details = []
    for detail_name in DETAIL_COLUMNS.get(name, ()):
        if detail_name in row.columns:
            cell = row.metrics[detail_name]
            if cell.value is not None:
                value, _interval = format_cell(detail_name, cell)
                details.append(f"{in_words(detail_name)} {value} {_find_unit(detail_name)}")
    return details


def _build_sorting(
    board_request: BoardRequest, name: str, *, is_less_better: bool
) -> tuple[str, str]:
    """Return the query string that sorts by a column, and the column's current `aria-sort`.

    The first click puts the best first, the second the worst.
    """
    current = board_request.options.get("sort", "")
    if current.removeprefix("-") != name:
        return board_request.link(sort=name), ""
    is_reversed = current.startswith("-")
    # For metrics of which less is better, the best come first in ascending order.
    is_ascending = is_reversed != is_less_better
    other = name if is_reversed else f"-{name}"
    return board_request.link(sort=other), "ascending" if is_ascending else "descending"


def sort_rows(board: RankedBoard, sort: str, less_is_better: Collection[str]) -> list[RankedModel]:
    """Sort the rows by rank, metric or name, the best first; a `-` prefix reverses the order.

    less_is_better: the metrics for which lower is better. Rows without the value come last. An
    unknown `sort` is ignored.
    """
    name, is_reversed = sort.removeprefix("-"), sort.startswith("-")
    rows = list(board.rows)
    if name == "model":
        return sorted(rows, key=lambda row: row.model.name.casefold(), reverse=is_reversed)
    if name not in board.weighting.metrics:
        return rows
    sign = 1 if name in less_is_better else -1
    if is_reversed:
        sign = -sign

    def compute_sort_key(row: RankedModel) -> tuple[bool, float]:
        value = row.metrics[name].value
        return value is None, sign * (value or 0.0)

    return sorted(rows, key=compute_sort_key)


def mark_ties(lines: Sequence[BoardLine]) -> list[BoardLine]:
    """Return the lines with `tie` set: their place in a run of models that share a rank."""
    marked_lines = []
    for number, line in enumerate(lines):
        rank = line.row.rank
        # A shared rank ends with a sign, and a page may begin or end within such a group.
        is_shared = rank.endswith("=")
        has_before = is_shared and number > 0 and lines[number - 1].row.rank == rank
        has_after = is_shared and number + 1 < len(lines) and lines[number + 1].row.rank == rank
        marked_lines.append(replace(line, tie=TIE_POSITIONS[has_before, has_after]))
    return marked_lines


def _find_opened_line(
    matrix: Matrix,
    board: RankedBoard,
    columns: Sequence[BoardColumn],
    board_request: BoardRequest,
    axis: RowAxis,
) -> BoardLine | None:
    """Return the line whose details are open, on any page of the table; None if none is open."""
    opened_id = board_request.options.get("open", "")
    for row in board.rows:
        if opened_id and str(row.model.id) == opened_id:
            return _build_line(matrix, row, columns, board_request, axis)
    return None


def _build_line(
    matrix: Matrix,
    row: RankedModel,
    columns: Sequence[BoardColumn],
    board_request: BoardRequest,
    axis: RowAxis,
) -> BoardLine:
    """Return a row as the page shows it."""
    numbers, model_id = matrix.numbers, str(row.model.id)
    marks = {
        _("Written against this model"): bool(row.in_the_loop),
        _("Inputs changed"): numbers.outdated[row.model_index].any(),
        _("With warnings"): numbers.warned[row.model_index].any(),
        _("Not published"): not row.model.is_published,
    }
    cells = []
    for column in columns:
        cell = row.metrics[column.name]
        text, interval = format_cell(column.name, cell)
        details = _describe_details(row, column.name)
        cells.append(LineCell(column, column.compute_bar_percent(cell), text, interval, details))
    score, score_interval = format_cell("dynascore", row.dynascore)
    return BoardLine(
        row=row,
        rank=row.open_rank,
        marks=[mark for mark, applies in marks.items() if applies],
        score=score,
        interval=score_interval,
        plot=draw_row(build_score_row(row), axis),
        cells=cells,
        open=board_request.link(open=model_id, page=board_request.options.get("page", "")),
        is_open=board_request.options.get("open") == model_id,
    )


def list_column_heads(
    names: Sequence[str], less_is_better: Collection[str]
) -> list[tuple[str, str, bool]]:
    """Return the title and unit of each metric, and whether lower values are better."""
    return [(in_words(name), _find_unit(name), name in less_is_better) for name in names]


def read_opened_results(matrix: Matrix, model_id: str) -> list[SetResults]:
    """Return the results of the model with this id on the board's sets. Two queries."""
    files: list[Any] = []
    for model in matrix.models:
        if str(model.id) == model_id:
            files += model.files
    versions = [each.version_id for each in matrix.sets]
    runs = filter_counting_runs(
        EvaluationRun.objects.filter(submission__in=files, version__in=versions)
    )
    runs = runs.select_related("version__evaluation_set__task", "version__dataset")
    # Logs, measurements and a dataset's numbers are large, and none is shown.
    lean_runs = runs.defer("log", "measurements", "version__dataset__numbers")
    return group_results_by_set(lean_runs, matrix.main, is_exact=False)


def draw_plane(
    board: RankedBoard, matrix: Matrix, board_request: BoardRequest
) -> Mapping[str, Any]:
    """Plot two metrics against each other; return the figure and the chosen metrics.

    The figure is None with fewer than MIN_DOTS models.
    """
    usual_axes = {"x": _find_usual_axis(board, matrix), "y": matrix.main}
    x, y = (
        _choose_axis(matrix, board_request.options.get(axis, ""), usual_axes[axis])
        for axis in usual_axes
    )
    positions = _find_plane_rows(board, matrix, x, y)
    # The whole frontier is drawn, and only the first of the other models.
    shown_places = [index for n, index in enumerate(positions) if n < MAX_DOTS or index.is_best]
    figure = None
    if len(shown_places) >= MIN_DOTS:
        axes = (_build_axis(x), _build_axis(y))
        is_less_better = (x in matrix.less_is_better, y in matrix.less_is_better)
        figure = build_plane_figure(shown_places, axes, (x, y), is_less_better, describe_today())
    return {
        "x": x,
        "y": y,
        "usual": usual_axes,
        "left_out": len(positions) - len(shown_places),
        "figure": figure,
    }


def _find_usual_axis(board: RankedBoard, matrix: Matrix) -> str:
    """Return the first metric other than the main one that enough models have.

    Throughput comes first, and is also returned if there is none.
    """
    other_metrics = [name for name in matrix.weighable_metrics if name != matrix.main]
    for name in sorted(other_metrics, key=lambda name: name != "throughput"):
        if board.rows:
            values = board.rows[0].columns[name].values
            if sum(value is not None for value in values) >= MIN_DOTS:
                return name
    return "throughput"


def _choose_axis(matrix: Matrix, name: str, usual_metric: str) -> str:
    return name if name in matrix.weighable_metrics else usual_metric


def _find_plane_rows(board: RankedBoard, matrix: Matrix, x: str, y: str) -> list[PlaneRow]:
    """Return the points of the models that have both metrics, in the order of the board."""
    measured_rows = []
    for row in board.rows:
        x_value, y_value = (
            row.columns[x].values[row.model_index],
            row.columns[y].values[row.model_index],
        )
        if x_value is not None and y_value is not None:
            measured_rows.append((row, x_value, y_value))
    frontier = find_pareto_front(
        {str(row.model_index): {x: x_value, y: y_value} for row, x_value, y_value in measured_rows},
        {name: -1 if name in matrix.less_is_better else 1 for name in (x, y)},
    )
    positions = []
    for row, _x_value, _y_value in measured_rows:
        address = reverse("evaluation:model", args=[row.model.id])
        is_best = str(row.model_index) in frontier
        positions.append(PlaneRow(row.model.name, address, row.metrics[x], row.metrics[y], is_best))
    return positions


def _find_unit(name: str) -> str:
    return _(UNITS[name]) if name in UNITS else "%"


def _build_axis(name: str) -> str:
    return f"{in_words(name)} ({_find_unit(name)})"
