"""The ranking of an arena's models, also with the style of answers held constant. Loads numpy."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db.models import QuerySet
from numpy.typing import NDArray

from core.errors import Refused
from leaderboard.arena.ranking import (
    DRAW_COUNT,
    LEFT,
    RIGHT,
    TIE,
    Floats,
    Interval,
    PositionArray,
    Strength,
    Votes,
    rank_models,
)
from leaderboard.arena.style import COVARIATES, compute_log_ratios
from leaderboard.models import Comparison
from tasks.models import Task

SEED = 0
WEIGHT_TOLERANCE = 1e-9
"""Equal chances give the weight 1 up to rounding."""
STYLE_DRAWS = 200
"""Draws of the bootstrap with covariates, whose fits take longer."""
OUTCOME_CODES = {"left": LEFT, "right": RIGHT, "tie": TIE, "both_bad": TIE}
VoteRow = tuple[int, int, str, int, float, float]
"""The ids of the left and the right model, the winner (see OUTCOME_CODES), the voter's id, and both
weights of the vote (see Votes)."""


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
    pair_battles: NDArray[np.intp]  # battles of each pair of models
    weighted_battles: int  # battles that count more or less than one, because of their chance
    style: tuple[Interval, ...] = ()
    """The effects of the covariates; empty if they are not held constant."""

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


def compute_report(task: Task, *, draws: int = DRAW_COUNT) -> Report:
    """Return the ranking of an arena's models.

    Pairs that were drawn more often than others count less, so that the strengths are those of
    pairs drawn with equal chances.

    Raises Refused if the task is not an arena or has no comparisons.
    """
    if task.config.kind != "arena":
        raise Refused(f"The task {task.code!r} is not an arena.", code="kind")
    model_ids, votes = read_votes(task)
    if not len(model_ids):
        raise Refused(f"The arena {task.code!r} has no comparisons yet.", code="empty")
    return _build_report(_read_names(task, model_ids), votes, draws)


def compute_style_report(task: Task, *, draws: int = STYLE_DRAWS) -> Report:
    """Return the ranking over comparisons with stored answers, with their style held constant.

    Raises Refused if the task is not an arena or has no such comparisons.
    """
    if task.config.kind != "arena":
        raise Refused(f"The task {task.code!r} is not an arena.", code="kind")
    model_ids, votes = read_votes(task, only_battles=True)
    if not len(model_ids):
        raise Refused(f"The arena {task.code!r} has no battles yet.", code="empty")
    rows = _select_comparisons(task, only_battles=True).values_list("style", flat=True)
    # Both queries have the same order, so style and votes match by position.
    style = np.array([compute_log_ratios(row) for row in rows if row])
    return _build_report(_read_names(task, model_ids), votes, draws, style)


def rank_rows(task: Task, rows: Iterable[VoteRow], *, draws: int = DRAW_COUNT) -> Report:
    """Return the ranking of an arena's models from other votes than those of its people.

    rows: at least one.
    """
    model_ids, votes = build_votes(rows)
    return _build_report(_read_names(task, model_ids), votes, draws)


def _read_names(task: Task, model_ids: PositionArray) -> list[str]:
    names = dict(task.contestants.values_list("pk", "name"))
    return [names[pk] for pk in model_ids.tolist()]


def _select_comparisons(task: Task, only_battles: bool) -> QuerySet[Comparison]:
    rows = Comparison.objects.filter(task=task).order_by("pk")
    return rows.filter(style__isnull=False) if only_battles else rows


def read_votes(
    task: Task, *, extra_ids: Sequence[int] = (), only_battles: bool = False
) -> tuple[PositionArray, Votes]:
    """Return the ids of the compared models, in ascending order, and the votes on them.

    extra_ids: ids of models to include even if they have not been compared yet. only_battles:
    leave out imported votes.
    """
    rows = _select_comparisons(task, only_battles)
    columns = ("left_id", "right_id", "winner", "voter_id", "weight", "draw_weight")
    return build_votes(rows.values_list(*columns), extra_ids)


def build_votes(
    rows: Iterable[VoteRow], extra_ids: Sequence[int] = ()
) -> tuple[PositionArray, Votes]:
    """Return the ids of the models in the rows, in ascending order, and the votes on them.

    extra_ids: ids of models to include even if no row has them.
    """
    left_ids, right_ids, outcome, voter, weights, draw_weights = [], [], [], [], [], []
    for left_id, right_id, winner, voter_id, weight, draw_weight in rows:
        left_ids.append(left_id)
        right_ids.append(right_id)
        outcome.append(OUTCOME_CODES[winner])
        voter.append(voter_id)
        weights.append(weight)
        draw_weights.append(draw_weight)
    size = len(left_ids)
    # One call numbers both sides the same way; `extra_ids` come last and are removed below.
    model_ids, indices = np.unique(
        np.array(left_ids + right_ids + list(extra_ids), dtype=np.intp), return_inverse=True
    )
    votes = Votes(
        left=indices[:size],
        right=indices[size : 2 * size],
        outcome=np.array(outcome, dtype=np.intp),
        voter=np.array(voter, dtype=np.intp),
        weight=np.array(weights, dtype=float),
        draw_weight=np.array(draw_weights, dtype=float),
    )
    return model_ids, votes


def _build_report(
    names: list[str], votes: Votes, draws: int, style: Floats | None = None
) -> Report:
    """Rank the named models and count their battles."""
    count = len(names)
    ranking = rank_models(count, votes, style=style, seed=SEED, draws=draws)
    draw_weight = np.ones(len(votes.left)) if votes.draw_weight is None else votes.draw_weight
    wins, ties, battle_counts = _sum_outcomes(count, votes, np.ones(len(votes.left)))
    # A pair's chance changes with time, so its battles do not all count the same.
    weighted_wins, weighted_ties, weighted_counts = _sum_outcomes(count, votes, draw_weight)
    shares = np.divide(
        weighted_wins + weighted_ties / 2,
        weighted_counts,
        out=np.full_like(battle_counts, np.nan),
        where=battle_counts > 0,
    )

    def compute_sort_key(model_index: int) -> tuple[float, float, str]:
        strength = ranking.strengths[model_index]
        # Models without a rank come last, equal ones in the order of their names.
        return strength.rank or np.inf, -(strength.value or 0.0), names[model_index]

    order = sorted(range(count), key=compute_sort_key)
    sums = np.stack([battle_counts, wins, ties]).sum(axis=2).astype(int)
    lines = []
    for model_index in order:
        battles_of_model, wins_of_model, ties_of_model = sums[:, model_index].tolist()
        strength = ranking.strengths[model_index]
        lines.append(
            ReportLine(names[model_index], strength, battles_of_model, wins_of_model, ties_of_model)
        )
    return Report(
        lines=tuple(lines),
        battles=len(votes.left),
        voters=len(np.unique(votes.voter)),
        is_bounded=ranking.is_bounded,
        wins=shares[np.ix_(order, order)],
        pair_battles=battle_counts[np.ix_(order, order)].astype(int),
        weighted_battles=int((np.abs(draw_weight - 1) > WEIGHT_TOLERANCE).sum()),
        style=ranking.style,
    )


def _sum_outcomes(count: int, votes: Votes, weight: Floats) -> tuple[Floats, Floats, Floats]:
    """Return matrices of the weights of a model's wins, ties and comparisons with each other."""
    outcome_sums = np.zeros((3, count, count))  # outcomes × left models × right models
    np.add.at(outcome_sums, (votes.outcome, votes.left, votes.right), weight)
    # A pair was shown in both orders, so a table and its transpose are about the same pair.
    ties = outcome_sums[TIE] + outcome_sums[TIE].T
    wins = outcome_sums[LEFT] + outcome_sums[RIGHT].T
    return wins, ties, wins + wins.T + ties
