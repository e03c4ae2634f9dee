"""The anchored score: several metrics as one number from 0 to 100 that no other model can move.

A metric's place is where its value lies between two anchors, from 0 to 1. The anchors come from a
frozen pool of reference models (`leaderboard.ranking.pools`), never from the models that are
scored. docs/statistics.md tells why the anchors are what they are.

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

COSTS: Mapping[str, bool] = {"throughput": True, "memory": False}
"""Metrics that are not shares, and whether more of them is better."""
SPANS: Mapping[str, float] = {"throughput": 1000.0, "memory": 40.0}
"""How many times worse than the best model of a pool the worst anchor of a cost is, at least.

Reference models are all small. So wide a scale tells a distilled encoder, a BERT-base and a
language model of a thousand million parameters apart; docs/statistics.md has their places.
"""
BASELINES = ("majority", "random", "constant", "echo")
"""Names of the models of a pool that answer without having learned anything."""
PERFECT_VALUE = 100.0
SCORE_DECIMALS = 9
"""Digits after the point to which two scores that share a rank are equal."""


class AnchorsError(ValueError):
    """Raised for a pool that provides no anchors; the message says why."""


@dataclass(frozen=True)
class Scale:
    """The values of a metric at positions 0 and 1; positions of costs are logarithmic."""

    low: float
    high: float
    is_ratio: bool = False

    def places(self, values: "NDArray[Any]") -> "NDArray[Any]":
        """Return the positions, from 0 to 1, of values in any shape; NaN remains NaN."""
        import numpy as np

        low, high = self.low, self.high
        if self.is_ratio:
            # A cost of 0 gives an infinite place, which is then cut to an end of the scale.
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
    """Return the anchors that a pool of reference models gives.

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
    is better than the baselines to 100. Costs: from the worst such model, or SPANS times the best,
    to the best.
    """
    quality = _read_values(pool, main_metric)
    if not quality:
        raise AnchorsError(f"no reference model has {main_metric}.")
    baselines = [value for model, value in quality.items() if model.casefold() in BASELINES]
    # Without baselines the weakest model is as near to no knowledge as the pool gets.
    low = max(baselines) if baselines else min(quality.values())
    if not low < PERFECT_VALUE:
        raise AnchorsError(
            f"a baseline has {main_metric} {low:g}, which leaves nothing to be better at."
        )
    # A baseline may be very fast, so it must not set the scale of costs.
    useful = {model: pool[model] for model in pool if quality.get(model, -inf) > low}
    scales, notices = {main_metric: Scale(low, PERFECT_VALUE)}, []
    for metric in metrics:
        if metric == main_metric:
            continue
        scale = _compute_scale(metric, _read_values(useful, metric).values())
        if scale:
            scales[metric] = scale
        else:
            notices.append(
                f"{metric} is left out and the other weights count more: "
                "the reference models do not differ in it."
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
        if metric not in COSTS:
            scales[metric] = Scale(low, PERFECT_VALUE)
        elif metric in metrics:
            notices.append(
                f"{metric} is left out and the other weights count more: "
                "there are no reference models to compare it with."
            )
    return Anchors(main_metric, scales, tuple(notices))


def _compute_scale(metric: str, values: Collection[float]) -> Scale | None:
    """Return the scale of a metric other than the main one; None if the models do not differ."""
    if metric not in COSTS:
        low, high = min(values, default=PERFECT_VALUE), PERFECT_VALUE
        return Scale(low, high) if low < high else None
    # A scale of ratios has no place for 0.
    positive = [value for value in values if value > 0]
    least, most = min(positive, default=0.0), max(positive, default=0.0)
    if not least < most:
        return None
    if COSTS[metric]:
        return Scale(min(least, most / SPANS[metric]), most, is_ratio=True)
    return Scale(max(most, least * SPANS[metric]), least, is_ratio=True)


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
    quality = anchors.scales[anchors.main].places(values[anchors.main])
    points = {}
    for metric, weight in used_weights.items():
        if metric == anchors.main:
            # The main metric counts by `quality`, which multiplies all points.
            place = np.ones_like(quality)
        else:
            place = anchors.scales[metric].places(values[metric])
            place = np.where(np.isnan(place), unmeasured_position, place)
        points[metric] = 100 * quality * place * (weight / total)
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
    from `least` to `most`, the note names the metric, and there is a rank only if the order is
    known. Ranges are sorted by their middle.
    """
    import numpy as np

    used_weights = select_used_weights(anchors, weights)
    names = sorted(table)
    needed_metrics = dict.fromkeys([anchors.main, *used_weights])
    columns = {
        metric: np.array([_convert_to_number(table[name].get(metric)) for name in names])
        for metric in needed_metrics
    }
    worst_scores = _sum_points(anchors, used_weights, columns, unmeasured_position=0.0)
    best_scores = _sum_points(anchors, used_weights, columns, unmeasured_position=1.0)
    models = []
    for place, name in enumerate(names):
        missing_metrics = [metric for metric in needed_metrics if table[name].get(metric) is None]
        # Rounded before they are compared, so that rounding errors make no range.
        least, most = (
            round(worst_scores[place], SCORE_DECIMALS),
            round(best_scores[place], SCORE_DECIMALS),
        )
        models.append(
            _ScoredRange(name, worst_scores[place], least, most, ", ".join(missing_metrics))
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
    """A model with its exact worst score, and both ends of its score rounded to ALIKE."""

    name: str
    score: float
    least: float
    most: float
    missing: str  # metrics that were not measured


def _rank_in_order(models: Sequence[_ScoredRange]) -> Iterator[ScoredModel]:
    """Yield the models with their ranks, the best first. models: sorted by name."""
    known = [model for model in models if isfinite(model.least)]
    bounds = compute_rank_bounds([model.least for model in known], [model.most for model in known])
    ranked_models = list(zip(known, bounds, strict=True))
    # The middle of a range decides, of a known score the score itself.
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
