"""Robustness and fairness: answers to perturbed variants against those to their bases."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from annotation.rules.outcome import exact_match
from evaluation.contract import Answer, Number, SetRow
from evaluation.scoring.bootstrap import (
    LOOK_EVERY,
    UNDEFINED,
    Tally,
    bounded,
    bounded_difference,
    settle_many,
)
from evaluation.scoring.mean_intervals import (
    difference_interval,
    mean_interval,
    means_of,
    powers,
)
from evaluation.scoring.metrics import Metric, Unavailable, metric_of
from evaluation.scoring.metrics.base import Mean, Sums, divide, plain, text_of
from evaluation.scoring.worst import WORST_KIND, WORST_KIND_DROP, least, worst
from validation.rules.rates import wilson

NO_VARIANTS = "No example has a perturbed variant."
ALWAYS_THE_SAME = "Always the same answer: consistency says nothing."


@dataclass(frozen=True)
class Perturbed:
    """An example and its perturbed variants, with what a model answered to each (None: nothing)."""

    base: SetRow
    answer: Answer | None
    variants: Sequence[tuple[str, SetRow, Answer | None]]  # kind, variant, answer


class _Variant(NamedTuple):
    statistic: Any  # of the metric
    right: float  # 0-1, by itself
    same: bool  # answer as of the base


class _Cluster(NamedTuple):
    """What an example and its variants add; equal ones are counted, like a score's statistics."""

    before: Any  # statistic
    right: float
    variants: tuple[_Variant, ...]


def delta_numbers(
    pairs: Iterable[Perturbed],
    *,
    metric: str,
    labels: Sequence[str] | None,
    seed: int,
    draws: int | None = None,
    sp_model: Path | None = None,
    language: str = "",
) -> list[Number]:
    """How a model keeps its score under perturbation: over all kinds (kind empty), then by kind.

    `<metric>_before` and `<metric>_after` are on gold, over the examples that have variants; each
    counts once, shared by its variants. `drop`: before − after. `consistency`: share of variants
    with the answer of their base. `worst_case`: mean over examples of the least right answer, of
    base and variants. Intervals are of whole examples (clusters), drawn with their variants; n
    counts examples. `worst_kind` and `worst_kind_drop`: the least `<metric>_after` of any kind,
    and the drop of that kind.
    """
    try:
        how = metric_of(metric, labels, sp_model, language)
    except Unavailable as error:
        return [Number(metric, None, None, None, 0, note=str(error))]

    def tally(kind: str) -> Tally:
        if isinstance(how, Mean):
            return Tally(_mean_vectors, name=kind, seed=seed, draws=0)
        return Tally(lambda some: _vectors(how, some), name=kind, seed=seed, draws=draws)

    tallies = {"": tally("")}
    answers: set[str] = set()
    for number, pair in enumerate(pairs, 1):
        for kind, cluster in _clusters(pair, how, is_text=labels is None):
            if kind not in tallies:
                tallies[kind] = tally(kind)
            tallies[kind].counts[cluster] += 1
        if len(answers) < 2 and pair.variants:
            given = (pair.answer, *(answer for _, _, answer in pair.variants))
            answers |= {"" if answer is None else repr(plain(answer.value)) for answer in given}
        if number % LOOK_EVERY == 0:
            settle_many([*tallies.values()])
    found = [number for kind in sorted(tallies) for number in _numbers(how, tallies[kind], kind)]
    if len(answers) == 1 and "" not in answers:
        found[0] = replace(found[0], note=ALWAYS_THE_SAME)
    return found + worst_kind(found, how.name)


def worst_kind(numbers: Sequence[Number], metric: str) -> list[Number]:
    """The worst of all kinds by the metric after perturbing, and the drop of that kind."""
    kinds = [one for one in numbers if one.kind and one.metric == f"{metric}_after"]
    found, value = worst(kinds), least(WORST_KIND, kinds)
    if found is None:
        return [value, replace(value, metric=WORST_KIND_DROP)]
    (drop,) = (one for one in numbers if (one.metric, one.kind) == ("drop", found.kind))
    return [value, replace(drop, metric=WORST_KIND_DROP, kind="")]


def _clusters(pair: Perturbed, how: Metric, *, is_text: bool) -> Iterator[tuple[str, _Cluster]]:
    """The cluster of all kinds and of each kind; nothing without variants."""
    before = how.statistic(_value(pair.answer), pair.base)
    by_kind: dict[str, list[_Variant]] = {}
    for kind, row, answer in pair.variants:
        after = how.statistic(_value(answer), row)
        same = is_same(pair.answer, answer, is_text, how.language)
        variant = _Variant(after, how.graded(after), same)
        by_kind.setdefault(kind, []).append(variant)
        by_kind.setdefault("", []).append(variant)
    for kind, of_kind in by_kind.items():
        yield kind, _Cluster(before, how.graded(before), tuple(sorted(of_kind)))


def _value(answer: Answer | None) -> Any:
    return None if answer is None else answer.value


def is_same(one: Answer | None, other: Answer | None, is_text: bool, language: str = "") -> bool:
    """Whether both were answered alike; texts once normalised, as case may have been changed."""
    if one is None or other is None:
        return False
    if is_text and exact_match(text_of(one.value), text_of(other.value), language):
        return True
    return bool(plain(one.value) == plain(other.value))


def _vectors(how: Metric, clusters: Sequence[_Cluster]) -> Sums:
    """Columns 1, consistent, worst; then those of the metric, before and after in turn."""
    sizes = [len(cluster.variants) for cluster in clusters]
    before = how.vectors([cluster.before for cluster in clusters])
    after = how.vectors([variant.statistic for cluster in clusters for variant in cluster.variants])
    wide = np.zeros((len(clusters), after.shape[1], 2))
    wide[:, : before.shape[1], 0] = before  # the later call may have more columns
    shares = np.add.reduceat(after, np.cumsum([0, *sizes[:-1]]))
    wide[:, :, 1] = shares / np.array(sizes)[:, None]
    return np.hstack([_shares(clusters), wide.reshape(len(clusters), -1)])


def _shares(clusters: Sequence[_Cluster]) -> Sums:
    """Of each cluster 1, the part of its variants with the same answer, and the worst of all."""
    return np.array(
        [
            (
                1.0,
                sum(variant.same for variant in cluster.variants) / len(cluster.variants),
                min(cluster.right, *(variant.right for variant in cluster.variants)),
            )
            for cluster in clusters
        ]
    )


def _mean_vectors(clusters: Sequence[_Cluster]) -> Sums:
    """Powers of what a mean is before and after, of the drop, and of the shares."""
    before = np.array([cluster.before for cluster in clusters], dtype=float)
    after = np.array(
        [fmean(variant.statistic for variant in cluster.variants) for cluster in clusters]
    )
    shares = _shares(clusters)[:, 1:]
    return powers(np.column_stack([before, after, before - after, shares]))


def _names(how: Metric) -> tuple[str, ...]:
    return (f"{how.name}_before", f"{how.name}_after", "drop", "consistency", "worst_case")


def _mean_numbers(how: Metric, tally: Tally, kind: str) -> Iterator[Number]:
    """As `_numbers`, of a metric that is a mean: without draws."""
    for name, mean in zip(_names(how), means_of(tally.sums()[0]), strict=True):
        found = difference_interval(mean) if name == "drop" else mean_interval(mean)
        yield Number(name, *found, tally.n, kind=kind)


def _numbers(how: Metric, tally: Tally, kind: str) -> Iterator[Number]:
    sums, names = tally.sums(), _names(how)
    if tally.n == 0:
        for name in names:
            yield Number(name, None, None, None, 0, note=NO_VARIANTS)
        return
    if isinstance(how, Mean):
        yield from _mean_numbers(how, tally, kind)
        return
    of_metric = sums[:, 3:].reshape(len(sums), -1, 2)
    before, after = how.value(of_metric[..., 0]), how.value(of_metric[..., 1])
    shares = [divide(column, sums[:, 0]) for column in sums[:, 1:3].T]
    for name, values in zip(names, (before, after, before - after, *shares), strict=True):
        if np.isnan(values[0]):
            note = UNDEFINED
            yield Number(name, None, None, None, tally.n, kind=kind, note=note)
            continue
        value, low, high = (bounded_difference if name == "drop" else bounded)(values, tally.n)
        if low is None and name in names[3:]:
            low, high = wilson(value * tally.n, tally.n)
        yield Number(name, value, low, high, tally.n, kind=kind)
