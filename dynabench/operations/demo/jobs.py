"""What queue workers call: the function takes the id of a row, and only that."""

import logging

from dynabench.operations.demo.models import DemoRun
from evaluation.isolation.queue.leases import LeaseLost, claim_job
from evaluation.isolation.queue.subprocess_job import carry_out

logger = logging.getLogger(__name__)


def fill(run_id: int) -> None:
    """Fill the task in a separate process; it ends when the task is deleted."""
    if run := claim_job(DemoRun, run_id):
        try:
            carry_out(run, ["demo", "--run", str(run_id)])
        except LeaseLost as lost:
            logger.warning("%s", lost)
