"""Who may evaluate on their own machines, and the leases that such machines take and end."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from dynabench.accounts.models import User
from dynabench.accounts.services import log
from dynabench.lib.errors import Invalid, Refused
from dynabench.lib.queue import enqueue
from evaluation.contract import Outcome
from evaluation.models import EvaluationRun, HandedAnswers, OwnWorker
from evaluation.own_workers.selectors import host_of, takeable
from evaluation.queue import leases
from evaluation.runs.services import OVERHEAD
from evaluation.sets.services import note_exposed
from evaluation.uploads.chunked import open_uploads, received
from tasks.models import Task

GONE = "lease"
"""The code of a refusal: the lease is another's, or nobody's."""


def add_worker(*, task: Task, user: User, needs_second: bool, actor: User) -> OwnWorker:
    """Let a person evaluate their models of a task on their machines.

    No lock: `own_worker_once` holds. Raises Refused.
    """
    try:
        with transaction.atomic():
            made = OwnWorker.objects.create(task=task, user=user, needs_second=needs_second)
            log(actor, "own_worker.added", made)
    except IntegrityError:
        raise Refused("This person has one here already.", code="exists") from None
    return made


@transaction.atomic
def remove_worker(*, worker: OwnWorker, actor: User) -> None:
    """Let them no longer; what runs there is lost to them at its next heartbeat. No lock."""
    log(actor, "own_worker.removed", worker)
    worker.delete()


def take(
    *, worker: OwnWorker, model: UUID | None = None, evaluation_set: str = ""
) -> EvaluationRun | None:
    """Lease the oldest run that a machine may take; None: there is none.

    No lock: the claim is one conditional update, as any worker's
    (`evaluation.queue.leases.claim`). That a sealed set's inputs leave is logged.
    """
    seconds = timedelta(seconds=settings.EVALUATION_SECONDS)
    for pk in takeable(worker, model, evaluation_set).values_list("pk", flat=True)[:10]:
        deadline = timezone.now() + seconds + OVERHEAD
        host = host_of(worker.user)
        if run := leases.claim(EvaluationRun, pk, deadline_at=deadline, host=host):
            note_exposed(run.version, worker.user)
            return run
    return None


def keep(*, run: EvaluationRun, progress: float) -> None:
    """Renew a lease. No lock: the lease decides. Raises Refused."""
    if run.deadline_at and timezone.now() > run.deadline_at:
        raise _gone()
    try:
        leases.heartbeat(run, progress)
    except leases.LeaseLost:
        raise _gone() from None


@transaction.atomic
def hand_in(
    *, run: EvaluationRun, user: User, upload: UUID | None, runner: str, ending: dict[str, Any]
) -> None:
    """Take what a machine answered, and queue the run to be scored here.

    A failure of the machine itself gives the run back, as one of its tries. No lock: the lease
    decides. Raises Refused.
    """
    try:
        if ending["outcome"] == Outcome.INFRASTRUCTURE:
            leases.try_again(run, ending["sentence"])
            return
        token = run.lease_token
        leases.put_back(run, timezone.now(), "")
    except leases.LeaseLost:
        raise _gone() from None
    assert token
    _store(run, user, token, upload, runner, ending)
    transaction.on_commit(lambda: enqueue(run.function, run.pk))


def _store(
    run: EvaluationRun,
    user: User,
    token: UUID,
    upload: UUID | None,
    runner: str,
    ending: dict[str, Any],
) -> None:
    file = open_uploads(user).filter(pk=upload).first() if upload else None
    is_used = HandedAnswers.objects.filter(upload=file).exists()
    if file is None or is_used or received(file) != file.size:
        raise Invalid("You have no such file here. Upload it.", field="upload")
    worker = OwnWorker.objects.filter(task=run.submission.task, user=user).first()
    if worker is None:  # it was removed meanwhile
        raise _gone()
    HandedAnswers.objects.create(
        run=run,
        lease_token=token,
        runner=runner,
        ending=ending,
        upload=file,
        needs_second=worker.needs_second,
    )


def _gone() -> Refused:
    return Refused("This lease is over. Take another one.", code=GONE)
