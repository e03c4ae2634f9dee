"""A model's rank and metrics on its board, for its page.

It loads numpy (see `leaderboard.board.matrix`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from django.utils.safestring import SafeString

from core.days import get_today
from core.figures.figure import Figure
from core.figures.rows import RowAxis, draw_axis
from core.figures.strips import draw_strip
from evaluation.judges.custom_metrics.selectors import CustomMetricColumn as Custom
from evaluation.judges.llm_judges.selectors import MetricJudge
from evaluation.models import Submission
from leaderboard.board.cells import Cell
from leaderboard.board.columns import DETAIL_METRICS
from leaderboard.board.figures import build_score_axis, format_cell
from leaderboard.board.matrix import Matrix, read_matrix
from leaderboard.board.opening import choose_opening_weights
from leaderboard.board.page import list_column_heads
from leaderboard.board.ranked import RankedModel, rank_board
from leaderboard.board.sets import BoardSet
from leaderboard.rounds.figures import build_model_figure
from leaderboard.rounds.matrix import build_rounds
from tasks.config.schema import LLM_JUDGE
from tasks.permissions import Person
from tasks.selectors import find_opened_rounds
from validation.statistics.cache import get_all_numbers


@dataclass(frozen=True)
class FormattedMetric:
    """A model's formatted metric beside the median of all models, with a strip that shows both."""

    title: str
    unit: str
    value: str
    interval: str
    median: str
    is_less_better: bool
    strip: SafeString
    is_detail: bool = False  # it details another metric, and never orders models
    judge: MetricJudge | None = None  # shown with its agreement with people
    custom: Custom | None = None  # the owners' own metric, shown with its version


@dataclass(frozen=True)
class ModelStanding:
    """A model's row on its board. ranked_count: the number of models that have a rank."""

    row: RankedModel
    ranked_count: int
    score: str
    interval: str
    axis: RowAxis
    metrics: list[FormattedMetric]
    provisional: tuple[BoardSet, ...]  # the sets whose rounds were still being judged
    figure: Figure | None  # its main metric and people's, by round

    @property
    def rank(self) -> str:
        """Return the rank as the leaderboard shows it: a range where the data leave it open."""
        return self.row.open_rank

    @property
    def axis_plot(self) -> SafeString:
        """Return the axis above the score's row."""
        return draw_axis(self.axis)

    @property
    def measured_metrics(self) -> list[FormattedMetric]:
        """Return the measured metrics that may order models."""
        return [metric for metric in self.metrics if metric.value and not metric.is_detail]

    @property
    def detail_metrics(self) -> list[FormattedMetric]:
        """Return the measured metrics that only detail another metric."""
        return [metric for metric in self.metrics if metric.value and metric.is_detail]

    @property
    def unmeasured_titles(self) -> list[str]:
        """Return the titles of the metrics that were not measured."""
        return [metric.title for metric in self.metrics if not metric.value]


def find_model_standing(submission: Submission, user: Person) -> ModelStanding | None:
    """Return a model's standing with the owner's weights; None if it is not on the board.

    Also None if the board has no sets. An unpublished model is ranked among the published models,
    as its owner sees it.
    """
    task = submission.task
    matrix = read_matrix(task, None if submission.is_published else user)
    board = rank_board(matrix, choose_opening_weights(task, matrix))
    row = None
    for each in board.rows:
        if submission.pk in each.model.files:
            row = each
    if row is None or not matrix.sets:
        return None
    score, interval = format_cell("dynascore", row.dynascore)
    return ModelStanding(
        row=row,
        ranked_count=sum(bool(other.rank) for other in board.rows),
        score=score,
        interval=interval,
        axis=build_score_axis(board),
        metrics=list(_iter_metrics(matrix, row)),
        provisional=matrix.provisional_sets,
        figure=_draw_figure(submission, matrix, row),
    )


def _iter_metrics(matrix: Matrix, row: RankedModel) -> Iterator[FormattedMetric]:
    """Yield the model's metrics, each beside the median of all models."""
    heads = list_column_heads(matrix.metrics, matrix.less_is_better)
    for name, (title, unit, is_less_better) in zip(matrix.metrics, heads, strict=True):
        cell = row.metrics[name]
        if name in DETAIL_METRICS and cell.value is None:
            continue
        median = _compute_median(matrix, row, name)
        value, interval = format_cell(name, cell)
        median_text, _interval = format_cell(name, Cell(median))
        yield FormattedMetric(
            title=title,
            unit=unit,
            value=value,
            interval=interval,
            median=median_text,
            is_less_better=is_less_better,
            strip=_draw_strip(row, name, median),
            is_detail=name in DETAIL_METRICS,
            judge=matrix.judge if name == LLM_JUDGE else None,
            custom=matrix.customs.get(name),
        )


def _draw_strip(row: RankedModel, name: str, middle: float | None) -> SafeString:
    """Draw the metric's value among the values of all models; empty without a median."""
    if middle is None:
        return SafeString()
    # All models of the board, including this one.
    values = [value for value in row.columns[name].values if value is not None]
    return draw_strip(values, row.metrics[name].value, middle)


def _compute_median(matrix: Matrix, row: RankedModel, name: str) -> float | None:
    """Return the median of a metric by which models may be ordered; None for other metrics."""
    if name not in matrix.weighable_metrics:
        return None
    values = [value for value in row.columns[name].values if value is not None]
    return median(values) if values else None


def _draw_figure(submission: Submission, matrix: Matrix, row: RankedModel) -> Figure | None:
    """Return a figure of the model's main metric and people's accuracy by round, or None."""
    opened_rounds = find_opened_rounds([submission.task])
    rounds = build_rounds(matrix, opened_rounds, get_all_numbers(opened_rounds))
    for line in rounds.lines:
        if line.model.id == row.model.id:
            return build_model_figure(rounds, line, matrix.main, get_today())
    return None
