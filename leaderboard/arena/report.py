"""An arena's models, ranked, also with the style of answers held constant. It loads numpy."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db.models import QuerySet
from numpy.typing import NDArray

from core.errors import Refused
from leaderboard.arena.ranking import (
    DRAWS,
    LEFT,
    RIGHT,
    TIE,
    Floats,
    Interval,
    Places,
    Strength,
    Votes,
    rank_models,
)
from leaderboard.arena.style import STYLE, difference
from leaderboard.models import Comparison
from tasks.models import Task

SEED = 0
STYLE_DRAWS = 200
"""Of the bootstrap with covariates, whose fits take longer."""
OUTCOMES = {"left": LEFT, "right": RIGHT, "tie": TIE, "both_bad": TIE}


@dataclass(frozen=True)
class ReportLine:
    """A model: wins and ties (“both bad” included) among its battles."""

    name: str
    strength: Strength
    battles: int
    wins: int
    ties: int


@dataclass(frozen=True)
class Report:
    """The models by rank, then by strength; those without a rank are last.

    wins: of the model of the row against that of the column, a tie is half a win; NaN: never
    compared.
    """

    lines: tuple[ReportLine, ...]
    battles: int
    voters: int
    is_bounded: bool
    wins: NDArray[np.floating[Any]]
    style: tuple[Interval, ...] = ()
    """The effects of STYLE, where they are held constant."""

    @property
    def as_json(self) -> dict[str, Any]:
        """Return the report for programs."""
        return {
            "models": [
                {
                    "name": line.name,
                    "strength": line.strength.value,
                    "low": line.strength.low,
                    "high": line.strength.high,
                    "rank": line.strength.rank,
                    "battles": line.battles,
                    "wins": line.wins,
                    "ties": line.ties,
                }
                for line in self.lines
            ],
            "battles": self.battles,
            "voters": self.voters,
        }

    @property
    def effects(self) -> list[dict[str, Any]]:
        """Return what one more unit of each covariate adds to a lead; None where it is unknown."""
        return [
            {"name": name, "effect": value, "low": low, "high": high}
            for name, (value, low, high) in zip(STYLE, self.style, strict=True)
        ]

    @property
    def unconnected(self) -> list[str]:
        """Return the models that no comparison connects with most others."""
        return [line.name for line in self.lines if line.strength.value is None]


def report_of(task: Task, *, draws: int = DRAWS) -> Report:
    """Return the ranking of an arena's models. Raises Refused when there is nothing to rank."""
    if task.config.kind != "arena":
        raise Refused(f"The task {task.code!r} is no arena.", code="kind")
    ids, votes = votes_of(task)
    if not len(ids):
        raise Refused(f"The arena {task.code!r} has no comparisons yet.", code="empty")
    return _report(_names(task, ids), votes, draws)


def style_report_of(task: Task, *, draws: int = STYLE_DRAWS) -> Report:
    """Return the ranking over comparisons with known answers, with their style held constant.

    Raises Refused when there is nothing to rank.
    """
    if task.config.kind != "arena":
        raise Refused(f"The task {task.code!r} is no arena.", code="kind")
    ids, votes = votes_of(task, only_battles=True)
    if not len(ids):
        raise Refused(f"The arena {task.code!r} has no battles yet.", code="empty")
    rows = _comparisons(task, only_battles=True).values_list("style", flat=True)
    style = np.array([difference(row) for row in rows if row])
    return _report(_names(task, ids), votes, draws, style)


def _names(task: Task, ids: Places) -> list[str]:
    names = dict(task.contestants.values_list("pk", "name"))
    return [names[pk] for pk in ids.tolist()]


def _comparisons(task: Task, only_battles: bool) -> QuerySet[Comparison]:
    rows = Comparison.objects.filter(task=task).order_by("pk")
    return rows.filter(style__isnull=False) if only_battles else rows


def votes_of(
    task: Task, *, also: Sequence[int] = (), only_battles: bool = False
) -> tuple[Places, Votes]:
    """Return the ids of the compared models, in order, and the votes on them.

    also: ids of models that may not have been compared yet. only_battles: without imported votes.
    """
    rows = _comparisons(task, only_battles)
    parts = list(rows.values_list("left_id", "right_id", "winner", "voter_id"))
    left, right, winner, voter = map(list, zip(*parts, strict=True)) if parts else ([],) * 4
    ids, places = np.unique(np.array([*left, *right, *also], dtype=np.intp), return_inverse=True)
    outcome = np.array([OUTCOMES[one] for one in winner], dtype=np.intp)
    size = len(left)
    voters = np.array(voter, dtype=np.intp)
    return ids, Votes(places[:size], places[size : 2 * size], outcome, voters)


def _report(names: list[str], votes: Votes, draws: int, style: Floats | None = None) -> Report:
    count = len(names)
    found = rank_models(count, votes, style=style, seed=SEED, draws=draws)
    tables = np.zeros((3, count, count))
    np.add.at(tables, (votes.outcome, votes.left, votes.right), 1)
    ties = tables[TIE] + tables[TIE].T
    wins = tables[LEFT] + tables[RIGHT].T
    played = wins + wins.T + ties
    shares = np.divide(wins + ties / 2, played, out=np.full_like(played, np.nan), where=played > 0)

    def place(n: int) -> tuple[float, float, str]:
        one = found.strengths[n]
        return one.rank or np.inf, -(one.value or 0.0), names[n]

    order = sorted(range(count), key=place)
    sums = np.stack([played, wins, ties]).sum(axis=2).astype(int)
    lines = tuple(ReportLine(names[n], found.strengths[n], *sums[:, n].tolist()) for n in order)
    voters = len(np.unique(votes.voter))
    wins = shares[np.ix_(order, order)]
    return Report(lines, len(votes.left), voters, found.is_bounded, wins, found.style)
