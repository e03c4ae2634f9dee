"""How one model stands on its board, for its page.

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
from leaderboard.board.columns import ASIDE
from leaderboard.board.matrix import Matrix, score_matrix
from leaderboard.board.opening import opening_of
from leaderboard.board.page import cell_texts, column_heads
from leaderboard.board.ranked import RankedModel, rank_board
from leaderboard.board.sets import BoardSet
from leaderboard.rounds.matrix import draw_chart, people_of, rounds_of
from tasks.config.schema import LLM_JUDGE
from tasks.permissions import Person
from tasks.selectors import seen_rounds
from validation.statistics.cache import all_numbers


@dataclass(frozen=True)
class Metric:
    """A metric of the model and the median of all models, as people read them.

    is_better: than the median; None where they are equal or one is unknown.
    """

    title: str
    unit: str
    value: str
    interval: str
    median: str
    is_better: bool | None
    judge: MetricJudge | None = None  # whose agreement with people stands beside it
    custom: Custom | None = None  # of the owners' own: which version it is


@dataclass(frozen=True)
class Standing:
    """A model's line on its board. ranked: how many models have a score."""

    row: RankedModel
    ranked: int
    score: str
    interval: str
    scale: Place
    metrics: list[Metric]
    provisional: tuple[BoardSet, ...]  # the sets whose rounds were still judged
    chart: str  # its main metric, with people, by round; empty without two rounds or a value


def model_standing(submission: Submission, user: Person) -> Standing | None:
    """Return a model's standing by the owner's weights; None if it is not on the board.

    An unpublished model is placed among the published ones, as its owner sees it.
    """
    task = submission.task
    matrix = score_matrix(task, None if submission.is_published else user)
    board = rank_board(matrix, opening_of(task, matrix))
    row = next((row for row in board.rows if submission.pk in row.model.files), None)
    if row is None or not matrix.sets:
        return None
    return Standing(
        row,
        sum(bool(other.rank) for other in board.rows),
        *cell_texts("dynascore", row.dynascore),
        reach(chain.from_iterable(row.scores)),
        list(_metrics(matrix, row)),
        matrix.provisional,
        _chart(submission, matrix, row),
    )


def _metrics(matrix: Matrix, row: RankedModel) -> Iterator[Metric]:
    told = column_heads(matrix.metrics, matrix.less_is_better)
    for name, (title, unit, is_less) in zip(matrix.metrics, told, strict=True):
        cell, column = row.metrics[name], row.columns[name]
        if name in ASIDE and cell.value is None:
            continue
        ranks, judge = name in matrix.weighable, matrix.judge if name == LLM_JUDGE else None
        known = [value for value in column.values if value is not None and ranks]
        middle = median(known) if known else None
        is_better = None
        if cell.value is not None and middle is not None and cell.value != middle:
            is_better = (cell.value > middle) != is_less
        value, interval = cell_texts(name, cell)
        shown = cell_texts(name, Cell(middle))[0]
        custom = matrix.customs.get(name)
        yield Metric(title, unit, value, interval, shown, is_better, judge, custom)


def _chart(submission: Submission, matrix: Matrix, row: RankedModel) -> str:
    seen = seen_rounds([submission.task])
    found = rounds_of(matrix, seen, all_numbers(seen))
    cells = next(line.cells for line in found.lines if line.model.id == row.model.id)
    if all(one.cell.value is None for one in cells):
        return ""  # a line of people alone would be taken for the model's
    lines = people_of(found) | {f"{row.rank} {row.model.name}": [one.cell for one in cells]}
    title = _("%(metric)s by round") % {"metric": in_words(matrix.main)}
    return draw_chart(found, lines, title)
