"""Dynascore: several metrics as one number, each in units of the main metric.

A table holds the raw metrics of each model: finite numbers, or None where a result is missing.
`classic` is the formula of Dynaboard (Ma et al. 2021), `robust` the same idea with exchange rates
that a further model can hardly move. docs/statistics.md has both, and every edge case.

`python -m leaderboard.dynascore FILE.jsonl` scores a table that lies in a file.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, floor, inf, isclose, isfinite, nan
from typing import TYPE_CHECKING, Literal

from leaderboard.scoring.pareto import front

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Table = Mapping[str, Mapping[str, float | None]]
Errors = Mapping[str, float | None]
"""Standard errors of the main metric, by model; None or absent: unknown."""

WEIGHTS = {"perf": 4.0, "throughput": 1.0, "memory": 1.0, "fairness": 1.0, "robustness": 1.0}
MEMORY_BUDGET = 16.0
"""GB, as in the paper's caption; the numbers printed there come out with 32."""
GAPS = {"classic": 1e-4, "robust": 5e-3}
"""Pairs count that differ in the main metric by more than this share of its greatest value."""
NOISE = 5e-3
"""In robust, a smaller share of a metric's greatest utility is no difference: of the same model
twice, memory differs by so much. So nothing is divided by what happens to be almost equal."""
ROUNDING = 1e-12
"""Differences below this share of the greatest value are of the computer's making."""


@dataclass(frozen=True)
class Rule:
    """How a table is scored. Raises ValueError for numbers that make no sense.

    weights: of each metric, 0 or more; only their ratios matter. budgets: metrics of which less is
    better, and what they are taken from: memory of 5 counts as 11 where the budget is 16. min_gap:
    in units of the main metric; None: GAPS says.
    """

    mode: Literal["classic", "robust"] = "robust"
    weights: Mapping[str, float] = field(default_factory=lambda: dict(WEIGHTS))
    main: str = "perf"
    budgets: Mapping[str, float] = field(default_factory=lambda: {"memory": MEMORY_BUDGET})
    min_gap: float | None = None

    def __post_init__(self) -> None:
        for metric, weight in self.weights.items():
            if not 0 <= weight < inf:
                raise ValueError(f"The weight of {metric} is {weight}; give a number from 0 up.")
        if not any(self.weights.values()):
            raise ValueError("All weights are 0: give at least one weight above 0.")
        if not all(map(isfinite, self.budgets.values())):
            raise ValueError("A budget must be a finite number.")
        if self.min_gap is not None and not 0 <= self.min_gap < inf:
            raise ValueError(f"The smallest gap is {self.min_gap}; give a number from 0 up.")

    @property
    def metrics(self) -> tuple[str, ...]:
        """The main metric, then the others by name."""
        return (self.main, *sorted({*self.weights} - {self.main}))

    def utilities(
        self, row: Mapping[str, float | None], metrics: Collection[str]
    ) -> dict[str, float]:
        """The values as something of which more is better; what is missing is left out."""
        return {
            metric: self.budgets[metric] - raw if metric in self.budgets else raw
            for metric in metrics
            if (raw := row.get(metric)) is not None
        }


@dataclass(frozen=True)
class Rates:
    """How many units of each metric one unit of the main metric is worth; None: nobody can tell.

    A snapshot stores this value, and later models are scored by it. pool: the models that the rates
    were read from. notices: a sentence for each metric that has none.
    """

    values: Mapping[str, float | None]
    pool: tuple[str, ...]
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class ScoredModel:
    """A model's score and rank (1 is the best; equal scores share one), or why it has none.

    least, most: the worst and the best score that it may have, where not all was measured.
    """

    model: str
    dynascore: float | None
    rank: int | None
    note: str = ""
    least: float | None = None
    most: float | None = None


@dataclass(frozen=True)
class Interval:
    """95 % of the draws have the score, and the rank, between these."""

    low: float
    high: float
    rank_low: int
    rank_high: int


def exchange_rates(rule: Rule, table: Table, errors: Errors | None = None) -> Rates:
    """The rates that a pool of models shows; neither weights nor the order of models matter.

    classic: the mean of |Δ metric| ÷ Δ main over neighbours in the main metric, of all models with
    a complete row. robust: its median over all pairs of those that no other one dominates, because
    only there something is paid for something: so a dominated model, or a copy, moves nothing.
    In robust, a pair whose errors are known counts when it differs by more than twice the error of
    its difference, whatever `min_gap` says.
    """
    useful = {model: rule.utilities(row, rule.metrics) for model, row in table.items()}
    had = {rule.main}.union(*useful.values())
    known = [metric for metric in rule.metrics if metric in had]
    pool = {model: row for model, row in useful.items() if len(row) == len(known)}
    if rule.mode == "robust":
        best = front(pool, dict.fromkeys(known, 1))
        pool = {model: row for model, row in pool.items() if model in best}
    # As a sorted set, so that copies count once and the order of models is none.
    rows = sorted(
        {
            (
                *(row[metric] for metric in known),
                nan if (e := (errors or {}).get(model)) is None else e,
            )
            for model, row in pool.items()
        }
    )
    ratios = dict(zip(known[1:], _ratios(rule, rows, len(known)), strict=True))
    values: dict[str, float | None] = {rule.main: 1.0}
    notices = []
    for metric in rule.metrics[1:]:
        found = _rate(rule, ratios[metric]) if metric in ratios else "no model has it"
        values[metric] = None if isinstance(found, str) else found
        if isinstance(found, str):
            notices.append(f"{metric} is left out and the other weights count more: {found}.")
    return Rates(values, tuple(sorted(pool)), tuple(notices))


def _ratios(rule: Rule, rows: Sequence[Sequence[float]], metrics: int) -> "NDArray[np.float64]":
    """|Δ metric| ÷ |Δ main| of the pairs that truly differ: a line a metric, but for the main one.

    rows: models × metrics, the main one first, then its standard error (NaN: unknown).
    """
    import numpy as np

    table = np.array(rows, dtype=float).reshape(len(rows), metrics + 1)
    values, error = table[:, :-1], table[:, -1]
    greatest = np.abs(values).max(axis=0, initial=0)
    gap = GAPS[rule.mode] * greatest[0] if rule.min_gap is None else rule.min_gap
    if rule.mode == "classic":
        one, other = np.arange(len(rows) - 1), np.arange(1, len(rows))
        gaps = np.full(len(one), gap)
    else:
        one, other = np.triu_indices(len(rows), 1)
        gaps = 2 * np.hypot(error[one], error[other])
        gaps[np.isnan(gaps)] = gap
    steps = np.abs(values[one] - values[other])
    steps[steps <= ROUNDING * greatest] = 0
    if rule.mode == "robust":
        steps[:, 1:][steps[:, 1:] <= NOISE * greatest[1:]] = 0
    kept = steps[steps[:, 0] > gaps + ROUNDING * greatest[0]]
    ratios: NDArray[np.float64] = (kept[:, 1:] / kept[:, :1]).T
    return ratios


def _rate(rule: Rule, ratios: "NDArray[np.float64]") -> float | str:
    """The rate that one metric's ratios show, or why there is none."""
    import numpy as np

    if not len(ratios):
        return f"no two reference models differ enough in {rule.main}"
    if not ratios.any():
        return "the reference models do not differ in it"
    if rule.mode == "classic":
        return float(ratios.mean())
    # Where most pairs are equal, the median is 0 and the price is what the others show.
    return float(np.median(ratios) or np.median(ratios[ratios > 0]))


def scored(rule: Rule, table: Table, rates: Rates) -> list[ScoredModel]:
    """The models by score, the best first, then by name; at the end those without a score.

    Σ weight × utility ÷ rate, over the weights of metrics that have a rate. A model needs a result
    in each metric whose weight is above 0.
    """
    used = {k: (w, r) for k, w in rule.weights.items() if w and (r := rates.values.get(k))}
    total = sum(weight for weight, _ in used.values())
    scores, without = {}, []
    for model, raw in sorted(table.items()):
        row = rule.utilities(raw, used)
        if not used:
            without.append(
                ScoredModel(model, None, None, "no metric with a weight has an exchange rate")
            )
        elif len(row) < len(used):
            missing = ", ".join(metric for metric in used if metric not in row)
            without.append(ScoredModel(model, None, None, f"not run: {missing}"))
        else:
            scores[model] = sum(w / total * row[metric] / r for metric, (w, r) in used.items())
    rows: list[ScoredModel] = []
    for number, model in enumerate(sorted(scores, key=lambda one: -scores[one]), 1):
        score, above = scores[model], rows[-1] if rows else None
        is_tied = above and isclose(score, scores[above.model], rel_tol=ROUNDING)
        rows.append(ScoredModel(model, score, above.rank if above and is_tied else number))
    return sorted(rows, key=lambda row: (row.rank, row.model)) + without


def bootstrap(
    rule: Rule,
    table: Table,
    draws: Iterable[Table],
    rates: Rates | None = None,
    errors: Errors | None = None,
) -> dict[str, Interval]:
    """The intervals of score and rank, for each model that has them; 95 %, percentiles.

    draws: the table as it comes out of resamples of the examples, with the same models. All are
    scored by `rates`, or without them by the table's own: the interval is that of a score in these
    units. The table itself is one of the draws and never outside its interval.
    """
    import numpy as np

    from evaluation.scoring.bootstrap import interval

    own = rates or exchange_rates(rule, table, errors)
    lists = [scored(rule, table, own)]
    lists += [scored(rule, draw, own) for draw in draws]
    drawn: dict[str, list[tuple[float, int]]] = {}
    for row in (row for rows in lists for row in rows):
        if row.dynascore is not None and row.rank is not None:
            drawn.setdefault(row.model, []).append((row.dynascore, row.rank))
    intervals = {}
    for model, pairs in drawn.items():
        scores, ranks = np.array(pairs, dtype=float).T
        (_, low, high), (_, first, last) = interval(scores), interval(ranks)
        intervals[model] = Interval(low, high, floor(first), ceil(last))
    return intervals


def moved_by(rule: Rule, table: Table, top: int = 10, errors: Errors | None = None) -> list[str]:
    """Models without which the first `top` of the others stand in another order.

    Only where rates are read from the board itself: with frozen ones there are none.
    """

    def order(some: Table, rates: Rates) -> list[str]:
        return [row.model for row in scored(rule, some, rates) if row.rank is not None]

    rates = exchange_rates(rule, table, errors)
    before, found = order(table, rates), []
    for left_out in rates.pool:
        rest = {model: row for model, row in table.items() if model != left_out}
        after = order(rest, exchange_rates(rule, rest, errors))
        if after[:top] != [model for model in before if model != left_out][:top]:
            found.append(left_out)
    return found
