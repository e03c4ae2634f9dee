"""The anchored score: several metrics as one number from 0 to 100 that no other model can move.

A metric's place is where its value lies between two anchors, from 0 to 1. The anchors come from a
frozen pool of reference models (`leaderboard.scoring.pools`), never from the models that are
scored. docs/statistics.md tells why the anchors are what they are.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

from leaderboard.scoring.dynascore import ScoredModel, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

COSTS: Mapping[str, bool] = {"throughput": True, "memory": False}
"""Metrics that are no shares, and whether more of them is better."""
BASELINES = ("majority", "random", "constant", "echo")
"""Names of the models of a pool that answer without having learned anything."""
PERFECT = 100.0
ALIKE = 9
"""Digits after the point to which two scores that share a rank are equal."""


class AnchorsError(ValueError):
    """A pool that anchors nothing; the message says why."""


@dataclass(frozen=True)
class Scale:
    """The values at which a metric's place is 0 and 1; of costs, on a scale of ratios."""

    low: float
    high: float
    is_ratio: bool = False

    def places(self, values: "NDArray[Any]") -> "NDArray[Any]":
        """Of values in any shape, from 0 to 1; NaN stays."""
        import numpy as np

        low, high = self.low, self.high
        if self.is_ratio:
            with np.errstate(divide="ignore", invalid="ignore"):
                values = np.log(values)
            low, high = np.log(low), np.log(high)
        found: NDArray[Any] = np.clip((values - low) / (high - low), 0.0, 1.0)
        return found


@dataclass(frozen=True)
class Anchors:
    """The scales of a pool. notices: a sentence for each metric that has none."""

    main: str
    scales: Mapping[str, Scale]
    notices: tuple[str, ...] = ()


def anchors_of(pool: Table, main: str, metrics: Collection[str]) -> Anchors:
    """The anchors that a pool gives. Values in percent; costs in any unit. Raises AnchorsError.

    Main metric: from the best baseline to the perfect 100. Other shares: from the worst model that
    is better than the baselines to 100. Costs: from the worst such model to the best.
    """
    known = {model: value for model, row in pool.items() if (value := row.get(main)) is not None}
    if not known:
        raise AnchorsError(f"no reference model has {main}.")
    baselines = [value for model, value in known.items() if model.casefold() in BASELINES]
    low = max(baselines) if baselines else min(known.values())
    if not low < PERFECT:
        raise AnchorsError(f"a baseline has {main} {low:g}, which leaves nothing to be better at.")
    useful = [row for model, row in pool.items() if known.get(model, -inf) > low]
    scales, notices = {main: Scale(low, PERFECT)}, []
    for metric in metrics:
        if metric == main:
            continue
        values = [value for row in useful if (value := row.get(metric)) is not None]
        scale = _scale(metric, values)
        if scale:
            scales[metric] = scale
        else:
            notices.append(
                f"{metric} is left out and the other weights count more: "
                "the reference models do not differ in it."
            )
    return Anchors(main, scales, tuple(notices))


def plain_anchors(main: str, low: float, metrics: Collection[str]) -> Anchors:
    """Of a task without reference models: its shares from `low`, in percent, to the perfect 100.

    low: what answers without any knowledge have of the main metric, and under perturbations and in
    groups too. Costs have no scale.
    """
    shares = [name for name in dict.fromkeys([main, *metrics]) if name not in COSTS]
    notices = tuple(
        f"{metric} is left out and the other weights count more: "
        "there are no reference models to compare it with."
        for metric in metrics
        if metric in COSTS
    )
    return Anchors(main, {name: Scale(low, PERFECT) for name in shares}, notices)


def _scale(metric: str, values: Collection[float]) -> Scale | None:
    """The scale of a metric other than the main one; None where the models do not span any."""
    is_more_better = COSTS.get(metric, True)
    if metric not in COSTS:
        low, high = min(values, default=PERFECT), PERFECT
    else:
        values = [value for value in values if value > 0]
        low, high = min(values, default=0.0), max(values, default=0.0)
    if not low < high:
        return None
    return Scale(*((low, high) if is_more_better else (high, low)), is_ratio=metric in COSTS)


def points(
    anchors: Anchors, weights: Mapping[str, float], values: Mapping[str, "NDArray[Any]"]
) -> dict[str, "NDArray[Any]"]:
    """What each metric with a weight adds to the score, in the shape of the values.

    The score is their sum: 100 × q × Σ share × place, where q is the place of the main metric, and
    the share of the main metric itself counts whole. So what a model gains by being fast or robust
    is in proportion to what it understands. Without the main metric it is NaN; another metric that
    was not measured adds nothing.
    """
    import numpy as np

    used = used_weights(anchors, weights)
    total = sum(used.values())
    quality = anchors.scales[anchors.main].places(values[anchors.main])
    found = {}
    for metric, weight in used.items():
        place = (
            np.ones_like(quality)
            if metric == anchors.main
            else np.nan_to_num(anchors.scales[metric].places(values[metric]))
        )
        found[metric] = 100 * quality * place * (weight / total)
    return found


def used_weights(anchors: Anchors, weights: Mapping[str, float]) -> dict[str, float]:
    """The weights above 0 of metrics that have a scale."""
    return {name: weight for name, weight in weights.items() if weight and name in anchors.scales}


def scored(anchors: Anchors, weights: Mapping[str, float], table: Table) -> list[ScoredModel]:
    """The models by score, the best first, then by name; at the end those without the main metric.

    No model's score hangs on another one. A note names what was not measured.
    """
    import numpy as np

    used = used_weights(anchors, weights)
    names = sorted(table)
    columns = {
        metric: np.array([_number(table[name].get(metric)) for name in names])
        for metric in {*used, anchors.main}
    }
    sums = sum(points(anchors, weights, columns).values()) if used else np.full(len(names), np.nan)
    scores = dict(zip(names, np.broadcast_to(sums, len(names)).tolist(), strict=True))
    wanted = dict.fromkeys([anchors.main, *used])
    missing = {
        name: ", ".join(metric for metric in wanted if table[name].get(metric) is None)
        for name in names
    }
    return [*_in_order(scores, missing)]


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


def _in_order(scores: Mapping[str, float], missing: Mapping[str, str]) -> Iterator[ScoredModel]:
    shown = {name: round(score, ALIKE) for name, score in scores.items() if isfinite(score)}
    ranks: dict[float, int] = {}
    for number, name in enumerate(sorted(shown, key=lambda one: (-shown[one], one)), 1):
        rank = ranks.setdefault(shown[name], number)
        note = f"not run, adds nothing: {missing[name]}" if missing[name] else ""
        yield ScoredModel(name, scores[name], rank, note)
    for name in scores:
        if name not in shown:
            why = f"not run: {missing[name]}" if missing[name] else "no weighted metric has anchors"
            yield ScoredModel(name, None, None, why)
