"""What queue workers call: each function takes the id of a row, and only that."""

import logging

from evaluation.leases import LeaseLost, claim, sweep
from evaluation.models import Dataset, Job, TrainingRun
from evaluation.release import make
from evaluation.supervision import carry_out

logger = logging.getLogger(__name__)

# What does each kind of job.
FUNCTIONS: dict[type[Job], str] = {
    Dataset: "evaluation.jobs.build_dataset",
    TrainingRun: "evaluation.jobs.run_training",
}


def build_dataset(dataset_id: int) -> None:
    """Make a version of a round's dataset."""
    dataset = claim(Dataset, dataset_id)
    if dataset is not None:
        make(dataset)


def run_training(run_id: int) -> None:
    """Train a task's next target in a process of its own."""
    run = claim(TrainingRun, run_id)
    if run is None:
        return
    try:
        carry_out(run, ["train_target", "--run", str(run.pk)])
    except LeaseLost as lost:
        logger.warning("%s", lost)


def sweep_all() -> int:
    """Put back what dead workers held and ring for what waits; returns how many messages."""
    return sweep(FUNCTIONS)
