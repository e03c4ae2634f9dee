"""The anchored score: several metrics as one number from 0 to 100 that no other model can move.

A metric's place is where its value lies between two anchors, from 0 to 1. The anchors come from a
frozen pool of reference models (`leaderboard.scoring.pools`), never from the models that are
scored. docs/statistics.md tells why the anchors are what they are.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from math import inf, isfinite, nan
from typing import TYPE_CHECKING, Any

from leaderboard.scoring.dynascore import ScoredModel, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

COSTS: Mapping[str, bool] = {"throughput": True, "memory": False}
"""Metrics that are no shares, and whether more of them is better."""
SPANS: Mapping[str, float] = {"throughput": 1000.0, "memory": 40.0}
"""How many times as much as the best model of a pool the worst anchor of a cost is, at least.

Reference models are all small. So wide a scale tells a distilled encoder, a BERT-base and a
language model of a thousand million parameters apart; docs/statistics.md has their places.
"""
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
    is better than the baselines to 100. Costs: from the worst such model, or SPANS times the best,
    to the best.
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
    if metric not in COSTS:
        low, high = min(values, default=PERFECT), PERFECT
        return Scale(low, high) if low < high else None
    values = [value for value in values if value > 0]
    least, most = min(values, default=0.0), max(values, default=0.0)
    if not least < most:
        return None
    if COSTS[metric]:
        return Scale(min(least, most / SPANS[metric]), most, is_ratio=True)
    return Scale(max(most, least * SPANS[metric]), least, is_ratio=True)


def points(
    anchors: Anchors,
    weights: Mapping[str, float],
    values: Mapping[str, "NDArray[Any]"],
    unmeasured: float = nan,
) -> dict[str, "NDArray[Any]"]:
    """What each metric with a weight adds to the score, in the shape of the values.

    The score is their sum: 100 × q × Σ share × place, where q is the place of the main metric, and
    the share of the main metric itself counts whole. So what a model gains by being fast or robust
    is in proportion to what it understands. Without the main metric it is NaN. unmeasured: the
    place of another metric that was not measured; 0 makes the worst score that it allows, 1 the
    best.
    """
    import numpy as np

    used = used_weights(anchors, weights)
    total = sum(used.values())
    quality = anchors.scales[anchors.main].places(values[anchors.main])
    found = {}
    for metric, weight in used.items():
        if metric == anchors.main:
            place = np.ones_like(quality)
        else:
            place = anchors.scales[metric].places(values[metric])
            place = np.where(np.isnan(place), unmeasured, place)
        found[metric] = 100 * quality * place * (weight / total)
    return found


def used_weights(anchors: Anchors, weights: Mapping[str, float]) -> dict[str, float]:
    """The weights above 0 of metrics that have a scale."""
    return {name: weight for name, weight in weights.items() if weight and name in anchors.scales}


def scored(anchors: Anchors, weights: Mapping[str, float], table: Table) -> list[ScoredModel]:
    """The models by score, the best first, then by name; at the end those without the main metric.

    No model's score depends on another one. Where another metric was not measured, the score is
    from `least` to `most`, the note names the metric, and there is a rank only if the order is
    known. The middle of a range decides where it stands.
    """
    import numpy as np

    used = used_weights(anchors, weights)
    names = sorted(table)
    columns = {
        metric: np.array([_number(table[name].get(metric)) for name in names])
        for metric in {*used, anchors.main}
    }
    nothing = {anchors.main: np.full(len(names), nan)}
    ends = [
        np.sum([*(points(anchors, used, columns, unmeasured=place) or nothing).values()], axis=0)
        for place in (0.0, 1.0)
    ]
    least, most = (dict(zip(names, np.round(end, ALIKE).tolist(), strict=True)) for end in ends)
    scores = dict(zip(names, ends[0].tolist(), strict=True))
    wanted = dict.fromkeys([anchors.main, *used])
    missing = {
        name: ", ".join(metric for metric in wanted if table[name].get(metric) is None)
        for name in names
    }
    return [*_in_order(scores, least, most, missing)]


def _number(value: float | None) -> float:
    return nan if value is None else value


def _in_order(
    scores: Mapping[str, float],
    least: Mapping[str, float],
    most: Mapping[str, float],
    missing: Mapping[str, str],
) -> Iterator[ScoredModel]:
    known = [name for name in least if isfinite(least[name])]
    for name in sorted(known, key=lambda one: (-least[one] - most[one], one)):
        first = 1 + sum(least[other] > most[name] for other in known)
        last = len(known) - sum(most[other] < least[name] for other in known)
        note = f"not measured: {missing[name]}" if missing[name] else ""
        if least[name] == most[name]:
            yield ScoredModel(name, scores[name], first, note)
        else:
            rank = first if first == last else None
            yield ScoredModel(name, None, rank, note, least[name], most[name])
    for name in least:
        if name not in known:
            why = f"not run: {missing[name]}" if missing[name] else "no weighted metric has anchors"
            yield ScoredModel(name, None, None, why)
