"""What one model got wrong on a set, for those who may see right answers; it loads numpy."""

import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from django.conf import settings

from evaluation.asked import labels_of
from evaluation.contract import Answer, SetRow
from evaluation.evaluating import read_predictions
from evaluation.metrics import Metric, Unavailable, metric_of
from evaluation.models import EvaluationRun
from evaluation.sets import set_rows
from tasks.schema import TaskConfig

SHOWN = 20
"""On a page."""


@dataclass(frozen=True)
class Wrong:
    """An example with what the model said, in people's words. score: how right it was, 0-1."""

    fields: list[tuple[str, str]]
    answer: str
    right: list[str]
    score: float


def wrong_answers(run: EvaluationRun, page: int) -> list[Wrong]:
    """A page of the examples that a model did not get wholly right, and one more if there is.

    By the task's main metric; empty where that cannot be computed here. Reads up to there.
    """
    config = run.submission.task.config
    try:
        metric = metric_of(config.metrics.main, labels_of(config), settings.SP_BLEU_MODEL)
    except Unavailable:
        return []
    start = (page - 1) * SHOWN
    return list(islice(_wrong(run, config, metric), start, start + SHOWN + 1))


def _wrong(run: EvaluationRun, config: TaskConfig, metric: Metric) -> Iterator[Wrong]:
    with run.predictions.open("rb") as file, gzip.open(file) as lines:
        for row, answer in zip(set_rows(run.version), read_predictions(lines), strict=True):
            value = None if answer is None else answer.value
            score = metric.graded(metric.statistic(value, row))
            if score < 1:
                yield _shown(config, row, answer, score)


def _shown(config: TaskConfig, row: SetRow, answer: Answer | None, score: float) -> Wrong:
    field = config.answer_field
    return Wrong(
        fields=[
            (config.component(name).title, config.display(name, value))
            for name, value in row.inputs.items()
        ],
        answer="no answer" if answer is None else config.display(field, answer.value),
        right=[config.display(field, gold) for gold in row.gold],
        score=score,
    )
