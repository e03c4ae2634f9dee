"""One model's wrong answers on a set, for people who may see the right ones. Loads numpy."""

import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from django.conf import settings
from django.utils.translation import gettext

from evaluation.contract import Answer, SetRow
from evaluation.isolation.inference.evaluate import read_predictions
from evaluation.models import EvaluationRun
from evaluation.scoring.metrics import Metric, MetricUnavailable, make_metric
from evaluation.task_shape import get_labels
from evaluation.test_sets.selectors import read_set_rows
from tasks.config.schema import TaskConfig
from tasks.contexts.media.markup import render_value

PAGE_SIZE = 20
"""The number of examples on a page."""


@dataclass(frozen=True)
class WrongAnswer:
    """An example with the model's answer. score: how correct the answer was, 0-1."""

    config: TaskConfig
    row: SetRow
    answer: Answer | None
    score: float

    @property
    def fields(self) -> list[tuple[str, str]]:
        """Return (title, value) pairs of the inputs, in readable form."""
        config = self.config
        return [
            (config.get_component(name).third_person_title, render_value(config, name, value))
            for name, value in self.row.inputs.items()
        ]

    @property
    def shown_answer(self) -> str:
        """Return the model's answer in readable form."""
        if self.answer is None:
            return gettext("no answer")
        return self.config.display(self.config.answer_field, self.answer.value)

    @property
    def shown_right_answers(self) -> list[str]:
        """Return the accepted answers in readable form."""
        config = self.config
        return [config.display(config.answer_field, gold) for gold in self.row.gold]


def find_wrong_answers(run: EvaluationRun, start: int, end: int) -> list[WrongAnswer]:
    """Return the examples that the model did not get fully right, from index `start` up to `end`.

    Judged by the task's main metric; empty if it cannot be computed on this site. Reads no further
    than needed.
    """
    config = run.submission.task.config
    metric = make_main_metric(config)
    if metric is None:
        return []
    return list(islice(_iterate_wrong_answers(run, config, metric), start, end))


def make_main_metric(config: TaskConfig) -> Metric | None:
    """Return the main metric, which grades single answers; None if it is unavailable here."""
    try:
        return make_metric(
            config.metrics.main, get_labels(config), settings.SP_BLEU_MODEL, config.language
        )
    except MetricUnavailable:
        return None


def _iterate_wrong_answers(
    run: EvaluationRun, config: TaskConfig, metric: Metric
) -> Iterator[WrongAnswer]:
    with run.predictions.open("rb") as file, gzip.open(file) as lines:
        for row, answer in zip(read_set_rows(run.version), read_predictions(lines), strict=True):
            value = answer and answer.value
            score = metric.grade(metric.compute_statistic(value, row))
            if score < 1:
                yield WrongAnswer(config, row, answer, score)
