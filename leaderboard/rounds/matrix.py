"""Every model against every round: do people still lead, what was learned, has progress stalled?

Intervals of differences join those of their two sides as if independent, since rounds have
different examples. It loads numpy (see `leaderboard.board.matrix`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from django.db.models import prefetch_related_objects
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, override

from core.charts import Point, line_chart
from core.data.adaptive_cache import Kept
from core.files.tables import csv_text
from leaderboard.board.cells import Cell
from leaderboard.board.exports import describe_early
from leaderboard.board.matrix import Matrix, Model
from leaderboard.board.sets import BoardSet
from leaderboard.board.tables import read_cell
from leaderboard.rounds.progress import Progress, Step, compare_rounds
from tasks.models import Round
from validation.rates.rates import Rate, newcombe

CHART_MODELS = 3
"""Models in the chart with people: it has marks for four lines."""
LIKE_PEOPLE = ("accuracy",)
"""Metrics that compare with human accuracy: both are shares of right labels."""
EMPTY_CELL = Cell(None)
PROGRESS_WORDS: Mapping[Progress, str] = {
    Progress.FIRST: gettext_noop("nothing to compare it with"),
    Progress.BETTER: gettext_noop("the model is fooled less often than in round %(before)s"),
    Progress.STALLED: gettext_noop("no clear change since round %(before)s: stalled"),
    Progress.UNCLEAR: gettext_noop("too few examples to tell whether round %(before)s was harder"),
    Progress.WORSE: gettext_noop("the model is fooled more often than in round %(before)s"),
    Progress.NOISE: gettext_noop("as many labels may be wrong as examples fool: stalled"),
    Progress.UNKNOWN: gettext_noop("not known yet"),
}


@dataclass(frozen=True)
class RoundColumn:
    """A round with its set, if models are run on it. Rates and differences are in percent.

    gap: people − the best model on the set. loop_gap: people − the models in the round's loop, on
    the same votes. before: the number of the round that this round is compared with.
    """

    number: int
    set: BoardSet | None
    place: int  # of the set in the matrix; -1: none
    people: Cell
    gap: Cell
    best: str  # that model's name
    loop_gap: Cell
    vmer: Cell
    noise: float | None
    step: Step
    before: int | None

    @property
    def set_words(self) -> str:
        """Return the set's name and version; "" without a set."""
        return self.set.title if self.set else ""

    @property
    def early(self) -> str:
        """Describe in English how much of the round was judged for its set; "" if all was."""
        return describe_early(asdict(self.set)) if self.set else ""

    @property
    def progress(self) -> str:
        """Describe the round's progress over the one before."""
        return _(PROGRESS_WORDS[self.step.progress]) % {"before": self.before}


@dataclass(frozen=True)
class Change:
    """The difference of a model's newest round and its oldest one, in points."""

    oldest: int
    newest: int
    points: Cell

    @property
    def words(self) -> str:
        """Describe the conclusion to draw from the change."""
        if self.points.low is None or self.points.high is None or self.points.value is None:
            return _("not known")
        values = {
            "points": f"{abs(self.points.value):.1f}",
            "newest": self.newest,
            "oldest": self.oldest,
        }
        if self.points.low > 0:
            sentence = _("%(points)s points better on round %(newest)d than on round %(oldest)d")
        elif self.points.high < 0:
            sentence = _("%(points)s points worse on round %(newest)d than on round %(oldest)d")
        else:
            sentence = _("no clear difference between rounds %(oldest)d and %(newest)d")
        return sentence % values


class RoundCell(NamedTuple):
    """A model's value on a round's set, and the flags of that run."""

    column: RoundColumn
    cell: Cell
    in_the_loop: bool
    outdated: bool
    kept_back: bool


@dataclass(frozen=True)
class ModelLine:
    """A model's value on each column's set, and its change from the oldest to the newest."""

    model: Model
    cells: list[RoundCell]
    change: Change | None

    @property
    def values(self) -> list[float | None]:
        """Return the model's value on each round's set."""
        return [round_cell.cell.value for round_cell in self.cells]


@dataclass(frozen=True)
class Rounds:
    """The page's table, with the models that were run on most rounds first, then by their mean."""

    columns: tuple[RoundColumn, ...]
    lines: tuple[ModelLine, ...]

    @property
    def verdict(self) -> str:
        """Return a sentence that says whether progress has stalled."""
        with_vmer = [column for column in self.columns if column.vmer.value is not None]
        if not with_vmer:
            return _("No round has a vMER yet, so nothing can be said about progress.")
        last = with_vmer[-1]
        values = {"number": last.number, "progress": last.progress}
        # Translators: progress: a clause such as “no clear change since round 2”
        return _("Round %(number)d: %(progress)s.") % values


class _People(NamedTuple):
    """The rounds of a task by number, and the rates of their votes by round id."""

    rounds: Mapping[int, Round]
    counted: Mapping[int, Kept]

    def rate(self, number: int, name: str) -> Rate | None:
        """Return a round's rate; None if the round is not counted yet or lacks the rate."""
        if number not in self.rounds:
            return None
        counted = self.counted.get(self.rounds[number].pk)
        value = counted.numbers[name] if counted else None
        return value if isinstance(value, Rate) else None


def build_rounds(
    matrix: Matrix, rounds: Sequence[Round], round_statistics: Mapping[int, Kept]
) -> Rounds:
    """Return the matrix of a task's rounds.

    round_statistics: the statistics of rounds by id, without those that are not counted yet.
    One query, for the parents of rounds.
    """
    prefetch_related_objects(rounds, "parents")
    people = _People({round.number: round for round in rounds}, round_statistics)
    places = []
    for place, board_set in enumerate(matrix.sets):
        if board_set.round is not None:
            places.append((board_set.round, place))
    with_sets = {number for number, _place in places}
    # Rounds without a set have numbers of people, which are shown too.
    places += [(number, -1) for number in people.rounds if number not in with_sets]
    columns = tuple(
        _build_column(matrix, people, number, place) for number, place in sorted(places)
    )
    return Rounds(columns, tuple(_iter_lines(matrix, columns)))


def _build_column(matrix: Matrix, people: _People, number: int, place: int) -> RoundColumn:
    """Return the column of a round. place: the index of its set, -1 without one."""
    accuracy = people.rate(number, "human_accuracy")
    previous_number = _find_round_before(people.rounds, number)
    # Two rounds at most: progress is a step from one to the next.
    compared_numbers = [number]
    if previous_number is not None:
        compared_numbers = [previous_number, number]
    vmers = [people.rate(each, "vmer") for each in compared_numbers]
    noises = [_compute_noise(people.rate(each, "human_accuracy")) for each in compared_numbers]
    gap, best_name = _compute_gap(matrix, place, accuracy)
    return RoundColumn(
        number=number,
        set=matrix.sets[place] if place >= 0 else None,
        place=place,
        people=_convert_to_cell(accuracy),
        gap=gap,
        best=best_name,
        loop_gap=_convert_to_cell(people.rate(number, "human_model_gap")),
        vmer=_convert_to_cell(vmers[-1]),
        noise=None if noises[-1] is None else 100 * noises[-1],
        step=compare_rounds(vmers, noises)[-1],
        before=previous_number,
    )


def _find_round_before(rounds: Mapping[int, Round], number: int) -> int | None:
    """Return the newest round that this round follows: a parent, or else the number before it."""
    parents = set()
    if number in rounds:
        parents = {parent.number for parent in rounds[number].parents.all()} & rounds.keys()
    earlier = parents or {other for other in rounds if other < number}
    return max(earlier, default=None)


def _compute_noise(people: Rate | None) -> float | None:
    """Return the share of votes that differ from the others': an upper bound on wrong labels."""
    return None if people is None else 1 - people.value


def _convert_to_cell(rate: Rate | None) -> Cell:
    if rate is None:
        return EMPTY_CELL
    return Cell(100 * rate.value, 100 * rate.low, 100 * rate.high)


def _compute_gap(matrix: Matrix, place: int, people: Rate | None) -> tuple[Cell, str]:
    """Return people − the best model on a set, and the model's name; empty if not comparable."""
    if place < 0 or people is None or matrix.main not in LIKE_PEOPLE or not matrix.models:
        return EMPTY_CELL, ""
    # Models that were not run on it must not win.
    values = np.nan_to_num(matrix.numbers.values[:, place, 0], nan=-1.0)
    best_place = int(values.argmax())
    cell = read_cell(matrix, best_place, place, matrix.main)
    if cell.value is None:
        return EMPTY_CELL, ""
    return subtract_cells(_convert_to_cell(people), cell), matrix.models[best_place].name


def subtract_cells(first: Cell, second: Cell) -> Cell:
    """Return the difference of two independent numbers; empty if one lacks an interval.

    >>> subtract_cells(Cell(90.0, 87.0, 93.0), Cell(70.0, 66.0, 74.0))
    Cell(value=20.0, low=15.0, high=25.0)
    """
    first_rate, second_rate = _convert_to_rate(first), _convert_to_rate(second)
    if first_rate is None or second_rate is None:
        return EMPTY_CELL
    low, high = newcombe(first_rate, second_rate)
    return Cell(first_rate.value - second_rate.value, low, high)


def _convert_to_rate(cell: Cell) -> Rate | None:
    if cell.value is None or cell.low is None or cell.high is None:
        return None
    return Rate(cell.value, cell.low, cell.high, 0, "")


def _iter_lines(matrix: Matrix, columns: Sequence[RoundColumn]) -> Iterator[ModelLine]:
    """Yield the models: those run on most rounds first, then by their mean."""
    places = [column.place for column in columns if column.set]
    values = matrix.numbers.values[:, places, matrix.metrics.index(matrix.main)]
    count = (~np.isnan(values)).sum(axis=1)
    mean = np.nan_to_num(values).sum(axis=1) / np.maximum(count, 1)
    order = np.lexsort((np.arange(len(mean)), -mean, -count))  # the last key decides first
    for model in order.tolist():
        cells = [_build_round_cell(matrix, model, column) for column in columns]
        yield ModelLine(matrix.models[model], cells, _compute_change(cells))


def _build_round_cell(matrix: Matrix, model: int, column: RoundColumn) -> RoundCell:
    if not column.set:
        return RoundCell(column, EMPTY_CELL, in_the_loop=False, outdated=False, kept_back=False)
    numbers, at = matrix.numbers, (model, column.place)
    return RoundCell(
        column=column,
        cell=read_cell(matrix, model, column.place, matrix.main),
        in_the_loop=bool(numbers.in_the_loop[at]),
        outdated=bool(numbers.outdated[at]),
        kept_back=bool(numbers.kept_back[at]),
    )


def _compute_change(cells: Sequence[RoundCell]) -> Change | None:
    """Return the change between the first and the last round that the model was run on."""
    measured_cells = [round_cell for round_cell in cells if round_cell.cell.value is not None]
    if not measured_cells:
        return None
    oldest_cell, newest_cell = measured_cells[0], measured_cells[-1]
    if oldest_cell.column.number == newest_cell.column.number:
        return None
    points = subtract_cells(newest_cell.cell, oldest_cell.cell)
    return Change(oldest_cell.column.number, newest_cell.column.number, points)


def draw_charts(rounds: Rounds, title: str) -> list[tuple[str, SafeString]]:
    """Draw charts of people and the first models, and of vMER; return each with its title.

    A chart with fewer than two rounds is left out.
    """
    lines = build_people_line(rounds)
    for number, line in enumerate(rounds.lines[:CHART_MODELS], start=1):
        lines[f"{number}. {line.model.name}"] = [round_cell.cell for round_cell in line.cells]
    vmers = {"vMER": [column.vmer for column in rounds.columns]}
    charts = []
    for chart_title, chart_lines in ((title, lines), (_("vMER by round"), vmers)):
        chart = draw_chart(rounds, chart_lines, chart_title)
        if chart:
            charts.append((chart_title, chart))
    return charts


def build_people_line(rounds: Rounds) -> dict[str, list[Cell]]:
    """Return the chart's line of people, by its label."""
    return {_("People"): [column.people for column in rounds.columns]}


def draw_chart(rounds: Rounds, lines: Mapping[str, Sequence[Cell]], title: str) -> SafeString:
    """Draw the lines that have a value in any round; return "" with fewer than two rounds."""
    drawn_lines = {}
    for name, cells in lines.items():
        if any(cell.value is not None for cell in cells):
            drawn_lines[name] = _build_points(rounds.columns, cells)
    if not drawn_lines or len(rounds.columns) < 2:
        return SafeString()
    return line_chart(drawn_lines, title=title)


def _build_points(columns: Iterable[RoundColumn], cells: Iterable[Cell]) -> list[Point]:
    points = []
    for column, cell in zip(columns, cells, strict=True):
        label = _("Round %(number)d") % {"number": column.number}
        points.append(Point(label, *cell.shares()))
    return points


# Programs read it, so it must not follow the reader's language.
@override("en")
def build_rounds_body(matrix: Matrix, rounds: Rounds) -> dict[str, Any]:
    """Return the table as JSON values, in English; rates and differences are in percent."""
    return {
        "task": matrix.task,
        "metric": matrix.main,
        "verdict": rounds.verdict,
        "rounds": [_build_column_body(column) for column in rounds.columns],
        "models": [_build_line_body(line) for line in rounds.lines],
    }


def _build_column_body(column: RoundColumn) -> dict[str, Any]:
    board_set = column.set
    return {
        "round": column.number,
        "set": column.set_words or None,
        "sha256": board_set and board_set.sha256,
        "is_provisional": board_set is not None and board_set.is_provisional,
        "judged": board_set and board_set.judged,
        "to_judge": board_set and board_set.to_judge,
        "people": column.people._asdict(),
        "people_minus_best": column.gap._asdict(),
        "best": column.best,
        "people_minus_loop": column.loop_gap._asdict(),
        "vmer": column.vmer._asdict(),
        "noise": column.noise,
        "progress": column.step.progress,
    }


def _build_line_body(line: ModelLine) -> dict[str, Any]:
    cells = []
    for round_cell in line.cells:
        marks = {"round": round_cell.column.number, "in_the_loop": round_cell.in_the_loop}
        cells.append(marks | round_cell.cell._asdict())
    return {
        "id": str(line.model.id),
        "model": line.model.name,
        "owner": line.model.owner,
        "team": line.model.team,
        "rounds": cells,
        "newest_minus_oldest": line.change and line.change.points._asdict(),
    }


def write_rounds_csv(rounds: Rounds) -> str:
    """Return a CSV row per model, per number of people and per difference, for each round.

    Values that were not measured are empty.
    """
    rows: list[list[Any]] = [
        ["kind", "name", "id", "round", "set", "value", "low", "high", "in_the_loop", "provisional"]
    ]
    for column in rounds.columns:
        about_round = [column.number, column.set_words]
        people_cells = {
            ("people", ""): column.people,
            ("vmer", ""): column.vmer,
            ("people_minus_loop", ""): column.loop_gap,
            ("people_minus_best", column.best): column.gap,
        }
        for (kind, name), cell in people_cells.items():
            rows.append([kind, name, "", *about_round, *cell, "", column.early])
    for line in rounds.lines:
        about_model = ["model", line.model.name, line.model.id]
        for round_cell in line.cells:
            column = round_cell.column
            marks = [int(round_cell.in_the_loop), column.early]
            about_round = [column.number, column.set_words]
            rows.append([*about_model, *about_round, *round_cell.cell, *marks])
    return csv_text(rows)
