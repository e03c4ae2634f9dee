"""The function that queue workers call for a run, and the schedule of nightly runs."""

from django.utils import timezone

from core.periodic import register_quarter_hourly
from dynabench.adversaries.image_services import discard_unused_archives
from dynabench.adversaries.models import AdversaryImage, AdversaryRun, TransferCheck
from dynabench.adversaries.services import start_due_runs
from dynabench.adversaries.slice_services import run_adversary
from dynabench.adversaries.transfer_services import ask_other_models
from evaluation.isolation.queue.leases import claim_job
from evaluation.isolation.queue.lifecycle import do_claimed_job

FIRST_SLICE_SECONDS = 10.0
"""How long other short jobs wait while a run begins."""
NIGHT_HOURS = range(1, 5)
"""The hours (UTC) in which nightly runs start."""


def attack(run_id: int) -> None:
    """Continue a run of an adversary for one slice of time."""
    do_claimed_job(claim_job(AdversaryRun, run_id), run_adversary)


def begin_attack(run_id: int) -> None:
    """Begin a run that a person started, before the evaluations that wait in the queue.

    They can take hours, and the person watches the page. After a few seconds it queues as others.
    """
    do_claimed_job(
        claim_job(AdversaryRun, run_id), lambda run: run_adversary(run, FIRST_SLICE_SECONDS)
    )


def check_transfer(check_id: int) -> None:
    """Continue to ask other models about catches for one slice of time."""
    do_claimed_job(claim_job(TransferCheck, check_id), ask_other_models)


def check_image(image_id: int) -> None:
    """Load an image of a program and check it."""
    # Imported here, because it needs Docker's library, which only workers have.
    from dynabench.adversaries.container_worker import check_arrived_image

    do_claimed_job(claim_job(AdversaryImage, image_id), check_arrived_image)


@register_quarter_hourly(counts="archives of programs deleted", why="They take up the storage.")
def delete_unused_archives() -> int:
    """Delete archives of images that no run will load again; return how many."""
    return discard_unused_archives()


@register_quarter_hourly(counts="runs of adversaries started", why="They work while people sleep.")
def start_nightly_adversaries() -> int:
    """Start nightly adversaries during the night; return how many."""
    return start_due_runs() if timezone.now().hour in NIGHT_HOURS else 0
