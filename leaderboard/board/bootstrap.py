"""A run's metrics on resamples of its set. All models share the resamples, so they can be paired.

Each example occurs in a resample Poisson(1) times, as in `evaluation.scoring.bootstrap`. The draws
depend only on the set's version and the example's index, so they are the same for all models.
"""

import gzip
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from itertools import groupby
from typing import Any

import numpy as np
import orjson
from django.conf import settings
from numpy.typing import NDArray

from evaluation.contract import Answer, Number
from evaluation.isolation.inference.evaluate import read_predictions
from evaluation.models import EvaluationRun, Score
from evaluation.scoring.groups import (
    GroupDefinitions,
    choose_group_metric,
    is_in_slice,
    read_groups,
    select_group_numbers,
)
from evaluation.scoring.metrics import Metric, MetricUnavailable, make_metric
from evaluation.scoring.metrics.base import Sums
from evaluation.scoring.worst import WORST_GROUP, WORST_KIND, find_worst, select_comparable
from evaluation.task_shape import get_labels
from evaluation.test_sets.selectors import read_set_rows
from leaderboard.board.matrix import DRAW_COUNT
from tasks.config.schema import TaskConfig

CHUNK_EXAMPLES = 1000
"""The number of examples whose draws are made at once."""
Values = NDArray[np.float32]


def resample_plain(run: EvaluationRun) -> dict[str, Values]:
    """Compute the task's metrics on DRAW_COUNT resamples, without those unavailable here.

    Includes the share of the worst group if there are groups to compare. Reads the answers one by
    one. Raises ValueError if a file is cut short.
    """
    config = run.submission.task.config
    metrics, groups = list(iter_available_metrics(config)), read_groups(config)
    names = [metric.name for metric in metrics]
    vectors: list[Callable[[Sequence[Any]], Sums]] = [metric.compute_vectors for metric in metrics]
    # Chosen once by all examples: a choice per resample would make the worst look worse.
    group = _find_worst_group(run, groups)
    if group:
        share_metric = _build_metric(group.metric, config)
        metrics.append(share_metric)
        names.append(WORST_GROUP)
        vectors.append(partial(_mask_vectors, share_metric))

    def iterate_statistics() -> Iterator[tuple[int, tuple[Any, ...]]]:
        rows = map(groups.add_mentions, read_set_rows(run.version))
        # Strict: a truncated file raises ValueError, and the run is not tried again.
        for row_index, (row, answer) in enumerate(zip(rows, read_answers(run), strict=True)):
            value = None if answer is None else answer.value
            example_statistics: list[Any] = [
                metric.compute_statistic(value, row) for metric in metrics
            ]
            if group:  # the group's metric is the last one
                example_statistics[-1] = (example_statistics[-1], is_in_slice(row, group.slice))
            yield row_index, tuple(example_statistics)

    sums = sum_resamples(iterate_statistics(), vectors, run.version.sha256)
    values = {}
    for name, metric, metric_sums in zip(names, metrics, sums, strict=True):
        if metric_sums.size:
            values[name] = metric.compute_value(metric_sums).astype(np.float32)
    return values


def _find_worst_group(run: EvaluationRun, groups: GroupDefinitions) -> Number | None:
    """Return the group with the lowest share of correct answers, by the run's scores.

    None without at least two groups that are large enough.
    """
    if not groups.fields:
        return None
    metric = choose_group_metric(run.submission.task.config.metrics.computed_names)
    scores = run.scores.exclude(slice="").filter(metric=metric)
    group_numbers = select_comparable(
        select_group_numbers([read_number(score) for score in scores], groups.fields, metric)
    )
    return find_worst(group_numbers) if len(group_numbers) > 1 else None


def _mask_vectors(metric: Metric, statistics: Sequence[tuple[Any, bool]]) -> Sums:
    """Return the vectors of a metric's statistics, with 0 for those that do not count.

    statistics: pairs of a statistic and whether it counts.
    """
    metric_statistics, mask = zip(*statistics, strict=True)
    # A column of 0 and 1 that multiplies each line: examples × columns.
    vectors: Sums = metric.compute_vectors(metric_statistics) * np.array(mask, dtype=float)[:, None]
    return vectors


def iter_available_metrics(config: TaskConfig) -> Iterator[Metric]:
    """Yield the metrics of a task that can be computed on this machine."""
    for name in config.metrics.computed_names:
        with suppress(MetricUnavailable):
            yield _build_metric(name, config)


def _build_metric(name: str, config: TaskConfig) -> Metric:
    """Return a metric with the task's settings. Raises MetricUnavailable."""
    return make_metric(name, get_labels(config), settings.SP_BLEU_MODEL, config.language)


def resample_suite(run: EvaluationRun) -> dict[str, Values]:
    """Compute the main metric under the worst perturbation on DRAW_COUNT resamples.

    The result is empty if the suite has no column on the board or no kind of perturbation to
    report.
    """
    if run.suite != EvaluationRun.Suite.ROBUSTNESS:
        return {}
    config = run.submission.task.config
    kinds = run.scores.filter(metric=f"{config.metrics.main}_after").exclude(kind="")
    worst_kind = find_worst([read_number(score) for score in kinds])
    if worst_kind is None:
        return {}
    metric = _build_metric(config.metrics.main, config)
    answers = _read_answers_to(run, worst_kind.kind)

    def iterate_statistics() -> Iterator[tuple[int, tuple[Any]]]:
        for row_index, row in enumerate(read_set_rows(run.version)):
            if row.uid in answers:  # not every example has a variant of each kind
                yield row_index, (metric.compute_statistic(answers[row.uid], row),)

    (sums,) = sum_resamples(iterate_statistics(), [metric.compute_vectors], run.version.sha256)
    if not sums.size:
        return {}
    return {WORST_KIND: metric.compute_value(sums).astype(np.float32)}


def _read_answers_to(run: EvaluationRun, kind: str) -> dict[str, Any]:
    """Return a model's answers to the variants of a kind, by the uid of the original examples."""
    answers = {}
    with run.predictions.open("rb") as file, gzip.open(file) as lines:
        for row in map(orjson.loads, lines):
            if row["kind"] == kind:
                answers[str(row["uid"])] = row["answer"]
    return answers


def read_number(score: Score) -> Number:
    """Return a stored score as the number that was computed."""
    return Number(
        score.metric, score.value, score.low, score.high, score.n, score.slice, score.kind
    )


def read_answers(run: EvaluationRun) -> Iterator[Answer | None]:
    """Yield a model's answers in a plain run, in the order of the set."""
    with run.predictions.open("rb") as file, gzip.open(file) as lines:
        yield from read_predictions(lines)


def sum_resamples(
    statistics: Iterable[tuple[int, Sequence[Any]]],
    vectors: Sequence[Callable[[Sequence[Any]], Sums]],
    sha256: str,
) -> list[Sums]:
    """Sum vectors over each resample; return DRAW_COUNT × columns for each kind of vector.

    statistics: pairs of an example's index in the set and a statistic of each kind, sorted by
    index. Only one chunk of examples is in memory at a time. Without statistics the arrays have no
    columns.
    """
    totals = [np.zeros((DRAW_COUNT, 0)) for _ in vectors]
    for chunk, examples in groupby(statistics, key=lambda example: example[0] // CHUNK_EXAMPLES):
        places, rows = zip(*examples, strict=True)
        # Only the drawn columns of the existing examples: DRAWS × examples of the chunk.
        columns_of_chunk = np.array(places) % CHUNK_EXAMPLES
        drawn_counts = _draw_counts(sha256, chunk)[:, columns_of_chunk].astype(float)
        columns = zip(*rows, strict=True)  # the statistics by kind
        for kind, (to_vectors, column) in enumerate(zip(vectors, columns, strict=True)):
            total = drawn_counts @ to_vectors(column)
            earlier = totals[kind]  # of earlier chunks, which may have fewer columns
            total[:, : earlier.shape[1]] += earlier
            totals[kind] = total
    return totals


@lru_cache(maxsize=128)  # 26 MB: all of a set of 128,000 examples, model after model
def _draw_counts(sha256: str, chunk: int) -> NDArray[np.uint8]:
    """Draw how often each example of a chunk occurs: DRAW_COUNT × CHUNK_EXAMPLES."""
    # By set and chunk, so that any chunk can be drawn without those before it.
    rng = np.random.default_rng([int(sha256, 16), chunk])
    return rng.poisson(1.0, (DRAW_COUNT, CHUNK_EXAMPLES)).astype(np.uint8)
