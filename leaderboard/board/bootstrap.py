"""A run's metrics on resamples of its set: the same resamples for every model, so pairs of models.

Each example is in a resample Poisson(1) times, as in `evaluation.scoring.bootstrap`. How often is
drawn only from the set's version and the example's place, so it is the same for all models.
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
    Groups,
    choose_group_metric,
    is_in,
    read_groups,
    select_group_numbers,
)
from evaluation.scoring.metrics import Metric, Unavailable, make_metric
from evaluation.scoring.metrics.base import Sums
from evaluation.scoring.worst import WORST_GROUP, WORST_KIND, find_worst, select_comparable
from evaluation.task_shape import labels_of
from evaluation.test_sets.selectors import read_set_rows
from leaderboard.board.matrix import DRAWS
from tasks.config.schema import TaskConfig

CHUNK_EXAMPLES = 1000
"""Examples whose draws are made at once."""
Values = NDArray[np.float32]


def resample_plain(run: EvaluationRun) -> dict[str, Values]:
    """Compute each of the task's metrics that is available here on DRAWS resamples. Streams."""
    config = run.submission.task.config
    metrics, groups = list(iter_available_metrics(config)), read_groups(config)
    names = [metric.name for metric in metrics]
    vectors: list[Callable[[Sequence[Any]], Sums]] = [metric.vectors for metric in metrics]
    # Chosen by all examples, once: a choice in each resample would make the worst look worse.
    group = _find_worst_group(run, groups)
    if group:
        share = _build_metric(group.metric, config)
        metrics.append(share)
        names.append(WORST_GROUP)
        vectors.append(partial(_mask_vectors, share))

    def statistics() -> Iterator[tuple[int, tuple[Any, ...]]]:
        rows = map(groups.add_mentions, read_set_rows(run.version))
        # Strict: a file that is cut short raises ValueError, and the run is not tried again.
        for place, (row, answer) in enumerate(zip(rows, read_answers(run), strict=True)):
            value = None if answer is None else answer.value
            of_example: list[Any] = [metric.statistic(value, row) for metric in metrics]
            if group:  # its metric is the last
                of_example[-1] = (of_example[-1], is_in(row, group.slice))
            yield place, tuple(of_example)

    sums = sum_resamples(statistics(), vectors, run.version.sha256)
    values = {}
    for name, metric, of_metric in zip(names, metrics, sums, strict=True):
        if of_metric.size:
            values[name] = metric.value(of_metric).astype(np.float32)
    return values


def _find_worst_group(run: EvaluationRun, groups: Groups) -> Number | None:
    """Return the group with the lowest share of correct answers, by the run's scores.

    None without at least two groups that are large enough.
    """
    if not groups.fields:
        return None
    metric = choose_group_metric(run.submission.task.config.metrics.computed)
    scores = run.scores.exclude(slice="").filter(metric=metric)
    parts = select_comparable(
        select_group_numbers([read_number(score) for score in scores], groups.fields, metric)
    )
    return find_worst(parts) if len(parts) > 1 else None


def _mask_vectors(metric: Metric, statistics: Sequence[tuple[Any, bool]]) -> Sums:
    """Return the vectors of a metric's statistics, with 0 for those that do not count.

    statistics: pairs of a statistic and whether it counts.
    """
    of_metric, counts = zip(*statistics, strict=True)
    # A column of 0 and 1 that multiplies each line: examples × columns.
    vectors: Sums = metric.vectors(of_metric) * np.array(counts, dtype=float)[:, None]
    return vectors


def iter_available_metrics(config: TaskConfig) -> Iterator[Metric]:
    """Yield the metrics of a task that can be computed on this machine."""
    for name in config.metrics.computed:
        with suppress(Unavailable):
            yield _build_metric(name, config)


def _build_metric(name: str, config: TaskConfig) -> Metric:
    """Return a metric with the task's settings. Raises Unavailable."""
    return make_metric(name, labels_of(config), settings.SP_BLEU_MODEL, config.language)


def resample_suite(run: EvaluationRun) -> dict[str, Values]:
    """Compute the main metric under the worst kind of perturbation on DRAWS resamples. Streams.

    Empty for a suite without a column on the board, and for a suite without any kind to report.
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

    def statistics() -> Iterator[tuple[int, tuple[Any]]]:
        for place, row in enumerate(read_set_rows(run.version)):
            if row.uid in answers:  # not every example has a variant of each kind
                yield place, (metric.statistic(answers[row.uid], row),)

    (sums,) = sum_resamples(statistics(), [metric.vectors], run.version.sha256)
    if not sums.size:
        return {}
    return {WORST_KIND: metric.value(sums).astype(np.float32)}


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
    """Sum vectors over each resample; return an array DRAWS × columns for each kind of vector.

    statistics: pairs of an example's index in the set and a statistic of each kind, sorted by
    index. Memory is bounded by a chunk. Without statistics the arrays have no columns.
    """
    totals = [np.zeros((DRAWS, 0)) for _ in vectors]
    for chunk, examples in groupby(statistics, key=lambda example: example[0] // CHUNK_EXAMPLES):
        places, rows = zip(*examples, strict=True)
        # Only the drawn columns of the examples that are there: DRAWS × examples of the chunk.
        columns_of_chunk = np.array(places) % CHUNK_EXAMPLES
        drawn_counts = _draw_counts(sha256, chunk)[:, columns_of_chunk].astype(float)
        columns = zip(*rows, strict=True)  # the statistics by kind
        for kind, (to_vectors, column) in enumerate(zip(vectors, columns, strict=True)):
            total = drawn_counts @ to_vectors(column)
            earlier = totals[kind]  # of former chunks, which may have fewer columns
            total[:, : earlier.shape[1]] += earlier
            totals[kind] = total
    return totals


@lru_cache(maxsize=128)  # 26 MB: all of a set of 128,000 examples, model after model
def _draw_counts(sha256: str, chunk: int) -> NDArray[np.uint8]:
    """Draw how often each example of a chunk occurs in each resample: DRAWS × CHUNK."""
    # By set and chunk, so that any chunk can be drawn without those before it.
    chance = np.random.default_rng([int(sha256, 16), chunk])
    return chance.poisson(1.0, (DRAWS, CHUNK_EXAMPLES)).astype(np.uint8)
