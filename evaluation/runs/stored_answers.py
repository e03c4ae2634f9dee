"""Read the stored answers of many models to one version of a set. Loads numpy."""

import gzip
import logging
from typing import Any

import numpy as np
import orjson
from django.conf import settings

from annotation.verdict.outcome import normalise_squad_text
from evaluation.contract import Answer
from evaluation.isolation.inference.evaluate import read_predictions
from evaluation.models import EvaluationRun, EvaluationSetVersion
from evaluation.scoring.likeness import Answers, Marks
from evaluation.scoring.metrics import make_metric
from evaluation.task_shape import get_labels
from evaluation.test_sets.selectors import read_set_rows

logger = logging.getLogger(__name__)


class AnswerReader:
    """A reader that turns answers into numbers, the same number for equal answers.

    In later models, all answers that the first model never gave share one number, which limits
    memory. Free texts are equal if they differ only in case, articles and punctuation; all
    correct ones are equal. Raises MetricUnavailable if the main metric cannot be computed on this
    site.
    """

    def __init__(self, version: EvaluationSetVersion) -> None:
        config = version.evaluation_set.task.config
        labels = get_labels(config)
        self._is_text, self._language = labels is None, config.language
        self._metric = make_metric(
            config.metrics.main, labels, settings.SP_BLEU_MODEL, config.language
        )
        self.rows = list(read_set_rows(version))
        self._codes: dict[bytes, int] = {}  # codes of the first model's answers
        # For texts, each right answer is different, so rates are counted over all together.
        right_answers = [b""] * len(self.rows)
        if not self._is_text:
            right_answers = [orjson.dumps(row.gold) for row in self.rows]
        places = {text: place for place, text in enumerate(dict.fromkeys(right_answers))}
        self.gold = np.array([places[text] for text in right_answers], dtype=np.int64)

    def read_answers(self, run: EvaluationRun, *, is_first: bool = False) -> Answers | None:
        """Return the answers of a run's model; None if its file is gone or damaged.

        is_first: whether this is the first model, whose answers are numbered.
        """
        graded = self._read_graded(run)
        if graded is None:
            return None
        answers, is_right = graded
        keys = list(map(self._make_key, answers, is_right))
        if is_first:
            self._codes = {key: code for code, key in enumerate(dict.fromkeys(keys))}
        codes = [self._codes.get(key, len(self._codes)) for key in keys]
        return Answers(np.array(codes, dtype=np.int64), np.array(is_right, dtype=bool))

    def read_right_answers(self, run: EvaluationRun) -> Marks | None:
        """Return which answers of a run's model are right; None if its file is gone or damaged."""
        graded = self._read_graded(run)
        return None if graded is None else np.array(graded[1], dtype=bool)

    def _read_graded(self, run: EvaluationRun) -> tuple[list[Answer | None], list[bool]] | None:
        """Return a run's answers and whether each is right; None if its file can't be read."""
        try:
            with run.predictions.open("rb") as file, gzip.open(file) as lines:
                answers = list(read_predictions(lines))
            pairs = zip(answers, self.rows, strict=True)  # a file that is too short is damaged
            return answers, [self._is_right(answer, row) for answer, row in pairs]
        except (OSError, EOFError, ValueError, KeyError):
            logger.exception("The answers of %s cannot be compared", run)
            return None

    def _is_right(self, answer: Answer | None, row: Any) -> bool:
        value = answer and answer.value
        return self._metric.grade(self._metric.compute_statistic(value, row)) >= 1

    def _make_key(self, answer: Answer | None, is_right: bool) -> bytes:
        """Return a key that is the same for equal answers."""
        if is_right and self._is_text:
            return b"right"
        value = answer and answer.value
        if self._is_text and isinstance(value, str):
            value = normalise_squad_text(value, self._language)
        return orjson.dumps(value)
