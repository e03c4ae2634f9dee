"""Every model against every round: do people still lead, what was learned, has progress stalled?

Intervals of differences combine the intervals of both sides as if independent, since rounds have
different examples. It loads numpy (see `leaderboard.board.matrix`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from django.db.models import prefetch_related_objects
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, override

from core.data.adaptive_cache import CachedResult
from core.files.tables import build_csv_text
from core.numbers import format_decimal
from leaderboard.board.cells import Cell
from leaderboard.board.exports import describe_early_set
from leaderboard.board.matrix import BoardModel, Matrix
from leaderboard.board.sets import BoardSet
from leaderboard.board.tables import read_cell
from leaderboard.rounds.progress import Progress, RoundStep, compare_rounds
from tasks.models import Round
from validation.rates.rates import Rate, compute_newcombe_interval
from validation.templatetags.numbers import HEADLINE_AUTHORS, HEADLINE_DECIDED

if TYPE_CHECKING:  # because it imports this module
    from leaderboard.rounds.worn import WornMeter

PEOPLE_METRICS = ("accuracy",)
"""Metrics that can be compared with the agreement of people: both are shares of correct labels."""
NEAR_POINTS, FAR_POINTS = 1.5, 6
"""Distances from a row's mean, in points, at which a cell gets the pale or the strong shade."""
EMPTY_CELL = Cell(None)
PROGRESS_WORDS: Mapping[Progress, str] = {
    Progress.FIRST: gettext_noop("First round"),
    Progress.BETTER: gettext_noop("Harder: the catch rate is lower than in round %(before)s"),
    Progress.STALLED: gettext_noop("Stalled: no clear change since round %(before)s"),
    Progress.UNCLEAR: gettext_noop("Too few examples to compare with round %(before)s"),
    Progress.WORSE: gettext_noop("The catch rate is higher than in round %(before)s"),
    Progress.NOISE: gettext_noop("Stalled: the errors left may be label errors"),
    Progress.UNKNOWN: gettext_noop("Not known yet"),
}


@dataclass(frozen=True)
class RoundColumn:
    """A round with its set, if models are run on it. Rates and differences are in percent.

    gap: people − the best model on the set. loop_gap: people − the models in the round's loop, on
    the same votes. previous_number: the number of the round that this round is compared with.
    """

    number: int
    set: BoardSet | None
    set_index: int  # the set's index in the matrix; -1: none
    people: Cell
    gap: Cell
    best: str  # the name of the best model
    loop_gap: Cell
    vmer: Cell
    noise: float | None
    step: RoundStep
    previous_number: int | None
    vmer_n: int = 0  # the examples behind the vMER
    is_thin: bool = False  # whether the vMER rests on too few examples or authors for a headline

    @property
    def set_words(self) -> str:
        """Return the set's name and version; "" without a set."""
        return self.set.title if self.set else ""

    @property
    def early_note(self) -> str:
        """Describe in English how much of the round was judged for its set; "" if all was."""
        return describe_early_set(asdict(self.set)) if self.set else ""

    @property
    def progress(self) -> str:
        """Describe the progress since the previous round."""
        return _(PROGRESS_WORDS[self.step.progress]) % {"before": self.previous_number}


@dataclass(frozen=True)
class Change:
    """The difference between a model's results on its newest and its oldest round, in points."""

    oldest: int
    newest: int
    points: Cell

    @property
    def words(self) -> str:
        """Describe the conclusion to draw from the change."""
        if self.points.low is None or self.points.high is None or self.points.value is None:
            return _("not known")
        values = {
            "points": format_decimal(abs(self.points.value)),
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
    is_outdated: bool
    is_kept_back: bool


@dataclass(frozen=True)
class ModelLine:
    """A model's value on each column's set, and its change from the oldest to the newest."""

    model: BoardModel
    cells: list[RoundCell]
    change: Change | None

    @property
    def values(self) -> list[float | None]:
        """Return the model's value on each round's set."""
        return [round_cell.cell.value for round_cell in self.cells]

    @property
    def shaded_cells(self) -> list[tuple[RoundCell, str]]:
        """Return each cell with its shade: how far it lies above or below the row's mean."""
        values = [value for value in self.values if value is not None]
        mean = sum(values) / max(1, len(values))
        cells = []
        for round_cell in self.cells:
            value = round_cell.cell.value
            cells.append((round_cell, "" if value is None else shade_difference(value - mean)))
        return cells

    @property
    def ends(self) -> tuple[float, float] | None:
        """Return the first and last value, shown beside the sparkline; None with fewer than two."""
        values = [value for value in self.values if value is not None]
        return (values[0], values[-1]) if len(values) > 1 else None


@dataclass(frozen=True)
class Rounds:
    """The table of all models against all rounds.

    Models that were run on the most rounds come first; ties are ordered by mean, highest first.
    """

    columns: tuple[RoundColumn, ...]
    lines: tuple[ModelLine, ...]

    @property
    def has_best_gaps(self) -> bool:
        """Return whether people were compared with the best model in any round."""
        return any(column.gap.value is not None for column in self.columns)

    @property
    def verdict(self) -> str:
        """Return a sentence that says whether progress has stalled."""
        with_vmer = [column for column in self.columns if column.vmer.value is not None]
        if not with_vmer:
            return _("Progress appears here once there is enough data.")
        last = with_vmer[-1]
        values = {"number": last.number, "progress": last.progress}
        # Translators: progress: a clause such as “no clear change since round 2”
        return _("Round %(number)d: %(progress)s.") % values


class _PeopleRates(NamedTuple):
    """The rounds of a task by number, and the rates of their votes by round id."""

    rounds: Mapping[int, Round]
    statistics_by_round: Mapping[int, CachedResult]

    def get_rate(self, number: int, name: str) -> Rate | None:
        """Return a round's rate; None if the round is not counted yet or lacks the rate."""
        if number not in self.rounds:
            return None
        round_statistics = self.statistics_by_round.get(self.rounds[number].pk)
        value = round_statistics.numbers[name] if round_statistics else None
        return value if isinstance(value, Rate) else None


def build_rounds(
    matrix: Matrix, rounds: Sequence[Round], round_statistics: Mapping[int, CachedResult]
) -> Rounds:
    """Return the matrix of a task's rounds.

    round_statistics: the statistics of rounds by id; rounds that are not counted yet are missing.
    One query, for the parents of rounds.
    """
    prefetch_related_objects(rounds, "parents")
    people = _PeopleRates({round.number: round for round in rounds}, round_statistics)
    set_indices = []
    for set_index, board_set in enumerate(matrix.sets):
        if board_set.round is not None:
            set_indices.append((board_set.round, set_index))
    with_sets = {number for number, _place in set_indices}
    # Rounds without a set have people's numbers, which are also shown.
    set_indices += [(number, -1) for number in people.rounds if number not in with_sets]
    columns = tuple(
        _build_column(matrix, people, number, set_index)
        for number, set_index in sorted(set_indices)
    )
    return Rounds(columns, tuple(_iter_lines(matrix, columns)))


def _build_column(matrix: Matrix, people: _PeopleRates, number: int, set_index: int) -> RoundColumn:
    """Return the column of a round. set_index: the index of its set; -1 without one."""
    accuracy = people.get_rate(number, "human_accuracy")
    previous_number = _find_round_before(people.rounds, number)
    # Two rounds at most: progress is a step from one to the next.
    compared_numbers = [number]
    if previous_number is not None:
        compared_numbers = [previous_number, number]
    vmers = [people.get_rate(each, "vmer") for each in compared_numbers]
    noises = [_compute_noise(people.get_rate(each, "human_accuracy")) for each in compared_numbers]
    gap, best_name = _compute_gap(matrix, set_index, accuracy)
    vmer = vmers[-1]
    return RoundColumn(
        number=number,
        set=matrix.sets[set_index] if set_index >= 0 else None,
        set_index=set_index,
        people=_convert_to_cell(accuracy),
        gap=gap,
        best=best_name,
        loop_gap=_convert_to_cell(people.get_rate(number, "human_model_gap")),
        vmer=_convert_to_cell(vmer),
        noise=None if noises[-1] is None else 100 * noises[-1],
        step=compare_rounds(vmers, noises)[-1],
        previous_number=previous_number,
        vmer_n=vmer.n if vmer else 0,
        is_thin=vmer is not None and _is_thin(vmer),
    )


def _is_thin(rate: Rate) -> bool:
    has_few_authors = rate.clusters is not None and rate.clusters < HEADLINE_AUTHORS
    return rate.n < HEADLINE_DECIDED or has_few_authors


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


def _compute_gap(matrix: Matrix, set_index: int, people: Rate | None) -> tuple[Cell, str]:
    """Return people − the best model on a set, and the model's name; empty if not comparable."""
    if set_index < 0 or people is None or matrix.main not in PEOPLE_METRICS or not matrix.models:
        return EMPTY_CELL, ""
    # Models that were not run on it must not win.
    values = np.nan_to_num(matrix.numbers.values[:, set_index, 0], nan=-1.0)
    best_index = int(values.argmax())
    cell = read_cell(matrix, best_index, set_index, matrix.main)
    if cell.value is None:
        return EMPTY_CELL, ""
    return subtract_cells(_convert_to_cell(people), cell), matrix.models[best_index].name


def shade_difference(points: float) -> str:
    """Return the CSS class of a cell for its distance from the row's mean, in five steps.

    >>> [shade_difference(points) for points in (-20, -3, 0.5, 3, 20)]
    ['lose-2', 'lose-1', '', 'win-1', 'win-2']
    """
    side = "win" if points > 0 else "lose"
    if abs(points) >= FAR_POINTS:
        return f"{side}-2"
    return f"{side}-1" if abs(points) >= NEAR_POINTS else ""


def subtract_cells(first: Cell, second: Cell) -> Cell:
    """Return the difference of two independent numbers; empty if one lacks an interval.

    >>> subtract_cells(Cell(90.0, 87.0, 93.0), Cell(70.0, 66.0, 74.0))
    Cell(value=20.0, low=15.0, high=25.0)
    """
    first_rate, second_rate = _convert_to_rate(first), _convert_to_rate(second)
    if first_rate is None or second_rate is None:
        return EMPTY_CELL
    low, high = compute_newcombe_interval(first_rate, second_rate)
    return Cell(first_rate.value - second_rate.value, low, high)


def _convert_to_rate(cell: Cell) -> Rate | None:
    if cell.value is None or cell.low is None or cell.high is None:
        return None
    return Rate(cell.value, cell.low, cell.high, 0, "")


def _iter_lines(matrix: Matrix, columns: Sequence[RoundColumn]) -> Iterator[ModelLine]:
    """Yield the models: those run on most rounds first, then by their mean."""
    set_indices = [column.set_index for column in columns if column.set]
    values = matrix.numbers.values[:, set_indices, matrix.metrics.index(matrix.main)]
    count = (~np.isnan(values)).sum(axis=1)
    mean = np.nan_to_num(values).sum(axis=1) / np.maximum(count, 1)
    order = np.lexsort((np.arange(len(mean)), -mean, -count))  # the last key decides first
    for model in order.tolist():
        cells = [_build_round_cell(matrix, model, column) for column in columns]
        yield ModelLine(matrix.models[model], cells, _compute_change(cells))


def _build_round_cell(matrix: Matrix, model: int, column: RoundColumn) -> RoundCell:
    if not column.set:
        return RoundCell(
            column, EMPTY_CELL, in_the_loop=False, is_outdated=False, is_kept_back=False
        )
    numbers, cell_index = matrix.numbers, (model, column.set_index)
    return RoundCell(
        column=column,
        cell=read_cell(matrix, model, column.set_index, matrix.main),
        in_the_loop=bool(numbers.in_the_loop[cell_index]),
        is_outdated=bool(numbers.outdated[cell_index]),
        is_kept_back=bool(numbers.kept_back[cell_index]),
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


# Programs read it, so it must not depend on the reader's language.
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


def write_rounds_csv(rounds: Rounds, meters: "Sequence[WornMeter]" = ()) -> str:
    """Return CSV with a row for each round and model, and rows for people and the differences.

    meters: how worn out the rounds are; each adds three rows, the last one with dates.

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
            rows.append([kind, name, "", *about_round, *cell, "", column.early_note])
    for line in rounds.lines:
        about_model = ["model", line.model.name, line.model.id]
        for round_cell in line.cells:
            column = round_cell.column
            marks = [int(round_cell.in_the_loop), column.early_note]
            about_round = [column.number, column.set_words]
            rows.append([*about_model, *about_round, *round_cell.cell, *marks])
    for meter in meters:
        for kind, values in meter.csv_values.items():
            rows.append([kind, "", "", meter.round, "", *values, "", ""])
    return build_csv_text(rows)
