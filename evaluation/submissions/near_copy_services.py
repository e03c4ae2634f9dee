"""Compare a plain run with other models, to find nearly equal answers. Loads numpy."""

import gzip
import logging
from typing import Any

import numpy as np
import orjson
from django.conf import settings
from django.db.models import Q, QuerySet

from annotation.verdict.outcome import normalise_squad_text
from evaluation.contract import Answer, Outcome
from evaluation.isolation.inference.evaluate import read_predictions
from evaluation.models import EvaluationRun, NearCopy, Submission
from evaluation.runs.selectors import filter_counting_runs
from evaluation.scoring.likeness import Answers, measure_likeness
from evaluation.scoring.metrics import MetricUnavailable, make_metric
from evaluation.task_shape import get_labels
from evaluation.test_sets.selectors import read_set_rows

logger = logging.getLogger(__name__)
MAX_EXAMPLES = 100_000
"""The maximum size of a set whose answers are compared."""
MAX_ANSWERS = 1_000_000
"""The maximum number of answers read after one run, newest models first: minutes at most."""
COLUMNS = ("n", "equal", "expected", "both_wrong", "equal_wrong")


def store_near_copies(run: EvaluationRun) -> int:
    """Compare a finished run with the models of other owners; store near-copies, return how many.

    Unpublished models are compared too, because they may be published later. A run whose files are
    gone or damaged is skipped. Takes no lock: pairs are unique and never change.
    """
    # `execute` has stored these by an update, so the object in memory lacks them.
    run.refresh_from_db(fields=["outcome", "predictions"])
    is_comparable = run.suite == EvaluationRun.Suite.PLAIN and run.outcome == Outcome.OK
    if not is_comparable or run.version.size > MAX_EXAMPLES:
        return 0
    try:
        reader = _AnswerReader(run)
    except MetricUnavailable:
        return 0
    except (OSError, EOFError, ValueError):
        logger.exception("The set of %s cannot be read", run)
        return 0
    own_answers = reader.read_answers(run, is_first=True)
    if own_answers is None:
        return 0
    max_models = max(1, MAX_ANSWERS // max(1, run.version.size))
    near_copies = []
    for other_run in _find_other_runs(run)[:max_models]:
        other_answers = reader.read_answers(other_run)
        if other_answers is None:
            continue
        likeness = measure_likeness(reader.gold, own_answers, other_answers)
        if likeness.is_near_copy:
            counts = {name: getattr(likeness, name) for name in COLUMNS}
            near_copies.append(NearCopy(run=run, other=other_run, **counts))
    # Pairs are unique, so repeating this adds nothing.
    NearCopy.objects.bulk_create(near_copies, ignore_conflicts=True)
    return len(near_copies)


def _find_other_runs(run: EvaluationRun) -> QuerySet[EvaluationRun]:
    """Return the counting runs of other people's and teams' models on the same set version.

    Newest first.
    """
    submission = run.submission
    is_own = Q(pk=submission.pk)
    if submission.owner_id:
        is_own |= Q(owner=submission.owner_id)
    if submission.team_id:
        is_own |= Q(team=submission.team_id)
    other_models = Submission.objects.filter(task=submission.task_id, withdrawn_at=None).exclude(
        is_own
    )
    plain_runs = run.version.runs.filter(suite=EvaluationRun.Suite.PLAIN)
    runs = filter_counting_runs(
        plain_runs.filter(submission__in=other_models.values("pk"))
    ).exclude(predictions="")
    # Logs may have 64 KiB and measurements 30, and neither is compared.
    return runs.defer("log", "measurements").order_by("-finished_at", "pk")


class _AnswerReader:
    """A reader that turns answers into numbers, the same number for equal answers.

    In later models, all answers that the first model never gave share one number, which limits
    memory. Free texts are equal if they differ only in case, articles and punctuation; all
    correct ones are equal. Raises MetricUnavailable if the main metric cannot be computed on this
    site.
    """

    def __init__(self, run: EvaluationRun) -> None:
        config = run.submission.task.config
        labels = get_labels(config)
        self._is_text, self._language = labels is None, config.language
        self._metric = make_metric(
            config.metrics.main, labels, settings.SP_BLEU_MODEL, config.language
        )
        self._rows = list(read_set_rows(run.version))
        self._codes: dict[bytes, int] = {}  # codes of the first model's answers
        # For texts, each right answer is different, so rates are counted over all together.
        right_answers = [b""] * len(self._rows)
        if not self._is_text:
            right_answers = [orjson.dumps(row.gold) for row in self._rows]
        places = {text: place for place, text in enumerate(dict.fromkeys(right_answers))}
        self.gold = np.array([places[text] for text in right_answers], dtype=np.int64)

    def read_answers(self, run: EvaluationRun, *, is_first: bool = False) -> Answers | None:
        """Return the answers of a run's model; None if its file is gone or damaged.

        is_first: whether this is the first model, whose answers are numbered.
        """
        try:
            with run.predictions.open("rb") as file, gzip.open(file) as lines:
                answers = list(read_predictions(lines))
            pairs = zip(answers, self._rows, strict=True)  # a file that is too short is damaged
            is_right = [self._is_right(answer, row) for answer, row in pairs]
        except (OSError, EOFError, ValueError, KeyError):
            logger.exception("The answers of %s cannot be compared", run)
            return None
        keys = list(map(self._make_key, answers, is_right))
        if is_first:
            self._codes = {key: code for code, key in enumerate(dict.fromkeys(keys))}
        codes = [self._codes.get(key, len(self._codes)) for key in keys]
        return Answers(np.array(codes, dtype=np.int64), np.array(is_right, dtype=bool))

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
