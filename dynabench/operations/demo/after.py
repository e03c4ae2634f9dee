"""What follows when a round is judged: its release, the next target, and evaluations.

The demo runs the jobs itself, like a worker. If the site's workers are faster, it waits for them.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import connection, transaction

from core.accounts.models import User
from dynabench.operations.demo.community import build_plan
from evaluation import jobs
from evaluation.dataset_releases.build import Options
from evaluation.dataset_releases.rows import count_rows
from evaluation.dataset_releases.services import request_release, suggest_sizes
from evaluation.dataset_releases.splits import SplitSizes, make_plan
from evaluation.models import EvaluationRun, Job, TrainingRun
from evaluation.models.jobs import UNFINISHED_STATES
from evaluation.test_sets.source_services import make_missing_versions
from evaluation.training.services import (
    find_default_base,
    find_free_name,
    register_trained_target,
    request_training,
)
from tasks.models import Round, Task
from tasks.rounds.loop import RoundError
from tasks.rounds.services import plan_round
from tasks.rounds.states import set_round_state
from tasks.targets.connect import build_serving_settings
from tasks.targets.services import change_target

EPOCHS = 2
LOADING_SECONDS = 180


class JobFailed(Exception):
    """Raised if a job of the demo failed. The message gives the reason."""


def finish_job(job: Job, work: Callable[[Any], object]) -> None:
    """Run a job unless a worker runs it already, and wait for its end. Raises JobFailed.

    work: the function that runs the job with this id.
    """
    work(job.pk)
    while not (job := type(job)._default_manager.get(pk=job.pk)).is_over:
        time.sleep(0.5)
    if job.state != Job.State.DONE:
        raise JobFailed(f"{job}: {job.error}")


def open_round(round: Round, owner: User) -> Round:
    """Open the round once its target answers. Raises RoundError if that takes too long."""
    deadline = time.monotonic() + LOADING_SECONDS
    while True:
        try:
            return set_round_state(round=round, state=Round.State.OPEN, actor=owner)
        # Its target is still being loaded.
        except RoundError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def release_round(round: Round, owner: User, seed: int) -> None:
    """Release a closed round.

    A sixth of its rows becomes the test split and a twelfth the dev split, if possible.
    """
    make_missing_versions()  # the set of what the round verified; a site makes it within a minute
    row_counts = count_rows(round)
    rows = (row_counts.count_labels(True) + row_counts.count_labels(False)).total()
    sizes = make_plan(row_counts, SplitSizes(None, rows // 12, rows // 6), seed=seed).sizes
    if not sizes.train:
        sizes = suggest_sizes(row_counts)
    options = Options(
        dev=sizes.dev,
        test=sizes.test,
        seed=seed,
        license="cc0-1.0",
        description="Simulated: programs wrote and judged these rows.",
    )
    finish_job(request_release(round=round, options=options, actor=owner), jobs.build_dataset)


def plan_next_round(round: Round, owner: User, seed: int, tries: int) -> Round:
    """Train a target on all rounds so far, starting from the current target, and plan its round."""
    task, number = round.task, round.number
    base_model, revision = find_default_base(task)
    run = request_training(
        task=task,
        actor=owner,
        weights={f"round{n}": 1.0 for n in range(1, number + 1)},
        base=base_model,
        revision=revision,
        seed=seed,
        epochs=EPOCHS,
    )
    finish_job(run, jobs.run_training)
    planned_round = plan_round(
        task=task, actor=owner, fields=build_plan(tries), parents=[round], contexts_of=round
    )
    with transaction.atomic():
        target = register_trained_target(
            run=TrainingRun.objects.get(pk=run.pk),
            number=planned_round.number,
            name=find_free_name(task, planned_round.number),
            actor=owner,
        )
        # An export to ONNX would take longer than the round.
        serving_settings = build_serving_settings(task.config, backend="torch")
        change_target(target=target, actor=owner, fields={"serving": serving_settings})
    return planned_round


def evaluate_models(task: Task) -> None:
    """Create the pending evaluation sets and run every model on each, two runs at a time."""
    jobs.turn_closed_rounds_into_runs()
    with ThreadPoolExecutor() as pool:
        for future in [pool.submit(_evaluate, task) for _ in range(2)]:
            future.result()


def _evaluate(task: Task) -> None:
    """Run the task's evaluations until none is queued or running."""
    runs = EvaluationRun.objects.filter(submission__task=task)
    waiting_runs = runs.filter(state__in=UNFINISHED_STATES)
    try:
        while run := waiting_runs.order_by("state").first():  # queued ones first
            jobs.evaluate_next(run.pk)
            if run.state == Job.State.RUNNING:  # another worker has the last ones
                time.sleep(0.5)
    finally:
        # Each thread has a connection of its own, which nobody else closes.
        connection.close()
