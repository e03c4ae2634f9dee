"""The functions that queue workers call with the id of a row."""

from dynabench.operations.demo.models import DemoRun
from evaluation.isolation.queue.leases import claim_job
from evaluation.isolation.queue.lifecycle import do_claimed_job
from evaluation.isolation.queue.subprocess_job import run_subprocess_job


def fill(run_id: int) -> None:
    """Fill the demo's task in a separate process, which ends if the task is deleted."""
    command = ["demo", "--run", str(run_id)]
    do_claimed_job(claim_job(DemoRun, run_id), lambda run: run_subprocess_job(run, command))
