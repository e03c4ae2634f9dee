"""What queue workers call: each function takes the id of a row, and only that."""

import logging
from collections.abc import Callable
from typing import TypeVar
from uuid import UUID

from django.utils import timezone

from annotation.mails import tell_reports
from annotation.tidying import tidy_assignments
from dynabench.accounts.idempotency import purge_answers
from dynabench.accounts.tidying import is_tidied, note_tidied, tidy_people
from evaluation.models import Dataset, EvaluationRun, Job, Submission, TrainingRun
from evaluation.queue.cleanup import tidy
from evaluation.queue.leases import LeaseLost, claim, sweep
from evaluation.queue.subprocess_job import carry_out
from evaluation.releases.build import make
from evaluation.runs import scheduling
from evaluation.runs.execute import execute
from evaluation.runs.services import request_missing
from evaluation.sets.seen_in_training import compare_sets
from evaluation.sets.source_services import sweep_rounds
from evaluation.submissions import intake
from evaluation.submissions.emails import tell_ends
from tasks.targets.failures import tell_failures

logger = logging.getLogger(__name__)
J = TypeVar("J", bound=Job)

MOST_TIDIED = 10_000  # rows at a time
# What does each kind of job.
FUNCTIONS: dict[type[Job], str] = {
    Dataset: "evaluation.jobs.build_dataset",
    TrainingRun: "evaluation.jobs.run_training",
    Submission: "evaluation.jobs.check_submission",
    EvaluationRun: scheduling.EVALUATE,
}


def _work(job: J | None, do: Callable[[J], None]) -> J | None:
    """Do a claimed job, if there is one, and return it.

    A worker that lost the lease stops quietly: another one has the job, or it was ended.
    """
    if job is not None:
        try:
            do(job)
        except LeaseLost as lost:
            logger.warning("%s", lost)
    return job


def build_dataset(dataset_id: int) -> None:
    """Make a version of a round's dataset."""
    _work(claim(Dataset, dataset_id), make)


def run_training(run_id: int) -> None:
    """Train a task's next target in a separate process."""
    command = ["train_target", "--run", str(run_id)]
    _work(claim(TrainingRun, run_id), lambda run: carry_out(run, command))


def check_submission(submission_id: UUID) -> None:
    """Check a submission; an accepted one is queued for its evaluations."""
    _work(claim(Submission, submission_id), intake.check)


def evaluate_next(run_id: UUID) -> None:
    """Evaluate the run whose turn it is, which need not be the one that rang.

    A check that waits goes first: it takes seconds, and somebody watches its page.
    """
    if (waiting := _longest_waiting()) is not None:
        check_submission(waiting)
    if run := _work(scheduling.claim_next(), execute):
        scheduling.ring_suites(run)


def _longest_waiting() -> UUID | None:
    """The submission whose check has waited longest; None: no check is due."""
    queued = Submission.objects.filter(state=Job.State.QUEUED)
    due = queued.exclude(not_before__gt=timezone.now()).order_by("queued_at")
    return due.values_list("pk", flat=True).first()


def sweep_all() -> int:
    """Bring back what dead workers held, and ring for what waits; returns how many messages.

    After that, sets are made of rounds that are over, and runs are asked for on new sets: these
    ring by themselves, and a queue that is not empty is not rung for what waits.
    """
    scheduling.end_overdue()
    rung = sweep(FUNCTIONS)
    sweep_rounds()
    compare_sets()
    request_missing()
    tell_ends()
    tell_reports()
    tell_failures()
    tidy()
    purge_answers()
    tidy_daily()
    return rung


def tidy_daily() -> int:
    """Delete what is kept no longer, once a day and a bounded number of rows; how many went.

    The rest is left for the next sweep.
    """
    if is_tidied():
        return 0
    deleted = [tidy(MOST_TIDIED) for tidy in (tidy_people, tidy_assignments)]
    if max(deleted) < MOST_TIDIED:
        note_tidied(sum(deleted))
    return sum(deleted)
