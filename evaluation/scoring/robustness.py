"""Measure robustness and fairness: compare answers to variants with those to their bases."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from annotation.verdict.outcome import is_exact_match
from evaluation.contract import Answer, Number, SetRow
from evaluation.scoring.bootstrap import (
    EXAMPLES_PER_CHECK,
    UNDEFINED_NOTE,
    Tally,
    compute_resampled_difference,
    compute_resampled_interval,
    flush_large_tallies,
)
from evaluation.scoring.mean_intervals import (
    compute_difference_interval,
    compute_mean_interval,
    compute_means,
    compute_powers,
)
from evaluation.scoring.metrics import Metric, MetricUnavailable, make_metric
from evaluation.scoring.metrics.base import Mean, Sums, divide, extract_text, make_comparable
from evaluation.scoring.worst import WORST_KIND, WORST_KIND_DROP, compute_least, find_worst
from validation.rates.rates import compute_wilson_interval

NO_VARIANTS_NOTE = "No example has a perturbed variant."
CONSTANT_ANSWER_NOTE = "Always the same answer: consistency says nothing."


@dataclass(frozen=True)
class PerturbedExample:
    """An example and its perturbed variants, each with a model's answer (None if missing)."""

    base: SetRow
    answer: Answer | None
    variants: Sequence[tuple[str, SetRow, Answer | None]]  # kind, variant, answer


class _Variant(NamedTuple):
    statistic: Any  # the metric's statistic
    correctness: float  # 0-1, on its own
    is_same: bool  # whether the answer equals the base's


class Cluster(NamedTuple):
    """The statistics of an example and its variants; equal clusters are counted, not stored."""

    statistic_before: Any  # the base's statistic
    correctness: float
    variants: tuple[_Variant, ...]


def compute_delta_numbers(
    pairs: Iterable[PerturbedExample],
    *,
    metric: str,
    labels: Sequence[str] | None,
    seed: int,
    draws: int | None = None,
    sp_model: Path | None = None,
    language: str = "",
) -> list[Number]:
    """Measure how well a model keeps its score under perturbation: over all kinds, then by kind.

    Parameters
    ----------
    pairs
        Examples with their variants, and the answers to all of them.
    metric
        The name of the task's metric.
    labels
        The task's labels, if its answers are choices.
    seed
        The seed of the draws.
    draws
        The number of resamples; None as in `Tally`.
    sp_model
        A SentencePiece file, for spBLEU.
    language
        The task's language.

    Returns
    -------
    list of Number
        `kind` is empty for numbers over all kinds; n counts examples. `<metric>_before` and
        `<metric>_after`: scores over the examples that have variants. `drop`: before − after.
        `consistency`: the share of variants with the same answer as their base. `worst_case`: the
        mean over examples of the lowest score among base and variants. `worst_kind` and
        `worst_kind_drop`: the lowest `<metric>_after` of any kind, and that kind's drop.

    Notes
    -----
    Each example counts once, and its variants share its weight. Resamples draw whole examples with
    their variants (clusters).
    """
    try:
        task_metric = make_metric(metric, labels, sp_model, language)
    except MetricUnavailable as error:
        return [Number(metric, None, None, None, 0, note=str(error))]

    counter, answer_keys = ClusterCounter(task_metric, seed, draws), set[str]()
    for example in pairs:
        counter.add(make_clusters(example, task_metric, is_text=labels is None))
        # Two different answers show that the model does not always give the same one.
        if len(answer_keys) < 2:
            answer_keys |= _collect_answer_keys(example)
    numbers = counter.compute_numbers()
    # Perfectly consistent, because it does not read its texts.
    if len(answer_keys) == 1 and "" not in answer_keys:
        numbers[0] = replace(numbers[0], note=CONSTANT_ANSWER_NOTE)
    return numbers


class ClusterCounter:
    """Counts equal clusters of a model's answers, over all kinds of perturbation and by kind."""

    def __init__(self, metric: Metric, seed: int, draws: int | None) -> None:
        self._metric, self._seed, self._draws = metric, seed, draws
        self._tallies = {"": _make_tally(metric, "", seed, draws)}
        self._example_count = 0

    def add(self, clusters: Iterable[tuple[str, Cluster]]) -> None:
        """Count the clusters of one example, as `make_clusters` yields them."""
        for kind, cluster in clusters:
            if kind not in self._tallies:
                self._tallies[kind] = _make_tally(self._metric, kind, self._seed, self._draws)
            self._tallies[kind].counts[cluster] += 1
        self._example_count += 1
        if self._example_count % EXAMPLES_PER_CHECK == 0:
            flush_large_tallies(list(self._tallies.values()))

    def compute_numbers(self) -> list[Number]:
        """Return the numbers that `compute_delta_numbers` documents."""
        numbers: list[Number] = []
        for kind in sorted(self._tallies):
            numbers += _yield_numbers(self._metric, self._tallies[kind], kind)
        return numbers + find_worst_kind(numbers, self._metric.name)


def _make_tally(metric: Metric, kind: str, seed: int, draws: int | None) -> Tally:
    """Return an empty tally of a kind's clusters. The tally of a mean draws no resamples."""
    if isinstance(metric, Mean):
        return Tally(_make_mean_vectors, name=kind, seed=seed, draws=0)
    return Tally(
        lambda clusters: _make_vectors(metric, clusters), name=kind, seed=seed, draws=draws
    )


def _collect_answer_keys(example: PerturbedExample) -> set[str]:
    """Return the distinct keys of the answers to an example and its variants.

    "" stands for a missing answer. Empty without variants.
    """
    if not example.variants:
        return set()
    keys = {_make_answer_key(example.answer)}
    for _kind, _row, answer in example.variants:
        keys.add(_make_answer_key(answer))
    return keys


def _make_answer_key(answer: Answer | None) -> str:
    return "" if answer is None else repr(make_comparable(answer.value))


def find_worst_kind(numbers: Sequence[Number], metric: str) -> list[Number]:
    """Return two numbers: the lowest score after a kind of perturbation, and that kind's drop."""
    after_by_kind = [
        number for number in numbers if number.kind and number.metric == f"{metric}_after"
    ]
    worst_after, value = find_worst(after_by_kind), compute_least(WORST_KIND, after_by_kind)
    if worst_after is None:
        return [value, replace(value, metric=WORST_KIND_DROP)]
    drop_by_kind = {number.kind: number for number in numbers if number.metric == "drop"}
    drop = drop_by_kind[worst_after.kind]
    return [value, replace(drop, metric=WORST_KIND_DROP, kind="")]


def make_clusters(
    example: PerturbedExample, metric: Metric, *, is_text: bool
) -> Iterator[tuple[str, Cluster]]:
    """Yield a cluster for all kinds together ("") and one for each kind; none without variants."""
    # Computed once, for all kinds of this base.
    base_statistic = metric.compute_statistic(_get_value(example.answer), example.base)
    variants_by_kind: dict[str, list[_Variant]] = {}
    for kind, row, answer in example.variants:
        statistic = metric.compute_statistic(_get_value(answer), row)
        is_same = is_same_answer(example.answer, answer, is_text, metric.language)
        variant = _Variant(statistic, metric.grade(statistic), is_same)
        variants_by_kind.setdefault(kind, []).append(variant)
        # The empty kind means all kinds together.
        variants_by_kind.setdefault("", []).append(variant)
    for kind, kind_variants in variants_by_kind.items():
        yield (
            kind,
            Cluster(base_statistic, metric.grade(base_statistic), tuple(sorted(kind_variants))),
        )


def _get_value(answer: Answer | None) -> Any:
    return None if answer is None else answer.value


def is_same_answer(
    answer: Answer | None, other_answer: Answer | None, is_text: bool, language: str = ""
) -> bool:
    """Return whether two answers are the same.

    Texts are compared after normalisation, because a perturbation may have changed their case.

    Parameters
    ----------
    answer, other_answer
        The answers; a missing answer is None, which equals nothing.
    is_text
        Whether answers are free texts, not labels.
    language
        The task's language, which determines how case is folded.
    """
    if answer is None or other_answer is None:
        return False
    if is_text and is_exact_match(
        extract_text(answer.value), extract_text(other_answer.value), language
    ):
        return True
    return bool(make_comparable(answer.value) == make_comparable(other_answer.value))


def _make_vectors(metric: Metric, clusters: Sequence[Cluster]) -> Sums:
    """Return one row per cluster: 1, consistent share, lowest score, then the metric's columns.

    The metric's columns alternate between before and after.
    """
    sizes = [len(cluster.variants) for cluster in clusters]
    variants = chain.from_iterable(cluster.variants for cluster in clusters)
    before_vectors = metric.compute_vectors([cluster.statistic_before for cluster in clusters])
    after_vectors = metric.compute_vectors([variant.statistic for variant in variants])
    metric_vectors = np.zeros((len(clusters), after_vectors.shape[1], 2))
    # The later call may have more columns.
    metric_vectors[:, : before_vectors.shape[1], 0] = before_vectors
    # Each variant counts as a share of its example: sum a cluster's rows, divide by its size.
    starts = np.cumsum([0, *sizes[:-1]])
    shares = np.add.reduceat(after_vectors, starts)
    metric_vectors[:, :, 1] = shares / np.array(sizes)[:, None]
    return np.hstack([_compute_shares(clusters), metric_vectors.reshape(len(clusters), -1)])


def _compute_shares(clusters: Sequence[Cluster]) -> Sums:
    """Return for each cluster 1, the share of consistent variants, and the lowest score."""
    rows = []
    for cluster in clusters:
        same_share = sum(variant.is_same for variant in cluster.variants) / len(cluster.variants)
        lowest_correctness = min(variant.correctness for variant in cluster.variants)
        rows.append((1.0, same_share, min(cluster.correctness, lowest_correctness)))
    return np.array(rows)


def _make_mean_vectors(clusters: Sequence[Cluster]) -> Sums:
    """Return powers of the mean before, the mean after, the drop, and the shares."""
    values_before = np.array([cluster.statistic_before for cluster in clusters], dtype=float)
    means_after = []
    for cluster in clusters:
        means_after.append(fmean(variant.statistic for variant in cluster.variants))
    values_after = np.array(means_after)
    shares = _compute_shares(clusters)[:, 1:]
    return compute_powers(
        np.column_stack([values_before, values_after, values_before - values_after, shares])
    )


def _list_score_names(metric: Metric) -> tuple[str, ...]:
    return (f"{metric.name}_before", f"{metric.name}_after", "drop", "consistency", "worst_case")


def _yield_mean_numbers(metric: Metric, tally: Tally, kind: str) -> Iterator[Number]:
    """Yield the same numbers as `_yield_numbers` for a metric that is a mean.

    Such a metric needs no resampling.
    """
    for name, mean in zip(
        _list_score_names(metric), compute_means(tally.compute_sums()[0]), strict=True
    ):
        value, low, high = (
            compute_difference_interval(mean) if name == "drop" else compute_mean_interval(mean)
        )
        yield Number(name, value, low, high, tally.n, kind=kind)


def _yield_numbers(metric: Metric, tally: Tally, kind: str) -> Iterator[Number]:
    """Yield the numbers of a kind of perturbation, with intervals."""
    sums, names = tally.compute_sums(), _list_score_names(metric)
    # No base has a variant, because no kind can change this language or these texts.
    if tally.n == 0:
        for name in names:
            yield Number(name, None, None, None, 0, note=NO_VARIANTS_NOTE)
        return
    if isinstance(metric, Mean):
        yield from _yield_mean_numbers(metric, tally, kind)
        return
    # The columns of `_make_vectors`: 1, consistent, worst, then before and after alternately.
    metric_sums = sums[:, 3:].reshape(len(sums), -1, 2)
    scores_before, scores_after = (
        metric.compute_value(metric_sums[..., 0]),
        metric.compute_value(metric_sums[..., 1]),
    )
    columns = [scores_before, scores_after, scores_before - scores_after]
    columns += [divide(column, sums[:, 0]) for column in sums[:, 1:3].T]
    for name, values in zip(names, columns, strict=True):
        if np.isnan(values[0]):
            yield Number(name, None, None, None, tally.n, kind=kind, note=UNDEFINED_NOTE)
            continue
        if name == "drop":
            value, low, high = compute_resampled_difference(values, tally.n)
        else:
            value, low, high = compute_resampled_interval(values, tally.n)
        if low is None and name in ("consistency", "worst_case"):
            # With few examples, a share gets Wilson's interval if resamples show none.
            low, high = compute_wilson_interval(value * tally.n, tally.n)
        yield Number(name, value, low, high, tally.n, kind=kind)
