"""Runs for practice: started from a page, asked through their row, answered by a worker."""

import json
import time
import uuid
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from core.errors import Refused
from core.jobs.queue import enqueue
from evaluation.isolation.queue import leases
from evaluation.models import PracticeHost, PracticeRun, Submission
from evaluation.models.practice import UNDER_WAY
from evaluation.submissions.practice.selectors import can_run, find_active_run
from tasks.targets.endpoints.base import EndpointError

MOST_RUN_TIME = timedelta(minutes=30)
"""From the wish for a run to its end, whoever is practising."""
PATIENCE_SECONDS = 30.0
"""That a page waits for an answer."""
POLL_SECONDS = 0.1


def start_run(submission: Submission) -> PracticeRun:
    """Return the model's active run, or start one in a free slot. Raises Refused.

    Takes no lock: unique constraints allow one run per slot and one per model.
    """
    if not can_run():
        raise Refused(_("No container engine is there to run this model."), status=503)
    for overdue in PracticeRun.objects.filter(UNDER_WAY, deadline_at__lte=timezone.now()):
        leases.cancel(overdue)
    for slot in range(settings.PRACTICE_MODELS):
        # Looked up each time: somebody else may have started this model in the meantime.
        if run := find_active_run(submission):
            return run
        try:
            with transaction.atomic():
                return _create_run(submission, slot)
        except IntegrityError:
            continue  # the slot is taken
    if run := find_active_run(submission):
        return run
    text = _("People are trying other models, and there is no room for one more. Try again later.")
    raise Refused(text, code="no_slot", status=503)


def _create_run(submission: Submission, slot: int) -> PracticeRun:
    submission.practice_runs.exclude(UNDER_WAY).delete()  # nothing of earlier runs is needed
    until = timezone.now() + MOST_RUN_TIME
    run = PracticeRun.objects.create(submission=submission, slot=slot, deadline_at=until)
    enqueue(run.function, run.pk)
    return run


def stop_run(submission: Submission) -> None:
    """End the model's run, if there is one. Its container is removed at the next heartbeat."""
    if run := find_active_run(submission):
        leases.cancel(run)


def ask_question(run: PracticeRun, inputs: Mapping[str, Any]) -> str:
    """Ask the model one question, and return the line of its answer. Neither is kept.

    Raises EndpointError, with `busy` while the model starts or answers another person.
    """
    key, now = uuid.uuid4(), timezone.now()
    own_question = PracticeRun.objects.filter(pk=run.pk, question_id=key)
    # A web process that was killed cannot take its question back.
    forgotten = Q(asked_at__lt=now - timedelta(seconds=2 * PATIENCE_SECONDS))
    free_runs = PracticeRun.objects.filter(
        Q(question_id=None) | forgotten, pk=run.pk, state=run.State.RUNNING, ready_at__isnull=False
    )
    line = json.dumps({"id": key.hex, "inputs": inputs})
    # One statement takes the model for this question: of two people, the second finds it busy.
    if not free_runs.update(question_id=key, question=line, asked_at=now, answer=""):
        raise EndpointError("The model starts, or answers somebody else.", reason="busy")
    try:
        return _wait_for_answer(own_question)
    finally:
        own_question.update(question_id=None, question="", answer="")


def _wait_for_answer(question: Any) -> str:
    """Wait until the answer is stored in the row, and return it. Raises EndpointError."""
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        time.sleep(POLL_SECONDS)
        running = question.filter(state=PracticeRun.State.RUNNING)
        answer = running.values_list("answer", flat=True).first()
        if answer is None:
            raise EndpointError("The model ended.", reason="down")
        if answer:
            return str(answer)
    raise EndpointError("The model took too long.", reason="slow")


# By the process that has the run.


def note_ready(run: PracticeRun) -> None:
    """Record that the model has answered our own first question."""
    # While this worker has the lease, and once: the time of the first answer stays.
    PracticeRun.objects.filter(pk=run.pk, lease_token=run.lease_token, ready_at=None).update(
        ready_at=timezone.now()
    )


def store_answer(run: PracticeRun, question: uuid.UUID, line: str) -> None:
    """Store an answer for the person who waits for it. A late answer is dropped."""
    still_waiting = PracticeRun.objects.filter(pk=run.pk, question_id=question)
    still_waiting.filter(lease_token=run.lease_token).update(answer=line)


def note_host(name: str) -> None:
    """Record that this machine can run models for practice."""
    PracticeHost.objects.update_or_create(name=name, defaults={"seen_at": timezone.now()})
