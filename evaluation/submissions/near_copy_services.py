"""Compare a plain run with other models, to find nearly equal answers. Loads numpy."""

import logging

from django.db.models import Q, QuerySet

from evaluation.contract import Outcome
from evaluation.models import EvaluationRun, NearCopy, Submission
from evaluation.runs.selectors import filter_counting_runs
from evaluation.runs.stored_answers import AnswerReader
from evaluation.scoring.likeness import measure_likeness
from evaluation.scoring.metrics import MetricUnavailable

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
        reader = AnswerReader(run.version)
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
