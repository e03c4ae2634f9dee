"""A model's place on its board, for its page.

It loads numpy (see `leaderboard.board.matrix`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from statistics import median

from django.utils.translation import gettext as _

from core.charts import Place, reach
from evaluation.judges.custom_metrics.selectors import Column as Custom
from evaluation.judges.llm_judges.selectors import MetricJudge
from evaluation.models import Submission
from evaluation.templatetags.model_words import metric as in_words
from leaderboard.board.cells import Cell
from leaderboard.board.columns import DETAIL_METRICS
from leaderboard.board.matrix import Matrix, score_matrix
from leaderboard.board.opening import choose_opening_weights
from leaderboard.board.page import format_cell, list_column_heads
from leaderboard.board.ranked import RankedModel, rank_board
from leaderboard.board.sets import BoardSet
from leaderboard.rounds.matrix import build_people_line, build_rounds, draw_chart
from tasks.config.schema import LLM_JUDGE
from tasks.permissions import Person
from tasks.selectors import find_opened_rounds
from validation.statistics.cache import all_numbers


@dataclass(frozen=True)
class Metric:
    """A formatted metric of the model, and the formatted median of all models.

    is_better: whether the model beats the median; None if they are equal or one is unknown.
    """

    title: str
    unit: str
    value: str
    interval: str
    median: str
    is_better: bool | None
    judge: MetricJudge | None = None  # shown with its agreement with people
    custom: Custom | None = None  # the owners' own metric, shown with its version


@dataclass(frozen=True)
class Standing:
    """A model's row on its board. ranked: the number of models that have a score."""

    row: RankedModel
    ranked: int
    score: str
    interval: str
    scale: Place
    metrics: list[Metric]
    provisional: tuple[BoardSet, ...]  # the sets whose rounds were still judged
    chart: str  # its main metric, with people, by round; empty without two rounds or a value


def find_model_standing(submission: Submission, user: Person) -> Standing | None:
    """Return a model's standing by the owner's weights; None if it is not on the board.

    An unpublished model is ranked among the published ones, as its owner sees it.
    """
    task = submission.task
    matrix = score_matrix(task, None if submission.is_published else user)
    board = rank_board(matrix, choose_opening_weights(task, matrix))
    row = None
    for each in board.rows:
        if submission.pk in each.model.files:
            row = each
    if row is None or not matrix.sets:
        return None
    score, interval = format_cell("dynascore", row.dynascore)
    return Standing(
        row=row,
        ranked=sum(bool(other.rank) for other in board.rows),
        score=score,
        interval=interval,
        scale=reach(chain.from_iterable(row.scores)),
        metrics=list(_iter_metrics(matrix, row)),
        provisional=matrix.provisional,
        chart=_draw_chart(submission, matrix, row),
    )


def _iter_metrics(matrix: Matrix, row: RankedModel) -> Iterator[Metric]:
    """Yield the model's metrics, each beside the median of all models."""
    heads = list_column_heads(matrix.metrics, matrix.less_is_better)
    for name, (title, unit, is_less_better) in zip(matrix.metrics, heads, strict=True):
        cell = row.metrics[name]
        if name in DETAIL_METRICS and cell.value is None:
            continue
        middle = _compute_median(matrix, row, name)
        is_better = None
        if cell.value is not None and middle is not None and cell.value != middle:
            is_better = (cell.value > middle) != is_less_better
        value, interval = format_cell(name, cell)
        median_text, _interval = format_cell(name, Cell(middle))
        yield Metric(
            title=title,
            unit=unit,
            value=value,
            interval=interval,
            median=median_text,
            is_better=is_better,
            judge=matrix.judge if name == LLM_JUDGE else None,
            custom=matrix.customs.get(name),
        )


def _compute_median(matrix: Matrix, row: RankedModel, name: str) -> float | None:
    """Return the median of a metric by which models may be ordered; None for other metrics."""
    if name not in matrix.weighable:
        return None
    values = [value for value in row.columns[name].values if value is not None]
    return median(values) if values else None


def _draw_chart(submission: Submission, matrix: Matrix, row: RankedModel) -> str:
    """Draw the model's main metric and people's accuracy by round."""
    seen = find_opened_rounds([submission.task])
    rounds = build_rounds(matrix, seen, all_numbers(seen))
    cells: list[Cell] = []
    for line in rounds.lines:
        if line.model.id == row.model.id:
            cells = [round_cell.cell for round_cell in line.cells]
    if all(cell.value is None for cell in cells):
        return ""  # a line of people alone would be taken for the model's
    lines = build_people_line(rounds) | {f"{row.rank} {row.model.name}": cells}
    title = _("%(metric)s by round") % {"metric": in_words(matrix.main)}
    return draw_chart(rounds, lines, title)
