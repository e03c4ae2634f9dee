"""A run's metrics on resamples of its set: the same resamples for every model, so pairs of models.

Each example is in a resample Poisson(1) times, as in `evaluation.scoring.bootstrap`, by a
generator that knows nothing but the set's version and the example's place.
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
from evaluation.scoring.groups import Groups, groups_of, is_in, parts_of, share_of
from evaluation.scoring.metrics import Metric, Unavailable, metric_of
from evaluation.scoring.metrics.base import Sums
from evaluation.scoring.worst import WORST_GROUP, WORST_KIND, comparable, worst
from evaluation.sets.selectors import set_rows
from evaluation.task_shape import labels_of
from leaderboard.board.matrix import DRAWS
from tasks.config.schema import TaskConfig

CHUNK = 1000
"""Examples whose draws are made at once."""
Values = NDArray[np.float32]


def resample_plain(run: EvaluationRun) -> dict[str, Values]:
    """Compute each metric of the task that is available here on DRAWS resamples. Streams."""
    config = run.submission.task.config
    metrics, groups = [*available_metrics(config)], groups_of(config)
    names = [metric.name for metric in metrics]
    vectors = [metric.vectors for metric in metrics]
    if part := _worst_group(run, groups):
        share = metric_of(part.metric, labels_of(config), settings.SP_BLEU_MODEL, config.language)
        metrics.append(share)
        names.append(WORST_GROUP)
        vectors.append(partial(_of_some, share))

    def statistics() -> Iterator[tuple[int, tuple[Any, ...]]]:
        pairs = zip(map(groups.named, set_rows(run.version)), read_answers(run), strict=True)
        for place, (row, answer) in enumerate(pairs):
            value = None if answer is None else answer.value
            found = [metric.statistic(value, row) for metric in metrics]
            if part:
                found[-1] = (found[-1], is_in(row, part.slice))
            yield place, tuple(found)

    sums = sum_resamples(statistics(), vectors, run.version.sha256)
    return {
        name: metric.value(of_metric).astype(np.float32)
        for name, metric, of_metric in zip(names, metrics, sums, strict=True)
        if of_metric.size
    }


def _worst_group(run: EvaluationRun, groups: Groups) -> Number | None:
    """Return the group with the smallest share of right answers by the run's scores.

    None when the groups are too small.
    """
    metric = share_of(run.submission.task.config.metrics.computed)
    scores = run.scores.exclude(slice="").filter(metric=metric) if groups.fields else ()
    parts = comparable(parts_of([number_of(score) for score in scores], groups.fields, metric))
    return worst(parts) if len(parts) > 1 else None


def _of_some(metric: Metric, statistics: Sequence[tuple[Any, bool]]) -> Sums:
    """Return the vectors of a metric's statistics, 0 for those that do not count.

    statistics: each with whether it counts.
    """
    found, counts = zip(*statistics, strict=True)
    vectors: Sums = metric.vectors(found) * np.array(counts, dtype=float)[:, None]
    return vectors


def available_metrics(config: TaskConfig) -> Iterator[Metric]:
    """Yield the metrics of a task that can be computed on this machine."""
    for name in config.metrics.computed:
        with suppress(Unavailable):
            yield metric_of(name, labels_of(config), settings.SP_BLEU_MODEL, config.language)


def resample_suite(run: EvaluationRun) -> dict[str, Values]:
    """Compute the main metric under the worst kind of perturbation on DRAWS resamples. Streams.

    Empty for a suite that no column uses, and for one without such a kind.
    """
    config = run.submission.task.config
    kinds = [*run.scores.filter(metric=f"{config.metrics.main}_after").exclude(kind="")]
    part = worst([number_of(score) for score in kinds])
    if run.suite != EvaluationRun.Suite.ROBUSTNESS or part is None:
        return {}
    metric = metric_of(
        config.metrics.main, labels_of(config), settings.SP_BLEU_MODEL, config.language
    )
    answers = _of_kind(run, part.kind)
    statistics = (
        (place, (metric.statistic(answers[row.uid], row),))
        for place, row in enumerate(set_rows(run.version))
        if row.uid in answers
    )
    (sums,) = sum_resamples(statistics, [metric.vectors], run.version.sha256)
    return {WORST_KIND: metric.value(sums).astype(np.float32)} if sums.size else {}


def _of_kind(run: EvaluationRun, kind: str) -> dict[str, Any]:
    """Return a model's answers to the variants of a kind, by uid of their examples."""
    with run.predictions.open("rb") as file, gzip.open(file) as lines:
        rows = map(orjson.loads, lines)
        return {str(row["uid"]): row["answer"] for row in rows if row["kind"] == kind}


def number_of(score: Score) -> Number:
    """Return a stored score as it was computed."""
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
    """Sum vectors over each resample: an array DRAWS × columns for each kind of vector.

    statistics: an example's place in the set, and a statistic of each kind, ordered by place.
    Memory is bounded by a chunk. Sums of nothing have no columns.
    """
    totals = [np.zeros((DRAWS, 0)) for _ in vectors]
    for chunk, some in groupby(statistics, key=lambda item: item[0] // CHUNK):
        places, rows = zip(*some, strict=True)
        drawn = _draws(sha256, chunk)[:, np.array(places) % CHUNK].astype(float)
        for kind, (of_kind, column) in enumerate(
            zip(vectors, zip(*rows, strict=True), strict=True)
        ):
            more = drawn @ of_kind(column)
            more[:, : totals[kind].shape[1]] += totals[kind]  # later ones may have more columns
            totals[kind] = more
    return totals


@lru_cache(maxsize=128)  # 26 MB: all of a set of 128,000 examples, model after model
def _draws(sha256: str, chunk: int) -> NDArray[np.uint8]:
    """Draw how often each example of a chunk is in each resample: DRAWS × CHUNK."""
    chance = np.random.default_rng([int(sha256, 16), chunk])
    return chance.poisson(1.0, (DRAWS, CHUNK)).astype(np.uint8)
