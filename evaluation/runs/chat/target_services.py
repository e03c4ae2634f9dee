"""The chat models among a task's targets, which jobs ask with prompts of their own.

No lock: a job's worker holds it by its lease.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from evaluation.isolation.queue import leases
from evaluation.isolation.sandbox.choose import NoEngine
from evaluation.models import LlmJudge, Paraphrasing
from tasks.models import TargetModel, Task
from tasks.targets.endpoints.base import Endpoint, EndpointError
from tasks.targets.spending_services import Metered, Payer

CHAT = "openai_chat"
"""The adapter of targets that can be asked in other words."""
SECONDS = 60.0  # for one answer
MOST_FAILURES = 5  # one after another, after which the model is left alone
WAIT = timedelta(minutes=1)


class Stopped(Exception):
    """A model that is not asked any more for now, with the reason. wait: seconds until it is."""

    def __init__(self, why: str, wait: float | None = None) -> None:
        super().__init__(why)
        self.wait = wait


def end_job(job: LlmJudge | Paraphrasing, stopped: Stopped | NoEngine) -> None:
    """End the job, or put it back until its model may be asked again. Raises LeaseLost."""
    if isinstance(stopped, NoEngine):
        leases.wait(job, str(stopped))
    elif stopped.wait is None:
        leases.fail(job, str(stopped))
    else:
        later = timezone.now() + timedelta(seconds=max(1.0, stopped.wait))
        leases.put_back(job, later, str(stopped))


def chat_targets(task: Task) -> QuerySet[TargetModel]:
    """Return the task's chat models."""
    return task.targets.filter(adapter=CHAT)


def settings_of(target: TargetModel) -> dict[str, Any]:
    """Return where and how a target is asked; a job stores this as it was at its start."""
    return {"url": target.url, "options": target.options}


class Asker:
    """A target's chat model as it was when a job was made, with its budgets enforced.

    build: its endpoint. changed: what is said where it is another model by now. Call it outside
    any transaction.
    """

    def __init__(
        self, job: LlmJudge | Paraphrasing, build: Callable[[], Endpoint], changed: str
    ) -> None:
        self._job, self._build, self._changed = job, build, changed
        self.calls, self.failures, self._in_a_row = 0, 0, 0
        self._endpoint: Endpoint | None = None

    def ask(self, inputs: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the model's answer; None if the call failed. Raises Stopped."""
        self.calls += 1
        try:
            answer = self._asked().predict([inputs], deadline_seconds=SECONDS)[0]
        except EndpointError as error:
            self._note(error)
            return None
        self._in_a_row = 0  # one good answer, and the server counts as healthy again
        self._check_version(dict(answer.fingerprint))
        return answer.output

    def _asked(self) -> Endpoint:
        """Return the endpoint, built at the first call. Raises Stopped."""
        if self._endpoint is None:
            target = self._job.target
            # Its owners may have changed it since: half of the answers would be another model's.
            if settings_of(target) != self._job.asked_with:
                raise Stopped(self._changed)
            try:
                self._endpoint = Metered(self._build(), Payer(target))
            except EndpointError as error:
                raise Stopped(str(error)) from None
        return self._endpoint

    def _note(self, error: EndpointError) -> None:
        """Count a failed call. Raises Stopped if the model is not asked any more for now."""
        self.failures += 1
        self._in_a_row += 1
        if error.reason == "busy":
            raise Stopped(str(error), error.retry_after or WAIT.total_seconds())
        if error.reason == "misconfigured":
            raise Stopped(str(error))
        if self._in_a_row >= MOST_FAILURES:
            raise Stopped(str(error), self._patience(error))

    def _patience(self, error: EndpointError) -> float | None:
        """Return for how long to wait for a server that is away: as long as the job is old.

        None: it is there, or the job has waited for a day.
        """
        age = timezone.now() - self._job.queued_at
        if error.reason not in ("down", "slow") or age >= leases.GIVE_UP:
            return None
        return min(max(age, leases.LATER), leases.LONGEST_DELAY).total_seconds()

    def _check_version(self, fingerprint: dict[str, Any]) -> None:
        """Store which model gave the first answer, and refuse answers of any other.

        Raises Stopped.
        """
        job = self._job
        if not job.fingerprint:
            # Stored at once: a job that is put back goes on with the model that it began with.
            job.fingerprint = fingerprint
            type(job)._default_manager.filter(pk=job.pk).update(fingerprint=fingerprint)
        elif fingerprint != job.fingerprint:
            raise Stopped(self._changed)
