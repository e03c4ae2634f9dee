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
from leaderboard.arena.style import COVARIATES, compute_log_ratios
from leaderboard.models import Comparison
from tasks.models import Task

SEED = 0
STYLE_DRAWS = 200
"""Draws of the bootstrap with covariates, whose fits take longer."""
OUTCOME_CODES = {"left": LEFT, "right": RIGHT, "tie": TIE, "both_bad": TIE}


@dataclass(frozen=True)
class ReportLine:
    """A model with its number of battles, wins and ties (“both bad” counts as a tie)."""

    name: str
    strength: Strength
    battles: int
    wins: int
    ties: int

    @property
    def as_json(self) -> dict[str, Any]:
        """Return the line as JSON values."""
        return {
            "name": self.name,
            "strength": self.strength.value,
            "low": self.strength.low,
            "high": self.strength.high,
            "rank": self.strength.rank,
            "battles": self.battles,
            "wins": self.wins,
            "ties": self.ties,
        }


@dataclass(frozen=True)
class Report:
    """The models by rank, then by strength; those without a rank are last.

    wins: the share of wins of the row's model against the column's model, with a tie as half a win;
    NaN if they were never compared.
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
        """Return the report as JSON values."""
        models = [line.as_json for line in self.lines]
        return {"models": models, "battles": self.battles, "voters": self.voters}

    @property
    def effects(self) -> list[dict[str, Any]]:
        """Return the effect of one more unit of each covariate on a lead; None if it is unknown."""
        effects = []
        for name, (value, low, high) in zip(COVARIATES, self.style, strict=True):
            effects.append({"name": name, "effect": value, "low": low, "high": high})
        return effects

    @property
    def unconnected(self) -> list[str]:
        """Return the models that no chain of comparisons connects with most others."""
        return [line.name for line in self.lines if line.strength.value is None]


def compute_report(task: Task, *, draws: int = DRAWS) -> Report:
    """Return the ranking of an arena's models. Raises Refused if there is no comparison."""
    if task.config.kind != "arena":
        raise Refused(f"The task {task.code!r} is no arena.", code="kind")
    ids, votes = read_votes(task)
    if not len(ids):
        raise Refused(f"The arena {task.code!r} has no comparisons yet.", code="empty")
    return _build_report(_read_names(task, ids), votes, draws)


def compute_style_report(task: Task, *, draws: int = STYLE_DRAWS) -> Report:
    """Return the ranking over comparisons with stored answers, with their style held constant.

    Raises Refused if there is no such comparison.
    """
    if task.config.kind != "arena":
        raise Refused(f"The task {task.code!r} is no arena.", code="kind")
    ids, votes = read_votes(task, only_battles=True)
    if not len(ids):
        raise Refused(f"The arena {task.code!r} has no battles yet.", code="empty")
    rows = _select_comparisons(task, only_battles=True).values_list("style", flat=True)
    # Both queries have the same order, so style and votes belong together by place.
    style = np.array([compute_log_ratios(row) for row in rows if row])
    return _build_report(_read_names(task, ids), votes, draws, style)


def _read_names(task: Task, ids: Places) -> list[str]:
    names = dict(task.contestants.values_list("pk", "name"))
    return [names[pk] for pk in ids.tolist()]


def _select_comparisons(task: Task, only_battles: bool) -> QuerySet[Comparison]:
    rows = Comparison.objects.filter(task=task).order_by("pk")
    return rows.filter(style__isnull=False) if only_battles else rows


def read_votes(
    task: Task, *, extra_ids: Sequence[int] = (), only_battles: bool = False
) -> tuple[Places, Votes]:
    """Return the ids of the compared models, in order, and the votes on them.

    extra_ids: ids of models to include even if they have not been compared yet. only_battles:
    leave out imported votes.
    """
    rows = _select_comparisons(task, only_battles)
    left_ids, right_ids, outcome, voter = [], [], [], []
    for left_id, right_id, winner, voter_id in rows.values_list(
        "left_id", "right_id", "winner", "voter_id"
    ):
        left_ids.append(left_id)
        right_ids.append(right_id)
        outcome.append(OUTCOME_CODES[winner])
        voter.append(voter_id)
    size = len(left_ids)
    # One call numbers both sides alike; `extra_ids` come last and are cut off again below.
    ids, places = np.unique(
        np.array(left_ids + right_ids + list(extra_ids), dtype=np.intp), return_inverse=True
    )
    votes = Votes(
        left=places[:size],
        right=places[size : 2 * size],
        outcome=np.array(outcome, dtype=np.intp),
        voter=np.array(voter, dtype=np.intp),
    )
    return ids, votes


def _build_report(
    names: list[str], votes: Votes, draws: int, style: Floats | None = None
) -> Report:
    """Rank the named models and count their battles."""
    count = len(names)
    ranking = rank_models(count, votes, style=style, seed=SEED, draws=draws)
    # A matrix of counts per outcome, of which wins, ties and shares are sums.
    tables = np.zeros((3, count, count))  # outcomes × left models × right models
    np.add.at(tables, (votes.outcome, votes.left, votes.right), 1)
    # A pair was shown either way round, so a table and its transpose are about the same pair.
    ties = tables[TIE] + tables[TIE].T
    wins = tables[LEFT] + tables[RIGHT].T
    battle_counts = wins + wins.T + ties
    shares = np.divide(
        wins + ties / 2,
        battle_counts,
        out=np.full_like(battle_counts, np.nan),
        where=battle_counts > 0,
    )

    def key(place: int) -> tuple[float, float, str]:
        strength = ranking.strengths[place]
        # Models without a rank come last, equal ones in the order of their names.
        return strength.rank or np.inf, -(strength.value or 0.0), names[place]

    order = sorted(range(count), key=key)
    sums = np.stack([battle_counts, wins, ties]).sum(axis=2).astype(int)
    lines = []
    for place in order:
        battles_of_model, wins_of_model, ties_of_model = sums[:, place].tolist()
        strength = ranking.strengths[place]
        lines.append(
            ReportLine(names[place], strength, battles_of_model, wins_of_model, ties_of_model)
        )
    return Report(
        lines=tuple(lines),
        battles=len(votes.left),
        voters=len(np.unique(votes.voter)),
        is_bounded=ranking.is_bounded,
        wins=shares[np.ix_(order, order)],
        style=ranking.style,
    )
