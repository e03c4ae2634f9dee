"""The anchored score: several metrics as one number from 0 to 100 that no other model can move.

A metric's position says where its value lies between two anchors, from 0 to 1. The anchors come
from a frozen pool of reference models (`leaderboard.ranking.pools`), never from the models that are
scored. docs/statistics.md explains the choice of the anchors.

`compute_anchored_points` is the formula. `score_on_anchors` applies it to a table, as the command
does, and `leaderboard.board.scores.compute_anchored_scores` to a board and all its resamples at
once.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite, nan
from typing import TYPE_CHECKING, Any

from leaderboard.ranking.dynascore import ScoredModel, Table
from leaderboard.ranking.ranks import compute_rank_bounds

if TYPE_CHECKING:
    from numpy.typing import NDArray

HIGHER_IS_BETTER_BY_COST: Mapping[str, bool] = {"throughput": True, "memory": False}
"""Metrics that are not shares, and whether more of them is better."""
COST_SPANS: Mapping[str, float] = {"throughput": 1000.0, "memory": 40.0}
"""The least ratio between a cost's worst anchor and the best model of a pool.

Reference models are all small. On a scale this wide, a distilled encoder, a BERT-base and a
language model with a thousand million parameters still differ. docs/statistics.md lists their
positions.
"""
BASELINES = ("majority", "random", "constant", "echo")
"""Names of a pool's models that answer without having learned anything."""
PERFECT_VALUE = 100.0
SCORE_DECIMALS = 9
"""The decimals to which scores are rounded before they are compared."""


class AnchorsError(ValueError):
    """Raised for a pool that provides no anchors; the message says why."""


@dataclass(frozen=True)
class Scale:
    """The values of a metric at positions 0 and 1; positions of costs are logarithmic."""

    low: float
    high: float
    is_ratio: bool = False

    def compute_positions(self, values: "NDArray[Any]") -> "NDArray[Any]":
        """Return the positions, from 0 to 1, of values in any shape; NaN remains NaN."""
        import numpy as np

        low, high = self.low, self.high
        if self.is_ratio:
            # A cost of 0 gives an infinite position, which is clipped to an end of the scale.
            with np.errstate(divide="ignore", invalid="ignore"):
                values = np.log(values)
            low, high = np.log(low), np.log(high)
        places: NDArray[Any] = np.clip((values - low) / (high - low), 0.0, 1.0)
        return places


@dataclass(frozen=True)
class Anchors:
    """The scales of a pool. notices: a sentence for each metric that has no scale."""

    main: str
    scales: Mapping[str, Scale]
    notices: tuple[str, ...] = ()


def compute_anchors(pool: Table, main_metric: str, metrics: Collection[str]) -> Anchors:
    """Compute the anchors from a pool of reference models.

    Parameters
    ----------
    pool : Table
        The reference models. Shares are in percent, costs in any unit.
    main_metric : str
        The main metric, which measures what a model understands.
    metrics : collection of str
        The metrics that need a scale.

    Returns
    -------
    Anchors
        A scale for each metric in which the useful models differ, else a notice.

    Raises
    ------
    AnchorsError
        If the pool lacks the main metric, or a baseline is perfect in it.

    Notes
    -----
    Main metric: from the best baseline to the perfect 100. Other shares: from the worst model that
    is better than the baselines to 100. Costs: from the worst such model, or COST_SPANS times the
    best, to the best.
    """
    quality = _read_values(pool, main_metric)
    if not quality:
        raise AnchorsError(f"no reference model has a value of {main_metric}.")
    baselines = [value for model, value in quality.items() if model.casefold() in BASELINES]
    # Without baselines, the weakest model is the pool's best estimate of no knowledge.
    low = max(baselines) if baselines else min(quality.values())
    if not low < PERFECT_VALUE:
        raise AnchorsError(f"a baseline has {main_metric} {low:g}, so no model could do better.")
    # A baseline may be very fast, so it must not set the scale of costs.
    useful_models = {model: pool[model] for model in pool if quality.get(model, -inf) > low}
    scales, notices = {main_metric: Scale(low, PERFECT_VALUE)}, []
    for metric in metrics:
        if metric == main_metric:
            continue
        scale = _compute_scale(metric, _read_values(useful_models, metric).values())
        if scale:
            scales[metric] = scale
        else:
            notices.append(
                f"{metric} doesn't count, so the other weights count more: the reference "
                "models don't differ in it."
            )
    return Anchors(main_metric, scales, tuple(notices))


def _read_values(pool: Table, metric: str) -> dict[str, float]:
    """Return the values of one metric by model, without missing ones."""
    values = {}
    for model, row in pool.items():
        value = row.get(metric)
        if value is not None:
            values[model] = value
    return values


def build_plain_anchors(main_metric: str, low: float, metrics: Collection[str]) -> Anchors:
    """Return the anchors of a task without reference models.

    Parameters
    ----------
    main_metric : str
        The main metric.
    low : float
        The main metric, in percent, of answers without any knowledge. It is position 0 of all
        shares, also under perturbations and in groups.
    metrics : collection of str
        The metrics that need a scale.

    Returns
    -------
    Anchors
        Scales from `low` to the perfect 100. Costs have none.
    """
    scales, notices = {}, []
    for metric in dict.fromkeys([main_metric, *metrics]):
        if metric not in HIGHER_IS_BETTER_BY_COST:
            scales[metric] = Scale(low, PERFECT_VALUE)
        elif metric in metrics:
            notices.append(
                f"{metric} doesn't count, so the other weights count more: the task has no "
                "reference models."
            )
    return Anchors(main_metric, scales, tuple(notices))


def _compute_scale(metric: str, values: Collection[float]) -> Scale | None:
    """Return the scale of a metric other than the main one; None if its ends would be equal."""
    if metric not in HIGHER_IS_BETTER_BY_COST:
        low, high = min(values, default=PERFECT_VALUE), PERFECT_VALUE
        return Scale(low, high) if low < high else None
    # A scale of ratios has no place for 0.
    positive = [value for value in values if value > 0]
    lowest, highest = min(positive, default=0.0), max(positive, default=0.0)
    if not lowest < highest:
        return None
    if HIGHER_IS_BETTER_BY_COST[metric]:
        return Scale(min(lowest, highest / COST_SPANS[metric]), highest, is_ratio=True)
    return Scale(max(highest, lowest * COST_SPANS[metric]), lowest, is_ratio=True)


def select_used_weights(anchors: Anchors, weights: Mapping[str, float]) -> dict[str, float]:
    """Return the weights above 0 of metrics that have a scale."""
    return {name: weight for name, weight in weights.items() if weight and name in anchors.scales}


def compute_anchored_points(
    anchors: Anchors,
    weights: Mapping[str, float],
    values: Mapping[str, "NDArray[Any]"],
    unmeasured_position: float = nan,
) -> dict[str, "NDArray[Any]"]:
    """Return the points that each metric with a weight adds to the score.

    Parameters
    ----------
    anchors : Anchors
        The scales.
    weights : mapping of str to float
        The weights of the metrics; only ratios matter.
    values : mapping of str to array
        The values of the main metric and of each of `select_used_weights`, all of one shape; NaN
        where not measured.
    unmeasured_position : float
        The position of a metric, other than the main one, that was not measured: 0 gives the worst
        possible score, 1 the best.

    Returns
    -------
    dict of str to array
        The points by metric, in the shape of the values.

    Notes
    -----
    The score is the sum of the points: 100 × q × Σ share × position, where q is the position of the
    main metric, and the share of the main metric itself counts in full. So the points that a model
    gains by being fast or robust are in proportion to what it understands. Without the main metric
    the score is NaN.
    """
    import numpy as np

    used_weights = select_used_weights(anchors, weights)
    total = sum(used_weights.values())
    quality = anchors.scales[anchors.main].compute_positions(values[anchors.main])
    points = {}
    for metric, weight in used_weights.items():
        if metric == anchors.main:
            # The main metric counts through `quality`, which multiplies all points.
            position = np.ones_like(quality)
        else:
            position = anchors.scales[metric].compute_positions(values[metric])
            position = np.where(np.isnan(position), unmeasured_position, position)
        points[metric] = 100 * quality * position * (weight / total)
    return points


def score_on_anchors(
    anchors: Anchors, weights: Mapping[str, float], table: Table
) -> list[ScoredModel]:
    """Score the models of a table.

    Parameters
    ----------
    anchors : Anchors
        The scales.
    weights : mapping of str to float
        The weights of the metrics; only ratios matter.
    table : Table
        The models. One without the main metric has no score.

    Returns
    -------
    list of ScoredModel
        The best first, then by name; models without a score are last.

    Notes
    -----
    No model's score depends on another model. If another metric was not measured, the score is
    from `least` to `most`, and the note names the metric. Such a model has a rank only if the order
    is known. Ranges are sorted by their middle.
    """
    import numpy as np

    used_weights = select_used_weights(anchors, weights)
    names = sorted(table)
    # The main metric may also have a weight, but is needed only once.
    needed_metrics = dict.fromkeys([anchors.main, *used_weights])
    columns = {
        metric: np.array([_convert_to_number(table[name].get(metric)) for name in names])
        for metric in needed_metrics
    }
    worst_scores = _sum_points(anchors, used_weights, columns, unmeasured_position=0.0)
    best_scores = _sum_points(anchors, used_weights, columns, unmeasured_position=1.0)
    models = []
    for position, name in enumerate(names):
        missing_metrics = [metric for metric in needed_metrics if table[name].get(metric) is None]
        # Rounded before the comparison, so that rounding errors do not make a range.
        lowest, highest = (
            round(worst_scores[position], SCORE_DECIMALS),
            round(best_scores[position], SCORE_DECIMALS),
        )
        models.append(
            _ScoredRange(name, worst_scores[position], lowest, highest, ", ".join(missing_metrics))
        )
    return list(_rank_in_order(models))


def _convert_to_number(value: float | None) -> float:
    return nan if value is None else value


def _sum_points(
    anchors: Anchors,
    weights: Mapping[str, float],
    columns: Mapping[str, "NDArray[Any]"],
    unmeasured_position: float,
) -> list[float]:
    """Return the scores; NaN for all models when no metric counts."""
    import numpy as np

    points = compute_anchored_points(anchors, weights, columns, unmeasured_position)
    if not points:
        return [nan] * len(columns[anchors.main])
    scores: list[float] = np.sum(list(points.values()), axis=0).tolist()
    return scores


@dataclass(frozen=True)
class _ScoredRange:
    """A model with its exact worst score, and both ends of its score to SCORE_DECIMALS digits."""

    name: str
    score: float
    least: float
    most: float
    missing: str  # the metrics that were not measured


def _rank_in_order(models: Sequence[_ScoredRange]) -> Iterator[ScoredModel]:
    """Yield the models with their ranks, the best first. models: sorted by name."""
    known = [model for model in models if isfinite(model.least)]
    bounds = compute_rank_bounds([model.least for model in known], [model.most for model in known])
    ranked_models = list(zip(known, bounds, strict=True))
    # The middle of a range decides, or the score itself if it is known.
    ranked_models.sort(key=lambda pair: (-pair[0].least - pair[0].most, pair[0].name))
    for model, (first_rank, last_rank) in ranked_models:
        note = f"not measured: {model.missing}" if model.missing else ""
        if model.least == model.most:
            yield ScoredModel(model.name, model.score, first_rank, note)
        else:
            rank = first_rank if first_rank == last_rank else None
            yield ScoredModel(model.name, None, rank, note, model.least, model.most)
    for model in models:
        if not isfinite(model.least):
            note = "no weighted metric has anchors"
            if model.missing:
                note = f"not run: {model.missing}"
            yield ScoredModel(model.name, None, None, note)
