"""What the queue's workers call with the id of a row, and what the sweep does."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from core.jobs.periodic import do_sweeps, tidy_daily
from core.periodic import each_sweep
from evaluation.dataset_releases.build import build_version
from evaluation.isolation.queue.leases import claim_job, claimable, sweep
from evaluation.isolation.queue.lifecycle import do_claimed
from evaluation.isolation.queue.subprocess_job import carry_out
from evaluation.judges.custom_metrics.scoring_services import run_metric
from evaluation.judges.llm_judges.services import run_judge
from evaluation.judges.paraphrases import writing_services
from evaluation.models import (
    CustomMetric,
    Dataset,
    Job,
    LlmJudge,
    Paraphrasing,
    PracticeRun,
    Submission,
    TrainingRun,
)
from evaluation.runs.execute import execute
from evaluation.runs.handed import discard_handed
from evaluation.runs.services import (
    claim_next,
    end_overdue,
    request_missing_runs,
    wake_suite_runs,
)
from evaluation.submissions.intake import check_arrival
from evaluation.submissions.near_copy_services import store_near_copies
from evaluation.submissions.practice.serve import serve
from evaluation.submissions.selectors import list_public_inputs
from evaluation.test_sets.seen_in_training import compare_sets
from evaluation.test_sets.source_services import make_missing_versions


def build_dataset(dataset_id: int) -> None:
    """Build a version of a round's dataset."""
    do_claimed(claim_job(Dataset, dataset_id), build_version)


def run_training(run_id: int) -> None:
    """Train a task's next target in a separate process."""
    command = ["train_target", "--run", str(run_id)]
    do_claimed(claim_job(TrainingRun, run_id), lambda run: carry_out(run, command))


def ask_llm_judge(judge_id: int) -> None:
    """Ask a language model judge about answers that people judged, and about models' answers."""
    do_claimed(claim_job(LlmJudge, judge_id), run_judge)


def write_paraphrases(job_id: int) -> None:
    """Ask a language model for paraphrases of a set's examples."""
    do_claimed(claim_job(Paraphrasing, job_id), writing_services.write_paraphrases)


def serve_practice(run_id: UUID) -> None:
    """Keep a submitted model in the sandbox for a person who practises with it."""
    do_claimed(
        claim_job(PracticeRun, run_id, ready_at=None),
        lambda run: serve(run, list_public_inputs(run.submission.task)[0]),
    )


def run_custom_metric(metric_id: UUID) -> None:
    """Try out a task's custom metric, or score stored answers with it."""
    do_claimed(claim_job(CustomMetric, metric_id), run_metric)


def check_submission(submission_id: UUID) -> None:
    """Check a submission. If accepted, it is queued for its evaluations."""
    do_claimed(claim_job(Submission, submission_id), check_arrival)


def evaluate_next(woken_by: UUID) -> None:
    """Do the next piece of work of each kind that takes long, because some run is waiting.

    woken_by: a run that waits. Which run is next depends on what each owner has had so far
    (`evaluation.runs.services.order_by_turn`), so it is often another one.
    """
    # 1. A check takes seconds, and somebody watches its page.
    _do_longest_waiting(Submission, check_submission)
    # 2. So that trainings and evaluations do not wait for each other's whole queues.
    _do_longest_waiting(TrainingRun, run_training)
    # 3. The run whose turn it is.
    evaluate_in_turn()


def evaluate_in_turn() -> None:
    """Evaluate the run that is next, and do what follows from its end."""
    if run := do_claimed(claim_next(), execute):
        discard_handed(run)  # nobody reads the answers of its own worker again
        wake_suite_runs(run)  # perturbed runs waited for this one, with which they are compared
        store_near_copies(run)  # last: it reads the answers of many models


def _do_longest_waiting(kind: type[Job], do: Callable[[Any], object]) -> None:
    """Do the job of this kind that has waited longest, by its id, if one is ready."""
    due = kind._default_manager.filter(claimable(kind)).order_by("queued_at")
    job_id = due.values_list("pk", flat=True).first()
    if job_id is not None:
        do(job_id)


def sweep_all() -> int:
    """Do all work that is due every half minute; return how many messages woke workers.

    1. End overdue runs, requeue jobs of dead workers, and wake workers for waiting jobs. This comes
       first, because the steps below send messages themselves, and waiting jobs get none while the
       queue is not empty.
    2. Do what is registered for each sweep, such as turning closed rounds into runs.
    3. Delete once a day what is no longer needed.
    """
    end_overdue()
    messages_sent = sweep()
    do_sweeps()
    tidy_daily()
    return messages_sent


@each_sweep(why="A closed round becomes an evaluation set, and a new set needs runs.")
def turn_closed_rounds_into_runs() -> None:
    """Make the set of each closed round, compare it with training data, and request its runs.

    1. A closed and decided round becomes the next version of its evaluation set. So do releases and
       the seeds of official tasks.
    2. Each new version is compared with training rows.
    3. Each model of the task gets a run on each newest version.

    Each step also does what an earlier sweep left undone. This function takes no lock; each step
    documents its own.
    """
    make_missing_versions()
    compare_sets()
    request_missing_runs()
