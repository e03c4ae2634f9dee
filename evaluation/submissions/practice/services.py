"""Practice runs: started from a page, asked through their database row, answered by a worker."""

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
from evaluation.models.practice import UNDER_WAY_CONDITION
from evaluation.submissions.practice.selectors import find_active_run, has_practice_host
from tasks.targets.endpoints.base import EndpointError

MAX_RUN_TIME = timedelta(minutes=30)
"""The maximum time from the request for a run to its end, even while people practise."""
MAX_ANSWER_WAIT_SECONDS = 30.0
"""How long a page waits for an answer."""
POLL_SECONDS = 0.1


def start_run(submission: Submission) -> PracticeRun:
    """Return the model's active run, or start one in a free slot. Raises Refused.

    Overdue runs of all models are cancelled first. Takes no lock: unique constraints allow one run
    per slot and one per model.
    """
    if not has_practice_host():
        raise Refused(
            _(
                "This site can't run the model, because no container engine is available. "
                "Contact the site's operator."
            ),
            status=503,
        )
    for overdue in PracticeRun.objects.filter(UNDER_WAY_CONDITION, deadline_at__lte=timezone.now()):
        leases.cancel_job(overdue)
    for slot in range(settings.PRACTICE_MODELS):
        # Looked up each time, because somebody else may have started this model meanwhile.
        if run := find_active_run(submission):
            return run
        try:
            with transaction.atomic():
                return _create_run(submission, slot)
        except IntegrityError:
            continue  # the slot is taken
    if run := find_active_run(submission):
        return run
    text = _("Too many models are running right now. Try again later.")
    raise Refused(text, code="no_slot", status=503)


def _create_run(submission: Submission, slot: int) -> PracticeRun:
    submission.practice_runs.exclude(UNDER_WAY_CONDITION).delete()  # earlier runs are not needed
    deadline_at = timezone.now() + MAX_RUN_TIME
    run = PracticeRun.objects.create(submission=submission, slot=slot, deadline_at=deadline_at)
    enqueue(run.function, run.pk)
    return run


def stop_run(submission: Submission) -> None:
    """End the model's run, if there is one. Its container is removed at the next heartbeat."""
    if run := find_active_run(submission):
        leases.cancel_job(run)


def ask_question(run: PracticeRun, inputs: Mapping[str, Any]) -> str:
    """Ask the model one question, and return the line of its answer. Neither is stored for later.

    Raises EndpointError, with `busy` while the model starts or answers another person.
    """
    key, now = uuid.uuid4(), timezone.now()
    own_question = PracticeRun.objects.filter(pk=run.pk, question_id=key)
    # A killed web process cannot remove its question.
    is_forgotten = Q(asked_at__lt=now - timedelta(seconds=2 * MAX_ANSWER_WAIT_SECONDS))
    free_runs = PracticeRun.objects.filter(
        Q(question_id=None) | is_forgotten,
        pk=run.pk,
        state=run.State.RUNNING,
        ready_at__isnull=False,
    )
    line = json.dumps({"id": key.hex, "inputs": inputs})
    # One statement reserves the model for this question; a second person finds it busy.
    if not free_runs.update(question_id=key, question=line, asked_at=now, answer=""):
        raise EndpointError("The model is starting, or answering someone else.", reason="busy")
    try:
        return _wait_for_answer(own_question)
    finally:
        own_question.update(question_id=None, question="", answer="")


def _wait_for_answer(question: Any) -> str:
    """Wait until the answer is stored in the row, and return it. Raises EndpointError."""
    deadline = time.monotonic() + MAX_ANSWER_WAIT_SECONDS
    while time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
        open_question = question.filter(state=PracticeRun.State.RUNNING)
        answer = open_question.values_list("answer", flat=True).first()
        if answer is None:
            raise EndpointError("The model ended.", reason="down")
        if answer:
            return str(answer)
    raise EndpointError("The model took too long.", reason="slow")


# Only by the process that has the run.


def record_ready(run: PracticeRun) -> None:
    """Record that the model has answered our own first question."""
    # Only while this worker has the lease, and once, so that the first time stays.
    PracticeRun.objects.filter(pk=run.pk, lease_token=run.lease_token, ready_at=None).update(
        ready_at=timezone.now()
    )


def store_answer(run: PracticeRun, question: uuid.UUID, line: str) -> None:
    """Store an answer for the person who waits for it. A late answer is dropped."""
    waiting_runs = PracticeRun.objects.filter(pk=run.pk, question_id=question)
    waiting_runs.filter(lease_token=run.lease_token).update(answer=line)


def record_host(name: str) -> None:
    """Record that this machine can run models for practice."""
    PracticeHost.objects.update_or_create(name=name, defaults={"seen_at": timezone.now()})
