"""What the leaderboard's page shows of a ranked board: columns, lines, a plot and a trend.

It loads numpy (see `leaderboard.board.matrix`).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from django.core.paginator import Page, Paginator
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
from evaluation.judges.custom_metrics.selectors import Column as Custom
from evaluation.judges.llm_judges.selectors import MetricJudge
from evaluation.models import EvaluationRun
from evaluation.runs.selectors import counting
from evaluation.submissions.results import SetResults, results_by_set
from evaluation.templatetags.model_words import metric as in_words
from leaderboard.board.cells import BoardScore, Cell, ScoreColumn
from leaderboard.board.cells import MetricColumn as Measured
from leaderboard.board.columns import ASIDE, COSTS
from leaderboard.board.exports import digits_of
from leaderboard.board.matrix import Matrix, score_matrix
from leaderboard.board.opening import opening_of
from leaderboard.board.presets import presets
from leaderboard.board.query import BoardRequest, sliders
from leaderboard.board.ranked import Ranked, RankedModel, describe_moves, rank_board
from leaderboard.board.scales import rule_of
from leaderboard.board.tables import anchors_of, cell_of
from leaderboard.scoring.formula import formula, priced_formula
from leaderboard.scoring.pareto import front
from leaderboard.scoring.ranks import least_examples
from leaderboard.scoring.weights import METRIC, SET, Weighting
from tasks.config.schema import FURTHER, LLM_JUDGE
from tasks.models import Task

UNITS = {
    "throughput": gettext_noop("examples/s"),
    "latency_p95": gettext_noop("seconds"),
    "memory": "GiB",
    "memory_mean": "GiB",
    "robustness_drop": gettext_noop("points"),
    "fairness_gap": gettext_noop("points"),
}
"""Of metrics that are no percentages."""
HEAVIEST = 3
"""Metrics that small screens show at once."""
ROWS = 50
"""On a page."""
IN_PARTS = 10
"""Models whose scores are drawn in parts."""
IN_A_LINE = 4
"""Models in the trend; as many lines as a chart has marks for."""
FIRST = 5
"""Models that a task's page shows."""
DRAWN = 100
"""Places in the plot that are not on the frontier, at most."""
LEAST_DRAWN = 3
"""Models that make a plot."""
LEAST_SPAN = 0.25
"""From the lightest to the darkest cell of a column, as a share of its greatest value."""


@dataclass(frozen=True)
class BoardColumn:
    """A metric's column. sort: the query that sorts by it; order: of aria-sort, or empty.

    scale: from the least to the greatest value of all models.
    """

    name: str
    title: str
    unit: str
    is_less_better: bool
    is_light: bool  # left out on small screens until asked for
    sort: str
    order: str
    scale: Place
    judge: MetricJudge | None  # of a language model as judge: whose agreement stands beside it
    custom: Custom | None  # of the owners' own: which version it is
    ranks: bool  # whether models may be ordered by it

    def shade(self, cell: Cell) -> int | None:
        """Return how dark a cell is: the best value is darkest, and close values look alike."""
        if cell.value is None or not self.ranks:
            return None
        low, high = self.scale
        span = max(high - low, LEAST_SPAN * high)
        if self.is_less_better:
            return heat(1 - along(cell.value, (low, low + span)) / 100)
        return heat(along(cell.value, (high - span, high)) / 100)


@dataclass(frozen=True)
class BoardLine:
    """A row with its texts in the order of the columns; empty: not run. open: the query for it."""

    row: RankedModel
    marks: list[str]
    score: str
    interval: str
    cells: list[
        tuple[BoardColumn, int | None, str, str, list[str]]
    ]  # shade, text, interval, more of it
    open: str
    is_open: bool


def page_values(matrix: Matrix, asked: BoardRequest, was: Weighting | None) -> dict[str, Any]:
    """Return what the template shows.

    was: the weights under which the reader last saw the board; None for another page.
    """
    board, sort = rank_board(matrix, asked.weighting, asked.mode), asked.options.get("sort", "")
    rows = sort_rows(board, sort, matrix.less_is_better)
    page = Paginator(rows, ROWS).get_page(asked.options.get("page"))
    found = board_columns(matrix, asked, board)
    opened = asked.options.get("open", "")
    return {
        "matrix": matrix,
        "usual_least": least_examples(),
        "asked": asked,
        "ranked": board,
        "effect": _effect(matrix, board, asked, was),
        "page": page,
        "columns": found,
        "scale": _reach(board.rows[0].scores) if board.rows else None,
        "width": len(found) + 3,
        "lines": [_line(matrix, row, found, asked) for row in page.object_list],
        "results": opened_results(matrix, opened) if opened else [],
        "opened": {str(model.id): model.name for model in matrix.models}.get(opened, ""),
        "sort": sort,
        "model_order": {"model": "ascending", "-model": "descending"}.get(sort, ""),
        "links": _links(asked, page),
        "presets": list(presets(asked, matrix.main)),
        "metric_sliders": (metrics := sliders(METRIC, asked.weighting.metrics)),
        "set_sliders": (sets := sliders(SET, asked.weighting.sets)),
        "sliders": metrics + sets,
        "formulas": _formulas(matrix, asked, board),
        "parts": draw_parts([*page.object_list]),
        "formula": _formula(matrix, asked, board),
        "plane": draw_plane(board, matrix, asked),
        "trend": draw_trend(board, matrix),
    }


def _formula(matrix: Matrix, asked: BoardRequest, board: Ranked) -> str:
    """Describe how the scores are computed, with the anchors or the exchange rates."""
    weights, main = asked.weighting.metrics, matrix.main
    if board.anchors:
        return formula(weights, main, anchors_of(matrix, board), say=_, words=in_words)
    budgets = rule_of(matrix, weights).budgets
    return priced_formula(weights, main, board.rates.values, budgets, say=_, words=in_words)


def _effect(matrix: Matrix, board: Ranked, asked: BoardRequest, was: Weighting | None) -> str:
    """Describe what the weights changed since the reader saw the board, or since it opened."""
    if (was or asked.start) == asked.weighting:
        return ""
    sentences = " ".join(describe_moves(rank_board(matrix, was or asked.start, asked.mode), board))
    return (
        sentences
        if was
        else _("Compared with the weights it opens with: %(moves)s") % {"moves": sentences}
    )


def _links(asked: BoardRequest, page: Page[RankedModel]) -> dict[str, str]:
    """Return the queries of the page's other links."""
    options = asked.options
    return {
        "rank": asked.link(sort=""),
        "model": asked.link(sort="-model" if options.get("sort") == "model" else "model"),
        "previous": asked.link(page=str(page.number - 1)) if page.has_previous() else "",
        "next": asked.link(page=str(page.number + 1)) if page.has_next() else "",
        "all": asked.link(all="" if options.get("all") else "1"),
        "mine": asked.link(mine="" if options.get("mine") else "1"),
        "fork": asked.link(mode="", mine="", sort="", all="", x="", y=""),
        **{name: asked.link(mine="", format=name) for name in ("csv", "json", "latex")},
    }


def _formulas(matrix: Matrix, asked: BoardRequest, board: Ranked) -> list[tuple[str, str]]:
    """Return the queries of the board by its other formulas, with the names of these."""
    usual = matrix.modes[0]
    return [
        (asked.link(mode="" if mode == usual else mode), mode)
        for mode in matrix.modes
        if mode != board.mode
    ]


def draw_parts(rows: Sequence[RankedModel]) -> Mapping[str, Any] | None:
    """Draw what each metric adds to the first known scores; None when none is anchored."""
    whole = (row for row in rows if row.parts and len(row.parts) == len(row.points))
    first = [*islice(whole, IN_PARTS)]
    if not first:
        return None
    names = [*first[0].parts]
    chart = stacked_bars(
        {f"{row.rank} {row.model.name}": [row.parts[name] for name in names] for row in first},
        [in_words(name) for name in names],
        title=_("What each metric adds to the score"),
        whole=100,
        shown="{:.1f}".format,
    )
    return {"chart": chart, "shown": len(first)}


def _reach(column: Measured | ScoreColumn) -> Place:
    """Return the least and the greatest number of all models, intervals included."""
    return reach(chain.from_iterable(column))


def board_columns(matrix: Matrix, asked: BoardRequest, board: Ranked) -> list[BoardColumn]:
    """Return the columns in the order of the configuration, without mere details of others."""
    weights = asked.weighting.metrics
    heaviest = sorted(weights, key=lambda name: -weights[name])[:HEAVIEST]
    return [
        BoardColumn(
            name,
            *head,
            name not in heaviest and not asked.options.get("all"),
            *_sorting(asked, name, is_less_better=name in matrix.less_is_better),
            _reach(board.rows[0].columns[name]) if board.rows else (0, 1),
            matrix.judge if name == LLM_JUDGE else None,
            matrix.customs.get(name),
            name in matrix.weighable,
        )
        for name, head in zip(
            matrix.metrics, column_heads(matrix.metrics, matrix.less_is_better), strict=True
        )
        if name not in ASIDE
    ]


def _more(row: RankedModel, name: str) -> list[str]:
    """Describe what else is known of a metric: for robustness the drop and the consistency."""
    known = {one: row.metrics[one] for one in FURTHER.get(name, ()) if one in row.columns}
    return [
        f"{in_words(one)} {cell_texts(one, cell)[0]} {_unit(one)}"
        for one, cell in known.items()
        if cell.value is not None
    ]


def _sorting(asked: BoardRequest, name: str, *, is_less_better: bool) -> tuple[str, str]:
    """Return the query that sorts by a column, and how the board is sorted by it now.

    The first click sorts the best first, the second the worst first.
    """
    now = asked.options.get("sort", "")
    if now.removeprefix("-") != name:
        return asked.link(sort=name), ""
    is_ascending = now.startswith("-") != is_less_better
    other = name if now.startswith("-") else f"-{name}"
    return asked.link(sort=other), "ascending" if is_ascending else "descending"


def sort_rows(ranked: Ranked, sort: str, less: Collection[str]) -> list[RankedModel]:
    """Sort the rows by rank, or by a metric or name, the best first; `-` reverses that.

    Rows without the value come last. An unknown sort is ignored.
    """
    name = sort.removeprefix("-")
    sign = -1 if sort.startswith("-") else 1
    rows = list(ranked.rows)
    if name == "model":
        return sorted(rows, key=lambda row: row.model.name.casefold(), reverse=sign < 0)
    if name not in ranked.weighting.metrics:
        return rows
    better = 1 if name in less else -1

    def key(row: RankedModel) -> tuple[bool, float]:
        value = row.metrics[name].value
        return value is None, sign * better * (value or 0.0)

    return sorted(rows, key=key)


def _line(
    matrix: Matrix, row: RankedModel, shown: Sequence[BoardColumn], asked: BoardRequest
) -> BoardLine:
    """Return a row in words."""
    numbers = matrix.numbers
    marks = {
        _("In the loop"): bool(row.in_the_loop),
        _("Inputs changed"): numbers.outdated[row.place].any(),
        _("With warnings"): numbers.warned[row.place].any(),
        _("Not published"): not row.model.is_published,
    }
    opened = str(row.model.id)
    return BoardLine(
        row,
        [mark for mark, holds in marks.items() if holds],
        *cell_texts("dynascore", row.dynascore),
        [
            (column, column.shade(cell), *cell_texts(column.name, cell), _more(row, column.name))
            for column in shown
            for cell in [row.metrics[column.name]]
        ],
        asked.link(open=opened, page=asked.options.get("page", "")),
        asked.options.get("open") == opened,
    )


def column_heads(names: Sequence[str], less: Collection[str]) -> list[tuple[str, str, bool]]:
    """Return the title and unit of each metric, and whether less of it is better."""
    return [(in_words(name), _unit(name), name in less) for name in names]


def first_models(task: Task) -> dict[str, Any]:
    """Return the first models of the public board by the owner's weights, with score and interval.

    Models that were not run are left out. provisional: the sets behind the scores that are still
    being judged.
    """
    matrix = score_matrix(task)
    rows = [row for row in rank_board(matrix, opening_of(task, matrix)).rows if row.rank]
    first = [(row, *cell_texts("dynascore", row.dynascore)) for row in rows[:FIRST]]
    return {"top": first, "provisional": matrix.provisional}


def cell_texts(name: str, cell: Cell | BoardScore) -> tuple[str, str]:
    """Return a number (or a score's range) and its interval as people read them; "" for none."""
    if isinstance(cell, BoardScore) and cell.is_range:
        value = _range(name, cell.least, cell.most)
        return value, _range(name, cell.low, cell.high) or _("too few examples")
    if cell.value is None:
        return "", ""
    if cell.low is None or cell.high is None:
        few = "" if name in COSTS or name in ASIDE else _("too few examples")
        return _text(name, cell.value), few
    return _text(name, cell.value), _range(name, cell.low, cell.high)


def _range(name: str, low: float | None, high: float | None) -> str:
    """Return a range in words; "" when one end is missing."""
    if low is None or high is None:
        return ""
    return _("%(low)s to %(high)s") % {"low": _text(name, low), "high": _text(name, high)}


def _text(name: str, value: float) -> str:
    return f"{value:,.{digits_of(name, value)}f}".replace("-", "−")


def opened_results(matrix: Matrix, opened: str) -> list[SetResults]:
    """Return what was measured on the board's sets for the model with that id. Two queries."""
    found = [pk for model in matrix.models if str(model.id) == opened for pk in model.files]
    versions = [one.version_id for one in matrix.sets]
    runs = counting(EvaluationRun.objects.filter(submission__in=found, version__in=versions))
    runs = runs.select_related("version__evaluation_set__task", "version__dataset")
    shown = runs.defer("log", "version__dataset__numbers")
    return results_by_set(shown, matrix.main, exact=False)


def draw_plane(ranked: Ranked, matrix: Matrix, asked: BoardRequest) -> Mapping[str, Any]:
    """Plot two metrics against each other; return the plot, its table and the chosen metrics."""
    usual = {"x": "throughput", "y": matrix.main}
    chosen = {axis: asked.options.get(axis, "") for axis in usual}
    x, y = (chosen[axis] if chosen[axis] in matrix.weighable else usual[axis] for axis in usual)
    both = [
        (row, a, b)
        for row in ranked.rows
        if (a := row.columns[x].values[row.place]) is not None
        and (b := row.columns[y].values[row.place]) is not None
    ]
    best = front(
        {str(row.place): {x: a, y: b} for row, a, b in both},
        {name: -1 if name in matrix.less_is_better else 1 for name in (x, y)},
    )
    places = [(row, a, b, str(row.place) in best) for row, a, b in both]
    kept = [place for n, place in enumerate(places) if n < DRAWN or place[-1]]
    axes = (_axis(x), _axis(y))
    title = _("%(y)s against %(x)s") % {"x": axes[0], "y": axes[1]}
    dots = [
        Dot(row.model.name, a, b, reverse("evaluation:model", args=[row.model.id]), is_best)
        for row, a, b, is_best in kept
    ]
    return {
        "x": x,
        "y": y,
        "usual": usual,
        "axes": axes,
        "left_out": len(places) - len(kept),
        "plot": scatter(dots, title=title, axes=axes) if len(dots) >= LEAST_DRAWN else "",
        "places": [(row, _text(x, a), _text(y, b), is_best) for row, a, b, is_best in kept],
    }


def _unit(name: str) -> str:
    return _(UNITS[name]) if name in UNITS else "%"


def _axis(name: str) -> str:
    return f"{in_words(name)} ({_unit(name)})"


def draw_trend(board: Ranked, matrix: Matrix) -> Mapping[str, Any] | None:
    """Draw the first models' main metric over the rounds; None with fewer than two rounds."""
    rounds = [(n, one) for n, one in enumerate(matrix.sets) if one.round is not None]
    rounds.sort(key=lambda pair: (pair[1].round, pair[1].name))
    if len(rounds) < 2:
        return None
    names = [one.name for _, one in rounds]
    found = [
        (row, [cell_of(matrix, row.place, n, matrix.main) for n, _ in rounds])
        for row in board.rows[:IN_A_LINE]
    ]
    return {
        "shown": len(found),
        "chart": line_chart(
            {
                f"{number}. {row.model.name}": [
                    Point(name, *(None if each is None else each / 100 for each in cell))
                    for name, cell in zip(names, cells, strict=True)
                ]
                for number, (row, cells) in enumerate(found, start=1)
            },
            title=_("%(metric)s by round") % {"metric": in_words(matrix.main)},
        ),
    }
