"""A run's metrics on resamples of its set: the same resamples for every model, so pairs of models.

Each example is in a resample Poisson(1) times, as in `evaluation.scoring.bootstrap`, by a
generator that knows nothing but the set's version and the example's place.
"""

import gzip
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import groupby
from typing import Any

import numpy as np
import orjson
from django.conf import settings
from numpy.typing import NDArray

from evaluation.contract import Answer
from evaluation.inference.evaluate import read_predictions
from evaluation.models import EvaluationRun
from evaluation.scoring.metrics import Metric, Unavailable, metric_of
from evaluation.scoring.metrics.base import Sums, divide
from evaluation.scoring.robustness import is_same
from evaluation.sets.selectors import set_rows
from evaluation.sets.shown_scores import CONSISTENCY
from evaluation.task_shape import labels_of
from leaderboard.board.matrix import DRAWS
from tasks.config.schema import TaskConfig

CHUNK = 1000
"""Examples whose draws are made at once."""
Values = NDArray[np.float32]
NO_VARIANTS: tuple[str, list[Answer | None]] = ("", [])


def resample_plain(run: EvaluationRun) -> dict[str, Values]:
    """Each metric of the task that can be computed here, on DRAWS resamples. Streams."""
    metrics = [*metrics_here(run.submission.task.config)]

    def statistics() -> Iterator[tuple[int, tuple[Any, ...]]]:
        pairs = zip(set_rows(run.version), answers_of(run), strict=True)
        for place, (row, answer) in enumerate(pairs):
            value = None if answer is None else answer.value
            yield place, tuple(metric.statistic(value, row) for metric in metrics)

    sums = resampled(statistics(), [metric.vectors for metric in metrics], run.version.sha256)
    return {
        metric.name: metric.value(of_metric).astype(np.float32)
        for metric, of_metric in zip(metrics, sums, strict=True)
        if of_metric.size
    }


def metrics_here(config: TaskConfig) -> Iterator[Metric]:
    """The metrics of a task that can be computed on this machine."""
    for name in config.metrics.computed:
        with suppress(Unavailable):
            yield metric_of(name, labels_of(config), settings.SP_BLEU_MODEL)


def resample_suite(run: EvaluationRun, plain: EvaluationRun) -> dict[str, Values]:
    """The consistency of a perturbed run with the plain one, on DRAWS resamples. Streams."""
    (sums,) = resampled(_shares(run, plain), [_of_mean], run.version.sha256)
    return {CONSISTENCY: divide(sums[:, 1], sums[:, 0]).astype(np.float32)} if sums.size else {}


def _shares(run: EvaluationRun, plain: EvaluationRun) -> Iterator[tuple[int, tuple[float]]]:
    """Of each example with variants, the share of these that have the answer of the example."""
    is_text = labels_of(run.submission.task.config) is None
    with run.predictions.open("rb") as file, gzip.open(file) as lines:
        variants = _by_example(lines)
        uid, of_uid = next(variants, NO_VARIANTS)
        for place, (row, answer) in enumerate(
            zip(set_rows(run.version), answers_of(plain), strict=True)
        ):
            if row.uid == uid:
                same = [is_same(answer, said, is_text) for said in of_uid]
                yield place, (sum(same) / len(same),)
                uid, of_uid = next(variants, NO_VARIANTS)


def _by_example(lines: Iterable[bytes]) -> Iterator[tuple[str, list[Answer | None]]]:
    """The uid of each example in a file of perturbed predictions; the answers to its variants."""
    for uid, some in groupby(lines, key=lambda line: str(orjson.loads(line)["uid"])):
        yield uid, list(read_predictions(some))


def _of_mean(statistics: Sequence[float]) -> Sums:
    return np.column_stack([np.ones(len(statistics)), statistics])


def answers_of(run: EvaluationRun) -> Iterator[Answer | None]:
    """What a model answered in a plain run, in the order of the set."""
    with run.predictions.open("rb") as file, gzip.open(file) as lines:
        yield from read_predictions(lines)


def resampled(
    statistics: Iterable[tuple[int, Sequence[Any]]],
    vectors: Sequence[Callable[[Sequence[Any]], Sums]],
    sha256: str,
) -> list[Sums]:
    """Sums of vectors over each resample: for each kind of them DRAWS × columns.

    statistics: an example's place in the set, and a statistic for each kind; by place. Memory is
    bounded by a chunk. Sums of nothing have no columns.
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
    """How often each example of a chunk is in each resample: DRAWS × CHUNK."""
    chance = np.random.default_rng([int(sha256, 16), chunk])
    return chance.poisson(1.0, (DRAWS, CHUNK)).astype(np.uint8)
