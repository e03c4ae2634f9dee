"""What queue workers call: the function takes the id of a row, and only that."""

from dynabench.operations.demo.models import DemoRun
from evaluation.isolation.queue.leases import claim_job
from evaluation.isolation.queue.lifecycle import do_claimed
from evaluation.isolation.queue.subprocess_job import carry_out


def fill(run_id: int) -> None:
    """Fill the task in a separate process, which ends if the task is deleted."""
    command = ["demo", "--run", str(run_id)]
    do_claimed(claim_job(DemoRun, run_id), lambda run: carry_out(run, command))
