"""Dynascore: several metrics as one number, each in units of the main metric.

A table holds the raw metrics of each model: finite numbers, or None where a result is missing.
`classic` is the formula of Dynaboard (Ma et al. 2021), `robust` the same idea with exchange rates
that a further model can hardly move. docs/statistics.md has both, and every edge case.

The rule is written here once and used twice:

- `score_models` scores a table. `python -m leaderboard.dynascore FILE.jsonl` does so for a file.
- `leaderboard.board.scores.compute_priced_scores` scores the models of a board and all their
  resamples at once. Both take what each metric adds from `compute_priced_points`, and
  `tests/unit/leaderboard/test_board.py` compares their scores on random boards.

The anchored score has the same shape: `leaderboard.ranking.anchored.compute_anchored_points`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil, floor, inf, isclose, isfinite, nan
from typing import TYPE_CHECKING, Any, Literal

from leaderboard.ranking.pareto import find_pareto_front
from leaderboard.ranking.ranks import compute_shared_ranks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Table = Mapping[str, Mapping[str, float | None]]
Errors = Mapping[str, float | None]
"""Standard errors of the main metric, by model; None or absent: unknown."""

WEIGHTS = {"perf": 4.0, "throughput": 1.0, "memory": 1.0, "fairness": 1.0, "robustness": 1.0}
MEMORY_BUDGET = 16.0
"""In GB, as in the paper's caption, although the paper's numbers result from a budget of 32."""
MIN_GAPS = {"classic": 1e-4, "robust": 5e-3}
"""The least difference at which a pair counts, as a share of the main metric's greatest value."""
NOISE_SCALE = 5e-3
"""In robust mode, differences below this share of a metric's greatest utility are ignored.

The memory of one model differs by as much from run to run. So no ratio is computed from values that
differ only by chance.
"""
ROUNDING_TOLERANCE = 1e-12
"""Differences below this share of the greatest value come from floating-point arithmetic."""


@dataclass(frozen=True)
class Rule:
    """The settings for scoring a table. Raises ValueError for invalid numbers.

    weights: of each metric, 0 or more; only their ratios matter. budgets: the amounts from which
    metrics that should be low are subtracted; with a budget of 16, memory of 5 counts as 11.
    min_gap: in units of the main metric; None for the default (MIN_GAPS).
    """

    mode: Literal["classic", "robust"] = "robust"
    weights: Mapping[str, float] = field(default_factory=lambda: dict(WEIGHTS))
    main: str = "perf"
    budgets: Mapping[str, float] = field(default_factory=lambda: {"memory": MEMORY_BUDGET})
    min_gap: float | None = None

    def __post_init__(self) -> None:
        for metric, weight in self.weights.items():
            if not 0 <= weight < inf:
                raise ValueError(f"The weight of {metric} is {weight}. It must be 0 or more.")
        if not any(self.weights.values()):
            raise ValueError("All weights are 0. Give at least one weight above 0.")
        if not all(map(isfinite, self.budgets.values())):
            raise ValueError("A budget must be a finite number.")
        if self.min_gap is not None and not 0 <= self.min_gap < inf:
            raise ValueError(f"The smallest gap is {self.min_gap}. It must be 0 or more.")

    @property
    def metrics(self) -> tuple[str, ...]:
        """Return the main metric, then the others by name."""
        return (self.main, *sorted(self.weights.keys() - {self.main}))

    def compute_utility(self, metric: str, raw: Any) -> Any:
        """Convert a metric's value, or an array of values, so that higher is better."""
        if metric in self.budgets:
            return self.budgets[metric] - raw
        return raw

    def compute_utilities(
        self, row: Mapping[str, float | None], metrics: Collection[str]
    ) -> dict[str, float]:
        """Return a row's values, converted so that higher is better, without missing ones."""
        values_by_metric = {}
        for metric in metrics:
            raw = row.get(metric)
            if raw is not None:
                values_by_metric[metric] = self.compute_utility(metric, raw)
        return values_by_metric


@dataclass(frozen=True)
class Rates:
    """The number of units of each metric that one unit of the main metric is worth, or None.

    A snapshot stores the rates, and later models are scored by them. pool: the models that the
    rates were computed from. notices: a sentence for each metric that has no rate.
    """

    values: Mapping[str, float | None]
    pool: tuple[str, ...]
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class ScoredModel:
    """A model's score and rank (1 is the best; ties share a rank), or why it has none.

    least, most: the worst and the best possible score if some metrics were not measured.
    """

    model: str
    dynascore: float | None
    rank: int | None
    note: str = ""
    least: float | None = None
    most: float | None = None


@dataclass(frozen=True)
class Interval:
    """The 95% ranges of a model's score and of its rank over the draws."""

    low: float
    high: float
    rank_low: int
    rank_high: int


def compute_exchange_rates(rule: Rule, table: Table, errors: Errors | None = None) -> Rates:
    """Compute the exchange rates that a pool of models shows.

    Neither the weights nor the order of the models matter.

    Parameters
    ----------
    rule : Rule
        The mode, the main metric, budgets and the smallest gap.
    table : Table
        The models. Those without a value that others have are not in the pool.
    errors : Errors, optional
        Standard errors of the main metric. In robust mode, a pair with known errors counts if it
        differs by more than twice the error of its difference, whatever `min_gap` is.

    Returns
    -------
    Rates
        A rate for each metric, None with a notice if the pool shows none.

    Notes
    -----
    classic: the mean of |Δ metric| ÷ Δ main over neighbours in the main metric, of all models with
    a complete row. robust: the median over all pairs of models that no other model dominates,
    because only these trade one metric for another. So a dominated model, or a copy, changes
    nothing.
    """
    utilities = {model: rule.compute_utilities(row, rule.metrics) for model, row in table.items()}
    # A metric that no model has must not empty the pool.
    measured_metrics = {rule.main}.union(*utilities.values())
    metrics = [metric for metric in rule.metrics if metric in measured_metrics]
    pool = {model: row for model, row in utilities.items() if len(row) == len(metrics)}
    if rule.mode == "robust":
        # A dominated model is worse without any gain, so its differences are not prices.
        undominated = find_pareto_front(pool, dict.fromkeys(metrics, 1))
        pool = {model: pool[model] for model in pool if model in undominated}
    rows = _build_pool_rows(pool, metrics, errors or {})
    ratios = dict(zip(metrics[1:], _compute_ratios(rule, rows, len(metrics)), strict=True))
    rates: dict[str, float | None] = {rule.main: 1.0}
    notices = []
    for metric in rule.metrics[1:]:
        rate = (
            _choose_rate(rule, ratios[metric])
            if metric in ratios
            else "no model was measured on it"
        )
        if isinstance(rate, str):
            rates[metric] = None
            notices.append(f"{metric} doesn't count, so the other weights count more: {rate}.")
        else:
            rates[metric] = rate
    return Rates(rates, tuple(sorted(pool)), tuple(notices))


def _build_pool_rows(
    pool: Mapping[str, Mapping[str, float]], metrics: Sequence[str], errors: Errors
) -> list[tuple[float, ...]]:
    """Return the utilities of a pool in the order of `metrics`, then the error (NaN: unknown).

    Equal rows are merged and rows are sorted, so that neither copies nor the order of the models
    change a rate.
    """
    rows = set()
    for model, row in pool.items():
        values = [row[metric] for metric in metrics]
        error = errors.get(model)
        values.append(nan if error is None else error)
        rows.add(tuple(values))
    return sorted(rows)


def _compute_ratios(
    rule: Rule, rows: Sequence[Sequence[float]], metrics: int
) -> "NDArray[np.float64]":
    """Return |Δ metric| ÷ |Δ main| of pairs that differ enough in main: a row per other metric.

    rows: models × metrics, the main metric first, then its standard error (NaN: unknown).
    """
    import numpy as np

    table = np.array(rows, dtype=float).reshape(len(rows), metrics + 1)
    values, error = table[:, :-1], table[:, -1]
    greatest = np.abs(values).max(axis=0, initial=0)
    # Relative to the greatest value, so that percent and fractions give the same pairs.
    gap = rule.min_gap
    if gap is None:
        gap = MIN_GAPS[rule.mode] * greatest[0]
    if rule.mode == "classic":
        # Rows are sorted by the main metric, so neighbours are adjacent.
        first, second = np.arange(len(rows) - 1), np.arange(1, len(rows))
        gaps = np.full(len(first), gap)
    else:
        # Each pair once, without pairs of a row with itself.
        first, second = np.triu_indices(len(rows), 1)
        # Twice the error of a difference of two independent values.
        gaps = 2 * np.hypot(error[first], error[second])
        # If an error is unknown, the usual gap decides.
        gaps[np.isnan(gaps)] = gap
    steps = np.abs(values[first] - values[second])
    steps[steps <= ROUNDING_TOLERANCE * greatest] = 0
    if rule.mode == "robust":
        steps[:, 1:][steps[:, 1:] <= NOISE_SCALE * greatest[1:]] = 0
    differing = steps[steps[:, 0] > gaps + ROUNDING_TOLERANCE * greatest[0]]
    ratios: NDArray[np.float64] = (differing[:, 1:] / differing[:, :1]).T
    return ratios


def _choose_rate(rule: Rule, ratios: "NDArray[np.float64]") -> float | str:
    """Return the rate that one metric's ratios show, or the reason why there is none."""
    import numpy as np

    if not len(ratios):
        return f"no two reference models differ enough in {rule.main}"
    if not ratios.any():
        return "the reference models don't differ in it"
    if rule.mode == "classic":
        return float(ratios.mean())
    # If most pairs are equal, the median is 0, and the other pairs determine the price.
    return float(np.median(ratios) or np.median(ratios[ratios > 0]))


def select_priced_weights(rule: Rule, rates: Rates) -> dict[str, float]:
    """Return the weights above 0 of metrics that have an exchange rate."""
    return {
        name: weight for name, weight in rule.weights.items() if weight and rates.values.get(name)
    }


def compute_priced_points(
    rule: Rule, rates: Rates, values: Mapping[str, "NDArray[Any]"]
) -> dict[str, "NDArray[Any]"]:
    """Return the points that each metric with a weight and a rate adds to the Dynascore.

    Parameters
    ----------
    rule : Rule
        Weights and budgets.
    rates : Rates
        The exchange rates.
    values : mapping of str to array
        The values of each metric of `select_priced_weights`, all of one shape; NaN where not
        measured.

    Returns
    -------
    dict of str to array
        The points by metric, in the shape of the values.

    Notes
    -----
    The Dynascore is the sum of the points: Σ weight ÷ total weight × utility ÷ rate. It is NaN if a
    metric was not measured.
    """
    weights = select_priced_weights(rule, rates)
    total = sum(weights.values())
    points = {}
    for metric, weight in weights.items():
        price = weight / total / (rates.values[metric] or nan)
        points[metric] = price * rule.compute_utility(metric, values[metric])
    return points


def score_models(rule: Rule, table: Table, rates: Rates) -> list[ScoredModel]:
    """Score the models of a table.

    Parameters
    ----------
    rule : Rule
        Weights and budgets.
    table : Table
        The models. One without a result in a metric with a weight and a rate has no score.
    rates : Rates
        The exchange rates.

    Returns
    -------
    list of ScoredModel
        The best first, then by name; models without a score are last.

    Notes
    -----
    See `compute_priced_points` for the formula.
    """
    import numpy as np

    weights = select_priced_weights(rule, rates)
    complete_models, unscored_models = [], []
    for model in sorted(table):
        missing = [metric for metric in weights if table[model].get(metric) is None]
        if missing:
            note = f"not run: {', '.join(missing)}"
        elif not weights:
            note = "no metric with a weight has an exchange rate"
        else:
            complete_models.append(model)
            continue
        unscored_models.append(ScoredModel(model, None, None, note))
    if not complete_models:
        return unscored_models
    columns = {
        metric: np.array([table[model][metric] for model in complete_models], dtype=float)
        for metric in weights
    }
    scores = np.sum(list(compute_priced_points(rule, rates, columns).values()), axis=0).tolist()
    # By scores without rounding errors.
    ranks = compute_shared_ranks(_join_ties(scores))
    rows = [ScoredModel(*row) for row in zip(complete_models, scores, ranks, strict=True)]
    return sorted(rows, key=lambda row: (row.rank, row.model)) + unscored_models


def _join_ties(scores: Sequence[float]) -> list[float]:
    """Return the scores after making equal those that differ only by rounding.

    Each score is compared with the next higher one, and replaced by it if they are close.
    """
    joined_scores = list(scores)
    order = sorted(range(len(scores)), key=lambda place: -scores[place])
    for above, place in pairwise(order):
        if isclose(scores[place], scores[above], rel_tol=ROUNDING_TOLERANCE):
            joined_scores[place] = joined_scores[above]
    return joined_scores


def resample_scores(
    rule: Rule,
    table: Table,
    draws: Iterable[Table],
    rates: Rates | None = None,
    errors: Errors | None = None,
) -> dict[str, Interval]:
    """Compute 95% percentile intervals of score and rank.

    Parameters
    ----------
    rule : Rule
        The settings for scoring each table.
    table : Table
        The models as they were measured. The table counts as one of the draws, so it is never
        outside its interval.
    draws : iterable of Table
        The tables computed from resamples of the examples, with the same models.
    rates : Rates, optional
        The rates by which all draws are scored; by default the table's own.
    errors : Errors, optional
        Standard errors for the table's own rates, see `compute_exchange_rates`.

    Returns
    -------
    dict of str to Interval
        One for each model that has a score.
    """
    import numpy as np

    from evaluation.scoring.bootstrap import compute_quantile_interval

    used_rates = rates or compute_exchange_rates(rule, table, errors)
    draws_by_model: dict[str, list[tuple[float, int]]] = {}
    # The table first, because `interval` treats the first value as the measured one.
    for one_table in (table, *draws):
        for row in score_models(rule, one_table, used_rates):
            if row.dynascore is not None and row.rank is not None:
                draws_by_model.setdefault(row.model, []).append((row.dynascore, row.rank))
    intervals = {}
    for model, pairs in draws_by_model.items():
        scores, ranks = np.array(pairs, dtype=float).T
        (_, low, high), (_, first, last) = (
            compute_quantile_interval(scores),
            compute_quantile_interval(ranks),
        )
        intervals[model] = Interval(low, high, floor(first), ceil(last))
    return intervals


def find_order_changing_models(
    rule: Rule, table: Table, top: int = 10, errors: Errors | None = None
) -> list[str]:
    """Return the models whose removal changes the order of the others.

    Parameters
    ----------
    rule : Rule
        The settings for scoring the table.
    table : Table
        The models.
    top : int
        The number of best models whose order is compared.
    errors : Errors, optional
        Standard errors, see `compute_exchange_rates`.

    Notes
    -----
    There are such models only if rates are computed from the table itself, not with frozen rates.
    """
    rates = compute_exchange_rates(rule, table, errors)
    order = _order_models(rule, table, rates)
    order_changing_models = []
    # Only models of the pool affect a rate.
    for left_out in rates.pool:
        others = {model: row for model, row in table.items() if model != left_out}
        before = [model for model in order if model != left_out]
        after = _order_models(rule, others, compute_exchange_rates(rule, others, errors))
        if after[:top] != before[:top]:
            order_changing_models.append(left_out)
    return order_changing_models


def _order_models(rule: Rule, table: Table, rates: Rates) -> list[str]:
    """Return the names of the models that have a score, the best first."""
    rows = score_models(rule, table, rates)
    return [row.model for row in rows if row.rank is not None]
