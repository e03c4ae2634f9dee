"""All models and rounds on one ruler: expected scores beside those that were measured.

It loads numpy (see `leaderboard.board.matrix`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from functools import cached_property
from typing import Any
from uuid import UUID

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from core.figures.figure import Figure
from core.figures.rows import PERCENT_AXIS, AxisRow, build_rows_scene, draw_row
from core.files.tables import build_csv_text
from core.numbers import format_decimal
from evaluation.models import ExpectedScore, Ruler
from evaluation.runs.rulers.selectors import find_ruler
from evaluation.test_sets.sealing import count_steps, round_to_step
from leaderboard.board.cells import Cell
from leaderboard.board.columns import find_share_metric
from leaderboard.board.matrix import NORMAL_QUANTILE, BoardModel, Matrix
from leaderboard.board.sets import BoardSet
from leaderboard.board.tables import read_cell
from tasks.models import Task

CSV_COLUMNS = (
    *("model", "id", "set", "version", "round", "is_measured", "expected", "expected_low"),
    *("expected_high", "accuracy", "accuracy_low", "accuracy_high"),
)


class WhyNot(StrEnum):
    """Why a board can't be shown on one ruler."""

    NO_RULER = "no_ruler"
    CHOOSING = "choosing"  # its anchors are being chosen
    NO_LINKS = "no_links"  # too few models have run any round
    NO_SHARE = "no_share"  # no metric of the task is a share of right answers


@dataclass(frozen=True)
class RulerRound:
    """A linked set: what all models would score on it, which says how easy it is.

    set_index: of the matrix. expected: in percent; its interval is that of other such examples.
    half_width: half of the interval of one model's expected score, in points. item_error: the
    standard error of the models' mean that the set's examples cause, in points.
    """

    link_id: int
    set_index: int
    set: BoardSet
    expected: Cell
    half_width: float
    item_error: float
    model_count: int

    @property
    def plot(self) -> SafeString:
        """Return the set's place on the axis."""
        return draw_row(self.axis_row, PERCENT_AXIS)

    @property
    def axis_row(self) -> AxisRow:
        """Return the set as a row of the chart."""
        return _build_axis_row(self.set.title, self.expected, "people")


@dataclass(frozen=True)
class RulerScore:
    """A model on one set, in percent: expected from the anchors, and measured if it ran the set."""

    round: RulerRound
    expected: Cell
    measured: Cell

    @property
    def is_measured(self) -> bool:
        """Return whether the model ran the set."""
        return self.measured.value is not None


@dataclass(frozen=True)
class RulerLine:
    """A model's mean expected score over all linked sets, in percent.

    measured_count: how many of these sets it ran. measured: the plain mean over them, or None.
    """

    model: BoardModel
    model_index: int
    standing_id: int
    expected: Cell
    measured: float | None
    measured_count: int
    is_whole: bool

    @property
    def plot(self) -> SafeString:
        """Return the model's place on the axis."""
        return draw_row(self.axis_row, PERCENT_AXIS)

    @property
    def axis_row(self) -> AxisRow:
        """Return the model as a row of the chart, in the first colour if it ran every set."""
        return _build_axis_row(
            self.model.name, self.expected, "chosen" if self.is_whole else "other"
        )


@dataclass(frozen=True)
class RulerBoard:
    """The models and sets of a ruler that the reader may see, the best expected score first.

    is_rounded: whether expected scores are rounded, because the anchors are secret.
    """

    ruler: Ruler
    matrix: Matrix
    metric: str
    rounds: tuple[RulerRound, ...]
    lines: tuple[RulerLine, ...]
    is_rounded: bool

    @cached_property
    def finding(self) -> str:
        """Say who is expected to be best, and whether that is certain."""
        if not self.lines:
            return _("No model is on the ruler yet.")
        first = self.lines[0]
        values = {"model": first.model.name, "value": format_decimal(first.expected.value or 0)}
        # Overlapping intervals prove no tie, but they forbid to call it clear.
        if len(self.lines) > 1 and (first.expected.low or 0) <= (
            self.lines[1].expected.high or 100
        ):
            return _("%(model)s is expected to score %(value)s%%, not clearly more than others") % (
                values
            )
        return _("%(model)s is expected to score %(value)s%%, more than all others") % values

    def read_scores(self, lines: Sequence[RulerLine]) -> Mapping[UUID, list[RulerScore]]:
        """Return the scores of these models on every linked set, by model id. One query."""
        rounds = {round.link_id: round for round in self.rounds}
        lines_by_standing = {line.standing_id: line for line in lines}
        rows = ExpectedScore.objects.filter(standing__in=lines_by_standing, link__in=rounds)
        # Also models without any score on these sets, so that callers find each of their lines.
        scores: dict[UUID, list[RulerScore]] = {line.model.id: [] for line in lines}
        places = {link_id: place for place, link_id in enumerate(rounds)}
        values = rows.values_list("standing", "link", "value", "low", "high")
        for standing_id, link_id, *numbers in sorted(values, key=lambda row: places[row[1]]):
            line, round = lines_by_standing[standing_id], rounds[link_id]
            expected = self.round(_build_percent_cell(*numbers), round.half_width)
            measured = read_cell(self.matrix, line.model_index, round.set_index, self.metric)
            scores[line.model.id].append(RulerScore(round, expected, measured))
        return scores

    def round(self, cell: Cell, half_width: float) -> Cell:
        """Return an expected score as this board shows it."""
        return round_cell(cell, half_width, self.ruler.anchor_count) if self.is_rounded else cell


def round_cell(cell: Cell, half_width: float, anchor_count: int) -> Cell:
    """Return an expected score as people see it while the anchors are secret.

    The value is rounded as a score on so many sealed examples. The interval follows from it alone,
    so it discloses nothing more.

    cell: in percent. half_width: half of an interval that is the same for all models, in points.
    """
    value = 100 * round_to_step((cell.value or 0) / 100, anchor_count)
    # Rounding moves the value by half a step at most.
    reach = half_width + 50 / count_steps(anchor_count)
    return Cell(value, max(0.0, value - reach), min(100.0, value + reach))


def find_obstacle(task: Task, matrix: Matrix) -> WhyNot | Ruler:
    """Return why the board can't be shown on one ruler, or else its ruler. At most two queries."""
    ruler = find_ruler(task)
    # First, because no ruler could help: an expected score is never shown without a measured one.
    if find_share_metric(matrix.metrics) is None:
        return WhyNot.NO_SHARE
    if ruler is None or ruler.state in (Ruler.State.FAILED, Ruler.State.CANCELLED):
        return WhyNot.NO_RULER
    if ruler.state != Ruler.State.DONE:
        return WhyNot.CHOOSING
    return ruler if ruler.links.exclude(value=None).exists() else WhyNot.NO_LINKS


def build_ruler_board(ruler: Ruler, matrix: Matrix) -> RulerBoard:
    """Return the models and sets that the matrix shows, on this ruler. Three queries."""
    metric = find_share_metric(matrix.metrics)
    assert metric is not None
    rounds = tuple(_iter_rounds(ruler, matrix))
    # A public control set has nothing to hide, so its rounding would only cost precision.
    source_names = set(ruler.anchors.values_list("version__evaluation_set__name", flat=True))
    secret_indices = [
        index
        for index, board_set in enumerate(matrix.sets)
        if board_set.is_sealed and board_set.name in source_names
    ]
    # Without lines first, because each line is rounded as its board says.
    board = RulerBoard(ruler, matrix, metric, rounds, (), bool(secret_indices))
    lines = sorted(
        _iter_lines(board, secret_indices),
        # Among equal rounded scores no order may tell the exact ones.
        key=lambda line: (-(line.expected.value or 0), line.model.name),
    )
    return RulerBoard(ruler, matrix, metric, rounds, tuple(lines), bool(secret_indices))


def _iter_rounds(ruler: Ruler, matrix: Matrix) -> Iterator[RulerRound]:
    index_by_version = {board_set.version_id: i for i, board_set in enumerate(matrix.sets)}
    for link in ruler.links.exclude(value=None).defer("fit"):
        index = index_by_version.get(link.version_id)
        # A set that was hidden meanwhile, or a version that has a successor.
        if index is None:
            continue
        value, item_error = 100 * (link.value or 0), 100 * (link.item_error or 0)
        reach = NORMAL_QUANTILE * item_error
        expected = Cell(value, max(0.0, value - reach), min(100.0, value + reach))
        half_width = 100 * (link.half_width or 0)
        yield RulerRound(
            link.pk,
            index,
            matrix.sets[index],
            expected,
            half_width,
            item_error,
            link.model_count,
        )


def _iter_lines(board: RulerBoard, secret_indices: Sequence[int]) -> Iterator[RulerLine]:
    matrix = board.matrix
    index_by_file: dict[UUID, int] = {}
    for place, model in enumerate(matrix.models):
        # Uploaded predictions have a submission for each set, all of one model.
        index_by_file |= dict.fromkeys(model.files, place)
    column = matrix.metrics.index(board.metric)
    set_indices = [round.set_index for round in board.rounds]
    # Of a mean: as wide as if the errors on all sets were the same.
    mean_half_width = sum(round.half_width for round in board.rounds) / max(1, len(board.rounds))
    # All at once: one by one, a thousand models would take longer than the query.
    measured = matrix.numbers.values[:, set_indices, column].tolist()
    kept_back: set[int] = set()
    for set_index in secret_indices:
        kept_back.update(matrix.numbers.kept_back[:, set_index].nonzero()[0].tolist())
    standings = board.ruler.standings.exclude(value=None).order_by()
    for pk, file, *numbers in standings.values_list("pk", "submission", "value", "low", "high"):
        index = index_by_file.get(file)
        # This reader may not see the model, or any result on the secret anchors' set.
        if index is None or index in kept_back:
            continue
        values = [value for value in measured[index] if value == value]  # NaN differs from itself
        expected = board.round(_build_percent_cell(*numbers), mean_half_width)
        yield RulerLine(
            matrix.models[index],
            index,
            pk,
            expected,
            sum(values) / len(values) if values else None,
            len(values),
            len(values) == len(board.rounds),
        )


def _build_percent_cell(*shares: float | None) -> Cell:
    value, low, high = (100 * (share or 0.0) for share in shares)
    return Cell(value, low, high)


def _build_axis_row(name: str, cell: Cell, role: str) -> AxisRow:
    # Translators: a score with its interval
    text = _("%(value)s (%(low)s–%(high)s)") % {
        "value": format_decimal(cell.value or 0),
        "low": format_decimal(cell.low or 0),
        "high": format_decimal(cell.high or 0),
    }
    return AxisRow(name, cell.value, cell.low, cell.high, text=text, role=role)


def build_ruler_figure(board: RulerBoard, day: date) -> Figure:
    """Return the rounds and the first models on one axis, for a file. day: of the numbers."""
    # Rounds first, because a file shows only so many rows.
    rows = [round.axis_row for round in board.rounds] + [line.axis_row for line in board.lines]
    models = ngettext("%(n)d model", "%(n)d models", len(board.lines)) % {"n": len(board.lines)}
    values = {"anchors": board.ruler.anchor_count, "models": models, "day": day.isoformat()}
    return Figure(
        name="one-ruler",
        title=board.finding,
        subtitle=_("Expected share of right answers, %(anchors)d anchors, %(models)s, %(day)s")
        % values,
        scene=build_rows_scene(rows, PERCENT_AXIS),
        note=_("The first rows are rounds: what all models would score on them."),
    )


def build_ruler_body(board: RulerBoard) -> dict[str, Any]:
    """Return all models and sets as JSON values, in percent. One query."""
    scores = board.read_scores(board.lines)
    return {
        "task": board.matrix.task,
        "metric": board.metric,
        "ruler": board.ruler.version,
        "anchors": board.ruler.anchor_count,
        "is_rounded": board.is_rounded,
        "sets": [
            {
                **_name_set(round.set),
                "models": round.model_count,
                "expected": round.expected._asdict(),
            }
            for round in board.rounds
        ],
        "models": [
            {
                "id": str(line.model.id),
                "model": line.model.name,
                "expected": line.expected._asdict(),
                "measured": line.measured,
                "measured_sets": line.measured_count,
                "scores": [
                    {
                        **_name_set(score.round.set),
                        "is_measured": score.is_measured,
                        "expected": score.expected._asdict(),
                        "measured": score.measured._asdict(),
                    }
                    for score in scores[line.model.id]
                ],
            }
            for line in board.lines
        ],
    }


def _name_set(board_set: BoardSet) -> dict[str, Any]:
    return {"set": board_set.name, "version": board_set.version, "round": board_set.round}


def write_ruler_csv(board: RulerBoard) -> str:
    """Return a row for each model and set, in percent. One query."""
    scores = board.read_scores(board.lines)
    rows: list[Sequence[Any]] = [CSV_COLUMNS]
    for line in board.lines:
        for score in scores[line.model.id]:
            names = _name_set(score.round.set).values()
            rows.append(
                (line.model.name, line.model.id, *names, score.is_measured)
                + (*score.expected, *score.measured)
            )
    return build_csv_text(rows)
