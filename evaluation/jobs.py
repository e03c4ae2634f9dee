"""The functions that queue workers call with the id of a row, and the steps of the sweep."""

import logging
from collections.abc import Callable
from typing import Any
from uuid import UUID

from core.jobs.keeper import announce_job
from core.jobs.periodic import run_sweeps, tidy_daily
from core.periodic import register_minutely, register_quarter_hourly, register_sweep
from evaluation.dataset_releases.build import build_version
from evaluation.isolation.queue.leases import build_claimable_condition, claim_job, sweep_jobs
from evaluation.isolation.queue.lifecycle import do_claimed_job
from evaluation.isolation.queue.subprocess_job import run_subprocess_job
from evaluation.judges.custom_metrics.scoring_services import run_metric
from evaluation.judges.llm_judges.services import run_judge
from evaluation.judges.paraphrases import writing_services
from evaluation.models import (
    CustomMetric,
    Dataset,
    EvaluationRun,
    Job,
    LlmJudge,
    Paraphrasing,
    PracticeRun,
    Ruler,
    ShortEvaluation,
    Submission,
    TrainingRun,
)
from evaluation.runs.execute import execute_run
from evaluation.runs.handed import discard_handed_answers
from evaluation.runs.item_services import refresh_item_properties
from evaluation.runs.leak_services import store_leak_trials
from evaluation.runs.rulers.fitting import refresh_ruler
from evaluation.runs.rulers.services import choose_anchors_of
from evaluation.runs.services import (
    claim_next_run,
    end_overdue_runs,
    request_missing_runs,
    wake_suite_runs,
)
from evaluation.runs.short.asking import execute_short_evaluation
from evaluation.runs.whole_round_services import (
    find_runs_without_estimate,
    store_whole_round_score,
)
from evaluation.submissions.intake import check_arrival
from evaluation.submissions.near_copy_services import store_near_copies
from evaluation.submissions.practice.serve import serve_run
from evaluation.submissions.selectors import list_public_inputs
from evaluation.test_sets.seen_in_training import compare_sets
from evaluation.test_sets.source_services import make_missing_versions

logger = logging.getLogger(__name__)


def build_dataset(dataset_id: int) -> None:
    """Build a version of a round's dataset."""
    do_claimed_job(claim_job(Dataset, dataset_id), build_version)


def run_training(run_id: int) -> None:
    """Train a task's next target in a separate process."""
    command = ["train_target", "--run", str(run_id)]
    do_claimed_job(claim_job(TrainingRun, run_id), lambda run: run_subprocess_job(run, command))


def ask_llm_judge(judge_id: int) -> None:
    """Ask a language model judge about answers that people judged, and about models' answers."""
    do_claimed_job(claim_job(LlmJudge, judge_id), run_judge)


def write_paraphrases(job_id: int) -> None:
    """Ask a language model for paraphrases of a set's examples."""
    do_claimed_job(claim_job(Paraphrasing, job_id), writing_services.write_paraphrases)


def serve_practice(run_id: UUID) -> None:
    """Keep a submitted model in the sandbox for a person who practises with it."""
    do_claimed_job(
        claim_job(PracticeRun, run_id, ready_at=None),
        lambda run: serve_run(run, list_public_inputs(run.submission.task)[0]),
    )


def run_custom_metric(metric_id: UUID) -> None:
    """Try out a task's custom metric, or score stored answers with it."""
    do_claimed_job(claim_job(CustomMetric, metric_id), run_metric)


def choose_ruler(ruler_id: int) -> None:
    """Choose the anchors of a task's new ruler, and expect the scores of its models."""
    ruler = do_claimed_job(claim_job(Ruler, ruler_id), choose_anchors_of)
    # A job that waits or failed has none.
    if ruler and ruler.anchors.exists():
        refresh_ruler(ruler)


@register_minutely(counts="rulers refreshed", why="New models and new rounds join the rulers.")
def refresh_rulers() -> int:
    """Add new models and new sets to all rulers; return how many rulers changed.

    Can be called at any time, by several workers at once.
    """
    serving = Ruler.objects.filter(retired_at=None, state=Job.State.DONE).select_related("task")
    return sum(refresh_ruler(ruler) for ruler in serving)


def evaluate_short(evaluation_id: UUID) -> None:
    """Ask a paid chat model questions of a set until its score is known closely enough."""
    do_claimed_job(claim_job(ShortEvaluation, evaluation_id), execute_short_evaluation)


def check_submission(submission_id: UUID) -> None:
    """Check a submission. If accepted, it is queued for its evaluations."""
    do_claimed_job(claim_job(Submission, submission_id), check_arrival)


def evaluate_next(waking_run_id: UUID) -> None:
    """Do the next waiting check, the next training, and the next evaluation.

    waking_run_id: the run whose message called this. Which run is next depends on what each owner
    has had so far (`evaluation.runs.services.order_by_turn`), so it is often another one.
    """
    # 1. A check takes seconds, and the submitter watches its page.
    _do_longest_waiting_job(Submission, check_submission)
    # 2. Trainings, so that these and evaluations do not wait for each other's whole queues.
    _do_longest_waiting_job(TrainingRun, run_training)
    # 3. The next run.
    evaluate_in_turn()


def evaluate_in_turn() -> None:
    """Evaluate the next run, then do the steps that follow its end."""
    if run := do_claimed_job(claim_next_run(), execute_run):
        discard_handed_answers(run)  # the answers of its own worker are no longer needed
        wake_suite_runs(run)  # perturbed runs waited for this one, with which they are compared
        # Last, because all of these read answers, and most of them those of many models.
        for step in (store_whole_round_score, store_near_copies, store_leak_trials, _refresh_items):
            try:
                step(run)
            except Exception:  # one step that fails must not stop the others
                logger.exception("A step after %s failed", run)


def _refresh_items(run: EvaluationRun) -> None:
    refresh_item_properties(run.version)


@register_quarter_hourly(
    counts="estimates of whole rounds stored",
    why="A worker may be killed after a run has ended, and before its estimate is stored.",
)
def store_missing_whole_rounds() -> int:
    """Store the estimates for whole rounds that finished runs lack; return how many were stored.

    One query if there are none. Can be called at any time, by several workers at once.
    """
    stored_count = 0
    for run in find_runs_without_estimate().select_related("version__evaluation_set__task"):
        announce_job()  # each may read a large round
        try:
            stored_count += store_whole_round_score(run)
        except Exception:  # one run that fails must not stop the others
            logger.exception("The whole round of %s cannot be estimated", run)
    return stored_count


def _do_longest_waiting_job(kind: type[Job], work: Callable[[Any], object]) -> None:
    """Do the job of this kind that has waited longest, if one is ready.

    work: called with the job's id.
    """
    due = kind._default_manager.filter(build_claimable_condition(kind)).order_by("queued_at")
    job_id = due.values_list("pk", flat=True).first()
    if job_id is not None:
        work(job_id)


def sweep_all() -> int:
    """Do all work that is due every half minute; return how many messages woke workers.

    1. End overdue runs, requeue jobs of dead workers, and wake workers for waiting jobs. This comes
       first, because the steps below send messages themselves. Waiting jobs get none while the
       queue is not empty.
    2. Do what is registered for each sweep, such as turning closed rounds into runs.
    3. Delete once a day what is no longer needed.
    """
    end_overdue_runs()
    messages_sent = sweep_jobs()
    run_sweeps()
    tidy_daily()
    return messages_sent


@register_sweep(why="A closed round becomes an evaluation set, and a new set needs runs.")
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
