"""How many votes an arena needs for narrower intervals. Pure.

docs/statistics.md (Battles chosen by information) has the assumptions.
"""

from collections.abc import Mapping, Sequence
from math import ceil
from statistics import fmean
from typing import Any, NamedTuple

HALF_WIDTHS = (1.0, 0.5, 0.3, 0.2, 0.1, 0.05)
"""Half-widths of intervals of strengths that are offered, as natural logarithms."""
MAX_PLAN_ROWS = 3


class PlanRow(NamedTuple):
    """A half-width, the votes that it needs in all, and how many of them are still to come."""

    half_width: float
    votes: int
    more_votes: int


class VotePlan(NamedTuple):
    """The mean half-width that the votes of an arena give, and narrower ones, the widest first."""

    votes: int
    half_width: float
    rows: tuple[PlanRow, ...]


def plan_votes(table: Mapping[str, Any]) -> VotePlan | None:
    """Return how many votes narrower intervals need; None while no model has an interval.

    The variance of a strength falls with one over the number of votes. So an interval half as wide
    needs four times as many. table: the ranking as JSON values, with `models` and `battles`.

    >>> models = [{"low": -0.4, "high": 0.4}, {"low": -0.1, "high": 0.7}, {"low": None, "high": 1}]
    >>> plan_votes({"models": models, "battles": 100}).rows[0]
    PlanRow(half_width=0.3, votes=178, more_votes=78)
    """
    half_widths = _list_half_widths(table["models"])
    if not half_widths:
        return None
    votes, half_width = table["battles"], fmean(half_widths)
    rows: list[PlanRow] = []
    for target in HALF_WIDTHS:
        if target < half_width and len(rows) < MAX_PLAN_ROWS:
            needed = ceil(votes * (half_width / target) ** 2)
            rows.append(PlanRow(target, needed, needed - votes))
    return VotePlan(votes, half_width, tuple(rows))


def _list_half_widths(models: Sequence[Mapping[str, Any]]) -> list[float]:
    half_widths = []
    for model in models:
        # Only with two voters is there an interval.
        if model["low"] is not None and model["high"] is not None:
            half_widths.append((model["high"] - model["low"]) / 2)
    return half_widths
