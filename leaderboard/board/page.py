"""What the leaderboard's page shows of a ranked board: columns, lines, a plot and a trend.

It loads numpy (see `leaderboard.board.matrix`).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from core.charts import (
    Dot,
    Place,
    Point,
    along,
    heat,
    line_chart,
    reach,
    scatter,
    stacked_bars,
)
from core.web.lists import numbered_page
from evaluation.judges.custom_metrics.selectors import Column as Custom
from evaluation.judges.llm_judges.selectors import MetricJudge
from evaluation.models import EvaluationRun
from evaluation.runs.selectors import filter_counting_runs
from evaluation.submissions.results import SetResults, group_results_by_set
from evaluation.templatetags.model_words import metric as in_words
from leaderboard.board.cells import BoardScore, Cell, MetricColumn, ScoreColumn
from leaderboard.board.columns import COSTS, DETAIL_METRICS
from leaderboard.board.exports import choose_digits
from leaderboard.board.matrix import Matrix, score_matrix
from leaderboard.board.opening import choose_opening_weights
from leaderboard.board.presets import iter_presets
from leaderboard.board.query import BoardRequest, build_sliders
from leaderboard.board.ranked import RankedBoard, RankedModel, describe_moves, rank_board
from leaderboard.board.scales import build_rule
from leaderboard.board.tables import describe_anchors, read_cell
from leaderboard.ranking.formula import describe_formula, describe_priced_formula
from leaderboard.ranking.pareto import find_front
from leaderboard.ranking.ranks import compute_min_examples
from leaderboard.ranking.weights import METRIC, SET, Weighting
from tasks.config.schema import DETAIL_COLUMNS, LLM_JUDGE
from tasks.models import Task

UNITS = {
    "throughput": gettext_noop("examples/s"),
    "latency_p95": gettext_noop("seconds"),
    "memory": "GiB",
    "memory_mean": "GiB",
    "robustness_drop": gettext_noop("points"),
    "fairness_gap": gettext_noop("points"),
}
"""Units of metrics that are not percentages."""
MAX_HEAVY_COLUMNS = 3
"""Metrics that small screens show at first."""
PAGE_ROWS = 50
"""Rows per page."""
MAX_PART_BARS = 10
"""Models whose scores are drawn in parts."""
MAX_LINE_MODELS = 4
"""Models in the trend; as many lines as a chart has marks for."""
FIRST_MODELS = 5
"""Models that a task's page shows."""
MAX_DOTS = 100
"""Places in the plot that are not on the frontier, at most."""
MIN_DOTS = 3
"""Models that make a plot."""
MIN_SPAN = 0.25
"""From the lightest to the darkest cell of a column, as a share of its greatest value."""


@dataclass(frozen=True)
class BoardColumn:
    """A metric's column. sort: the query string that sorts by it. order: `aria-sort`, or empty.

    scale: the least and the greatest value of all models.
    """

    name: str
    title: str
    unit: str
    is_less_better: bool
    is_light: bool  # hidden on small screens until requested
    sort: str
    order: str
    scale: Place
    judge: MetricJudge | None  # a language model as judge, whose agreement is shown with it
    custom: Custom | None  # the owners' own metric, whose version is shown with it
    ranks: bool  # whether models may be ordered by it

    def shade(self, cell: Cell) -> int | None:
        """Return how dark to draw a cell. The best is darkest, and close values look alike."""
        if cell.value is None or not self.ranks:
            return None
        low, high = self.scale
        # Without it, models that nearly tie would be told apart by the strongest shades.
        span = max(high - low, MIN_SPAN * high)
        if self.is_less_better:
            return heat(1 - along(cell.value, (low, low + span)) / 100)
        return heat(along(cell.value, (high - span, high)) / 100)


class LineCell(NamedTuple):
    """A metric of a row as the page shows it. text: empty if nothing was measured."""

    column: BoardColumn
    shade: int | None
    text: str
    interval: str
    details: list[str]  # what else is known of the metric


@dataclass(frozen=True)
class BoardLine:
    """A row with its texts in the order of the columns. open: the query string that expands it."""

    row: RankedModel
    marks: list[str]
    score: str
    interval: str
    cells: list[LineCell]
    open: str
    is_open: bool


def build_page_values(
    matrix: Matrix, board_request: BoardRequest, was: Weighting | None
) -> dict[str, Any]:
    """Return the template's values.

    was: the weights with which the reader last saw the board; None if they come from another page.
    """
    options = board_request.options
    board, sort = (
        rank_board(matrix, board_request.weighting, board_request.mode),
        options.get("sort", ""),
    )
    rows = sort_rows(board, sort, matrix.less_is_better)
    page = numbered_page(
        rows,
        options.get("page", ""),
        lambda number: board_request.link(page=number),
        size=PAGE_ROWS,
    )
    columns = build_board_columns(matrix, board_request, board)
    opened_id = options.get("open", "")
    metric_sliders = build_sliders(METRIC, board_request.weighting.metrics)
    set_sliders = build_sliders(SET, board_request.weighting.sets)
    return {
        "matrix": matrix,
        "usual_least": compute_min_examples(),
        "asked": board_request,
        "ranked": board,
        "effect": _describe_effect(matrix, board, board_request, was),
        "page": page,
        "columns": columns,
        "scale": _find_reach(board.rows[0].scores) if board.rows else None,
        "width": len(columns) + 3,
        "lines": [_build_line(matrix, row, columns, board_request) for row in page],
        "results": read_opened_results(matrix, opened_id) if opened_id else [],
        "opened": _find_name(matrix, opened_id),
        "sort": sort,
        "model_order": {"model": "ascending", "-model": "descending"}.get(sort, ""),
        "links": _build_links(board_request),
        "presets": list(iter_presets(board_request, matrix.main)),
        "metric_sliders": metric_sliders,
        "set_sliders": set_sliders,
        "sliders": metric_sliders + set_sliders,
        "formulas": _list_formulas(matrix, board_request, board),
        "parts": draw_parts(page.rows),
        "formula": _describe_formula(matrix, board_request, board),
        "plane": draw_plane(board, matrix, board_request),
        "trend": draw_trend(board, matrix),
    }


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
            weights, main_metric, describe_anchors(matrix, board), say=_, words=in_words
        )
    budgets = build_rule(matrix, weights).budgets
    return describe_priced_formula(
        weights, main_metric, board.rates.values, budgets, say=_, words=in_words
    )


def _describe_effect(
    matrix: Matrix, board: RankedBoard, board_request: BoardRequest, was: Weighting | None
) -> str:
    """Describe what changed since the reader last saw the board, or from the opening weights."""
    previous_weighting = was or board_request.start
    if previous_weighting == board_request.weighting:
        return ""
    moves = describe_moves(rank_board(matrix, previous_weighting, board_request.mode), board)
    sentences = " ".join(moves)
    if was:
        return sentences
    return _("Compared with the weights it opens with: %(moves)s") % {"moves": sentences}


def _build_links(board_request: BoardRequest) -> dict[str, str]:
    """Return the query strings of the page's other links."""
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
    for name in ("csv", "json", "latex"):
        links[name] = link(mine="", format=name)  # no file has unpublished models
    return links


def _list_formulas(
    matrix: Matrix, board_request: BoardRequest, board: RankedBoard
) -> list[tuple[str, str]]:
    """Return the query string and the name of each other formula of the board."""
    usual_mode = matrix.modes[0]
    links: list[tuple[str, str]] = []
    for mode in matrix.modes:
        if mode == board.mode:
            continue
        if mode == usual_mode:  # it is not named, so that addresses stay short
            links.append((board_request.link(mode=""), mode))
        else:
            links.append((board_request.link(mode=mode), mode))
    return links


def draw_parts(rows: Sequence[RankedModel]) -> Mapping[str, Any] | None:
    """Draw the points of each metric for the first known scores; None if none is anchored."""
    bars: dict[str, list[float]] = {}
    names: list[str] = []
    for row in rows:
        # Of a score that is a range some parts are unknown.
        if not row.parts or len(row.parts) < len(row.points):
            continue
        names = names or list(row.parts)
        bars[f"{row.rank} {row.model.name}"] = [row.parts[name] for name in names]
        if len(bars) == MAX_PART_BARS:
            break
    if not bars:
        return None
    chart = stacked_bars(
        bars,
        [in_words(name) for name in names],
        title=_("What each metric adds to the score"),
        full_value=100,
        format_value="{:.1f}".format,
    )
    return {"chart": chart, "shown": len(bars)}


def _find_reach(column: MetricColumn | ScoreColumn) -> Place:
    """Return the least and the greatest value of all models, intervals included."""
    return reach(chain.from_iterable(column))


def build_board_columns(
    matrix: Matrix, board_request: BoardRequest, board: RankedBoard
) -> list[BoardColumn]:
    """Return the columns in the order of the configuration, without columns of mere details."""
    weights = board_request.weighting.metrics
    heaviest = sorted(weights, key=lambda name: -weights[name])[:MAX_HEAVY_COLUMNS]
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
            is_light=name not in heaviest and not shows_all,
            sort=sort,
            order=order,
            scale=_find_reach(board.rows[0].columns[name]) if board.rows else (0, 1),
            judge=matrix.judge if name == LLM_JUDGE else None,
            custom=matrix.customs.get(name),
            ranks=name in matrix.weighable,
        )
        columns.append(column)
    return columns


def _describe_details(row: RankedModel, name: str) -> list[str]:
    """Describe further results of a metric, such as the drop and the consistency for robustness."""
    details = []
    for further in DETAIL_COLUMNS.get(name, ()):
        if further in row.columns:
            cell = row.metrics[further]
            if cell.value is not None:
                value, _interval = format_cell(further, cell)
                details.append(f"{in_words(further)} {value} {_find_unit(further)}")
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
    # The best first is ascending for metrics of which less is better.
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

    def key(row: RankedModel) -> tuple[bool, float]:
        value = row.metrics[name].value
        return value is None, sign * (value or 0.0)

    return sorted(rows, key=key)


def _build_line(
    matrix: Matrix, row: RankedModel, columns: Sequence[BoardColumn], board_request: BoardRequest
) -> BoardLine:
    """Return a row as the page shows it."""
    numbers, model_id = matrix.numbers, str(row.model.id)
    marks = {
        _("In the loop"): bool(row.in_the_loop),
        _("Inputs changed"): numbers.outdated[row.place].any(),
        _("With warnings"): numbers.warned[row.place].any(),
        _("Not published"): not row.model.is_published,
    }
    cells = []
    for column in columns:
        cell = row.metrics[column.name]
        text, interval = format_cell(column.name, cell)
        details = _describe_details(row, column.name)
        cells.append(LineCell(column, column.shade(cell), text, interval, details))
    score, score_interval = format_cell("dynascore", row.dynascore)
    return BoardLine(
        row=row,
        marks=[mark for mark, applies in marks.items() if applies],
        score=score,
        interval=score_interval,
        cells=cells,
        open=board_request.link(open=model_id, page=board_request.options.get("page", "")),
        is_open=board_request.options.get("open") == model_id,
    )


def list_column_heads(
    names: Sequence[str], less_is_better: Collection[str]
) -> list[tuple[str, str, bool]]:
    """Return the title and unit of each metric, and whether lower values are better."""
    return [(in_words(name), _find_unit(name), name in less_is_better) for name in names]


def rank_first_models(task: Task) -> dict[str, Any]:
    """Return the first models of the public board by the owner's weights, with score and interval.

    Models without results are left out. provisional: the sets behind the scores whose rounds are
    still being judged.
    """
    matrix = score_matrix(task)
    rows = [
        row for row in rank_board(matrix, choose_opening_weights(task, matrix)).rows if row.rank
    ]
    lines = [(row, *format_cell("dynascore", row.dynascore)) for row in rows[:FIRST_MODELS]]
    return {"top": lines, "provisional": matrix.provisional}


def format_cell(name: str, cell: Cell | BoardScore) -> tuple[str, str]:
    """Return the formatted number (or range of a score) and its interval; "" if missing."""
    if isinstance(cell, BoardScore) and cell.is_range:
        value = _format_range(name, cell.least, cell.most)
        return value, _format_range(name, cell.low, cell.high) or _("too few examples")
    if cell.value is None:
        return "", ""
    if cell.low is None or cell.high is None:
        if (
            name in COSTS or name in DETAIL_METRICS
        ):  # they have no interval, however many examples there are
            return _format_value(name, cell.value), ""
        return _format_value(name, cell.value), _("too few examples")
    return _format_value(name, cell.value), _format_range(name, cell.low, cell.high)


def _format_range(name: str, low: float | None, high: float | None) -> str:
    """Return a formatted range; "" if one end is missing."""
    if low is None or high is None:
        return ""
    # Translators: a range of numbers, such as ranks 2 to 4
    return _("%(low)s to %(high)s") % {
        "low": _format_value(name, low),
        "high": _format_value(name, high),
    }


def _format_value(name: str, value: float) -> str:
    return f"{value:,.{choose_digits(name, value)}f}".replace("-", "−")


def read_opened_results(matrix: Matrix, model_id: str) -> list[SetResults]:
    """Return the results on the board's sets of the model with this id. Two queries."""
    files: list[Any] = []
    for model in matrix.models:
        if str(model.id) == model_id:
            files += model.files
    versions = [each.version_id for each in matrix.sets]
    runs = filter_counting_runs(
        EvaluationRun.objects.filter(submission__in=files, version__in=versions)
    )
    runs = runs.select_related("version__evaluation_set__task", "version__dataset")
    # A log may have megabytes, and a dataset's numbers are large; neither is shown.
    lean_runs = runs.defer("log", "version__dataset__numbers")
    return group_results_by_set(lean_runs, matrix.main, exact=False)


class PlanePlace(NamedTuple):
    """A model in the plane of two metrics. is_best: no other model beats it in both."""

    row: RankedModel
    x: float
    y: float
    is_best: bool


def draw_plane(
    board: RankedBoard, matrix: Matrix, board_request: BoardRequest
) -> Mapping[str, Any]:
    """Plot two metrics against each other; return the plot, its table and the chosen metrics."""
    usual_axes = {"x": "throughput", "y": matrix.main}
    x, y = (
        _choose_axis(matrix, board_request.options.get(axis, ""), usual_axes[axis])
        for axis in usual_axes
    )
    places = _find_plane_places(board, matrix, x, y)
    # The frontier is drawn whole, of the others only the first.
    shown_places = [place for n, place in enumerate(places) if n < MAX_DOTS or place.is_best]
    axes = (_build_axis(x), _build_axis(y))
    plot = ""
    if len(shown_places) >= MIN_DOTS:
        # Translators: title of a chart: two measures
        title = _("%(y)s against %(x)s") % {"x": axes[0], "y": axes[1]}
        plot = scatter(_build_dots(shown_places), title=title, axes=axes)
    return {
        "x": x,
        "y": y,
        "usual": usual_axes,
        "axes": axes,
        "left_out": len(places) - len(shown_places),
        "plot": plot,
        "places": [
            (place.row, _format_value(x, place.x), _format_value(y, place.y), place.is_best)
            for place in shown_places
        ],
    }


def _choose_axis(matrix: Matrix, name: str, usual_metric: str) -> str:
    return name if name in matrix.weighable else usual_metric


def _find_plane_places(board: RankedBoard, matrix: Matrix, x: str, y: str) -> list[PlanePlace]:
    """Return the points of the models that have both metrics, in the order of the board."""
    measured_rows = []
    for row in board.rows:
        x_value, y_value = row.columns[x].values[row.place], row.columns[y].values[row.place]
        if x_value is not None and y_value is not None:
            measured_rows.append((row, x_value, y_value))
    frontier = find_front(
        {str(row.place): {x: x_value, y: y_value} for row, x_value, y_value in measured_rows},
        {name: -1 if name in matrix.less_is_better else 1 for name in (x, y)},
    )
    places = []
    for row, x_value, y_value in measured_rows:
        places.append(PlanePlace(row, x_value, y_value, str(row.place) in frontier))
    return places


def _build_dots(places: Iterable[PlanePlace]) -> list[Dot]:
    """Return the points as dots of a plot, each linked to its model."""
    dots = []
    for place in places:
        model = place.row.model
        address = reverse("evaluation:model", args=[model.id])
        dots.append(Dot(model.name, place.x, place.y, address, place.is_best))
    return dots


def _find_unit(name: str) -> str:
    return _(UNITS[name]) if name in UNITS else "%"


def _build_axis(name: str) -> str:
    return f"{in_words(name)} ({_find_unit(name)})"


def draw_trend(board: RankedBoard, matrix: Matrix) -> Mapping[str, Any] | None:
    """Draw the first models' main metric over the rounds; None with fewer than two rounds."""
    rounds = [(place, each) for place, each in enumerate(matrix.sets) if each.round is not None]
    # A round may have two sets, which are told apart by name.
    rounds.sort(key=lambda pair: (pair[1].round, pair[1].name))
    if len(rounds) < 2:
        return None
    lines = {}
    for number, row in enumerate(board.rows[:MAX_LINE_MODELS], start=1):
        points = []
        for place, each in rounds:
            cell = read_cell(matrix, row.place, place, matrix.main)
            points.append(Point(each.name, *cell.shares()))
        lines[f"{number}. {row.model.name}"] = points
    title = _("%(metric)s by round") % {"metric": in_words(matrix.main)}
    return {"shown": len(lines), "chart": line_chart(lines, title=title)}
