"""Every model against every round: do people still lead, what was learned, has progress stalled?

Intervals of differences join those of their two sides as if independent, since rounds have other
examples. It loads numpy (see `leaderboard.board.matrix`).
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
from leaderboard.board.exports import early_words
from leaderboard.board.matrix import Matrix, Model
from leaderboard.board.sets import BoardSet
from leaderboard.board.tables import cell_of
from leaderboard.rounds.progress import Progress, Step, progress_steps
from tasks.models import Round
from validation.rules.rates import Rate, newcombe

LINES = 3
"""Models in the chart with people: it has marks for four lines."""
LIKE_PEOPLE = ("accuracy",)
"""Metrics that compare with human accuracy: both are shares of right labels."""
NOTHING = Cell(None)
WORDS: Mapping[Progress, str] = {
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
    the same votes. before: the number of the round that this one is compared with.
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
        """Return the set with its version; "" without one."""
        return self.set.title if self.set else ""

    @property
    def early(self) -> str:
        """Describe how far the round was judged when the set was taken, in English; "" if done."""
        return early_words(asdict(self.set)) if self.set else ""

    @property
    def progress(self) -> str:
        """Describe how the round compares with the one before."""
        return _(WORDS[self.step.progress]) % {"before": self.before}


@dataclass(frozen=True)
class Change:
    """A model's newest round minus its oldest one, in points."""

    oldest: int
    newest: int
    points: Cell

    @property
    def words(self) -> str:
        """Describe what may be concluded."""
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
    """A model's value on a round's set, and the marks of its run there."""

    column: RoundColumn
    cell: Cell
    in_the_loop: bool
    outdated: bool
    kept_back: bool


@dataclass(frozen=True)
class ModelLine:
    """A model on each column's set, and what changed from the oldest to the newest."""

    model: Model
    cells: list[RoundCell]
    change: Change | None

    @property
    def values(self) -> list[float | None]:
        """Return the model's value on each round's set."""
        return [one.cell.value for one in self.cells]


@dataclass(frozen=True)
class Rounds:
    """The page's table: those models first that were run on most rounds, then by their mean."""

    columns: tuple[RoundColumn, ...]
    lines: tuple[ModelLine, ...]

    @property
    def verdict(self) -> str:
        """Say in a sentence whether progress has stalled."""
        known = [one for one in self.columns if one.vmer.value is not None]
        if not known:
            return _("No round has a vMER yet, so nothing can be said about progress.")
        last = known[-1]
        values = {"number": last.number, "progress": last.progress}
        return _("Round %(number)d: %(progress)s.") % values


def rounds_of(matrix: Matrix, rounds: Sequence[Round], kept: Mapping[int, Kept]) -> Rounds:
    """Return the matrix of a task's rounds.

    kept: the numbers of the rounds by id, as far as they are counted.
    One query: on which rounds a round follows.
    """
    prefetch_related_objects(rounds, "parents")
    by_number = {round.number: round for round in rounds}
    known = enumerate(matrix.sets)
    sets = [(one.round, place, one) for place, one in known if one.round is not None]
    without = by_number.keys() - {number for number, _, _ in sets}
    places = [*sets, *((number, -1, None) for number in without)]
    columns = tuple(
        _column(matrix, (number, place, one), by_number, kept)
        for number, place, one in sorted(places, key=lambda each: each[:2])
    )
    return Rounds(columns, tuple(_lines(matrix, columns)))


def _column(
    matrix: Matrix,
    at: tuple[int, int, BoardSet | None],
    rounds: Mapping[int, Round],
    kept: Mapping[int, Kept],
) -> RoundColumn:
    number, place, one = at
    before = _before(rounds, number)
    people, loop_gap = (
        _rate(rounds, kept, number, name) for name in ("human_accuracy", "human_model_gap")
    )
    known = [each for each in (before, number) if each is not None]
    vmers = [_rate(rounds, kept, each, "vmer") for each in known]
    noises = [_noise(_rate(rounds, kept, each, "human_accuracy")) for each in known]
    gap, best = _gap(matrix, place, people)
    return RoundColumn(
        number=number,
        set=one,
        place=place,
        people=_cell(people),
        gap=gap,
        best=best,
        loop_gap=_cell(loop_gap),
        vmer=_cell(vmers[-1]),
        noise=None if noises[-1] is None else 100 * noises[-1],
        step=progress_steps(vmers, noises)[-1],
        before=before,
    )


def _before(rounds: Mapping[int, Round], number: int) -> int | None:
    """Return the newest round that this one follows: a parent, or else the number before it."""
    one = rounds.get(number)
    parents = {parent.number for parent in one.parents.all()} & rounds.keys() if one else set()
    return max(parents or {other for other in rounds if other < number}, default=None)


def _rate(
    rounds: Mapping[int, Round], kept: Mapping[int, Kept], number: int, name: str
) -> Rate | None:
    found = kept.get(rounds[number].pk) if number in rounds else None
    value = found.numbers[name] if found else None
    return value if isinstance(value, Rate) else None


def _noise(people: Rate | None) -> float | None:
    """Return the share of votes that differ from the others': at most so many labels are wrong."""
    return None if people is None else 1 - people.value


def _cell(rate: Rate | None) -> Cell:
    return NOTHING if rate is None else Cell(100 * rate.value, 100 * rate.low, 100 * rate.high)


def _gap(matrix: Matrix, place: int, people: Rate | None) -> tuple[Cell, str]:
    """Return people − the best model on a set, and its name; nothing when they do not compare."""
    if place < 0 or people is None or matrix.main not in LIKE_PEOPLE or not matrix.models:
        return NOTHING, ""
    values = np.nan_to_num(matrix.numbers.values[:, place, 0], nan=-1.0)
    best = int(values.argmax())
    cell = cell_of(matrix, best, place, matrix.main)
    return minus(_cell(people), cell), matrix.models[best].name if cell.value is not None else ""


def minus(first: Cell, second: Cell) -> Cell:
    """Return the difference of two numbers as if independent; nothing if one lacks an interval.

    >>> minus(Cell(90.0, 87.0, 93.0), Cell(70.0, 66.0, 74.0))
    Cell(value=20.0, low=15.0, high=25.0)
    """
    rates = [_as_rate(cell) for cell in (first, second)]
    if rates[0] is None or rates[1] is None:
        return NOTHING
    low, high = newcombe(rates[0], rates[1])
    return Cell(rates[0].value - rates[1].value, low, high)


def _as_rate(cell: Cell) -> Rate | None:
    if cell.value is None or cell.low is None or cell.high is None:
        return None
    return Rate(cell.value, cell.low, cell.high, 0, "")


def _lines(matrix: Matrix, columns: Sequence[RoundColumn]) -> Iterator[ModelLine]:
    run = [column.place for column in columns if column.set]
    values = matrix.numbers.values[:, run, matrix.metrics.index(matrix.main)]
    count = (~np.isnan(values)).sum(axis=1)
    mean = np.nan_to_num(values).sum(axis=1) / np.maximum(count, 1)
    for at in np.lexsort((np.arange(len(mean)), -mean, -count)).tolist():
        cells = [_round_cell(matrix, at, column) for column in columns]
        yield ModelLine(matrix.models[at], cells, _change(cells))


def _round_cell(matrix: Matrix, model: int, column: RoundColumn) -> RoundCell:
    if not column.set:
        return RoundCell(column, NOTHING, in_the_loop=False, outdated=False, kept_back=False)
    numbers, at = matrix.numbers, (model, column.place)
    cell = cell_of(matrix, *at, matrix.main)
    marks = (numbers.in_the_loop, numbers.outdated, numbers.kept_back)
    return RoundCell(column, cell, *(bool(mark[at]) for mark in marks))


def _change(cells: Sequence[RoundCell]) -> Change | None:
    """Return the change between the first and the last round that the model was run on."""
    known = [(one.column.number, one.cell) for one in cells if one.cell.value is not None]
    if not known or known[0][0] == known[-1][0]:
        return None
    (oldest, was), (newest, now) = known[0], known[-1]
    return Change(oldest, newest, minus(now, was))


def draw_charts(found: Rounds, title: str) -> list[tuple[str, SafeString]]:
    """Draw people and the first models over the rounds, and vMER; return each with its title.

    A chart with fewer than two rounds is left out.
    """
    models = {
        f"{n}. {line.model.name}": [one.cell for one in line.cells]
        for n, line in enumerate(found.lines[:LINES], start=1)
    }
    drawn = {
        title: people_of(found) | models,
        _("vMER by round"): {"vMER": [column.vmer for column in found.columns]},
    }
    made = ((title, draw_chart(found, lines, title)) for title, lines in drawn.items())
    return [one for one in made if one[1]]


def people_of(found: Rounds) -> dict[str, list[Cell]]:
    """Return the line of people in a chart."""
    return {_("People"): [column.people for column in found.columns]}


def draw_chart(found: Rounds, lines: Mapping[str, Sequence[Cell]], title: str) -> SafeString:
    """Draw the lines that have a value over the rounds; "" with fewer than two rounds."""
    known = {
        name: _points(found.columns, cells)
        for name, cells in lines.items()
        if any(cell.value is not None for cell in cells)
    }
    return line_chart(known, title=title) if known and len(found.columns) > 1 else SafeString()


def _points(columns: Iterable[RoundColumn], cells: Iterable[Cell]) -> list[Point]:
    return [
        Point(
            _("Round %(number)d") % {"number": column.number},
            *(None if part is None else part / 100 for part in cell),
        )
        for column, cell in zip(columns, cells, strict=True)
    ]


@override("en")
def rounds_body(matrix: Matrix, found: Rounds) -> dict[str, Any]:
    """Return everything for other programs, in English; rates and differences in percent."""
    return {
        "task": matrix.task,
        "metric": matrix.main,
        "verdict": found.verdict,
        "rounds": [
            {
                "round": column.number,
                "set": column.set_words or None,
                "sha256": column.set and column.set.sha256,
                "is_provisional": column.set is not None and column.set.is_provisional,
                "judged": column.set and column.set.judged,
                "to_judge": column.set and column.set.to_judge,
                "people": column.people._asdict(),
                "people_minus_best": column.gap._asdict(),
                "best": column.best,
                "people_minus_loop": column.loop_gap._asdict(),
                "vmer": column.vmer._asdict(),
                "noise": column.noise,
                "progress": column.step.progress,
            }
            for column in found.columns
        ],
        "models": [
            {
                "id": str(line.model.id),
                "model": line.model.name,
                "owner": line.model.owner,
                "team": line.model.team,
                "rounds": [
                    {
                        "round": one.column.number,
                        "in_the_loop": one.in_the_loop,
                        **one.cell._asdict(),
                    }
                    for one in line.cells
                ],
                "newest_minus_oldest": line.change and line.change.points._asdict(),
            }
            for line in found.lines
        ],
    }


def rounds_csv(found: Rounds) -> str:
    """Write a line per model, per number of people and per difference, for each round.

    What was not run is empty.
    """
    rows: list[list[Any]] = [
        ["kind", "name", "id", "round", "set", "value", "low", "high", "in_the_loop", "provisional"]
    ]
    for column in found.columns:
        own = {
            ("people", ""): column.people,
            ("vmer", ""): column.vmer,
            ("people_minus_loop", ""): column.loop_gap,
            ("people_minus_best", column.best): column.gap,
        }
        for kind, cell in own.items():
            rows.append([*kind, "", column.number, column.set_words, *cell, "", column.early])
    for line in found.lines:
        model = "model", line.model.name, line.model.id
        for column, cell, loop, *_marks in line.cells:
            rows.append([*model, column.number, column.set_words, *cell, int(loop), column.early])
    return csv_text(rows)
