"""The chat models among a task's targets, which jobs ask with prompts of their own.

No lock: a job's worker holds it by its lease.
"""

from collections.abc import Callable, Mapping
from typing import Any

from django.db.models import QuerySet

from evaluation.contract import ImpossibleJob, NotNow, ServerAway
from evaluation.isolation.queue import leases
from evaluation.models import LlmJudge, Paraphrasing
from tasks.models import TargetModel, Task
from tasks.targets.endpoints.base import Endpoint, EndpointError
from tasks.targets.spending_services import MeteredEndpoint, Payer

CHAT_ADAPTER = "openai_chat"
"""The adapter of targets that can be asked in other words."""
ANSWER_SECONDS = 60.0  # for one answer
MOST_FAILURES = 5  # one after another, after which the model is left alone


def find_chat_targets(task: Task) -> QuerySet[TargetModel]:
    """Return the task's chat models."""
    return task.targets.filter(adapter=CHAT_ADAPTER)


def read_target_settings(target: TargetModel) -> dict[str, Any]:
    """Return the target's address and options, which a job stores when it starts."""
    return {"url": target.url, "options": target.options}


class Asker:
    """A client for a target's chat model that enforces the target's budgets.

    The model must stay the one that the job was made for. Call outside any transaction.
    build: returns the model's endpoint. change_message: the message if the model has changed since.
    Errors decide what happens to the job: NotNow while the model is busy, ServerAway, or
    ImpossibleJob.
    """

    def __init__(
        self, job: LlmJudge | Paraphrasing, build: Callable[[], Endpoint], change_message: str
    ) -> None:
        self._job, self._build, self._changed = job, build, change_message
        self.calls, self.failures, self._in_a_row = 0, 0, 0
        self._endpoint: Endpoint | None = None

    def ask(self, inputs: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the model's answer; None if the call failed. Raises WorkStopped, LeaseLost."""
        self.calls += 1
        try:
            answer = self._asked().predict([inputs], deadline_seconds=ANSWER_SECONDS)[0]
        except EndpointError as error:
            self._note(error)
            return None
        self._in_a_row = 0  # one good answer, and the server counts as healthy again
        if self._job.away_since:
            leases.store_part(self._job, away_since=None)
        self._check_version(dict(answer.fingerprint))
        return answer.output

    def _asked(self) -> Endpoint:
        """Return the endpoint, which the first call builds. Raises ImpossibleJob."""
        if self._endpoint is None:
            target = self._job.target
            # Its owners may have changed it since: half of the answers would be another model's.
            if read_target_settings(target) != self._job.asked_with:
                raise ImpossibleJob(self._changed)
            try:
                self._endpoint = MeteredEndpoint(self._build(), Payer(target))
            except EndpointError as error:
                raise ImpossibleJob(str(error)) from None
        return self._endpoint

    def _note(self, error: EndpointError) -> None:
        """Count a failed call. Raises WorkStopped if the model must not be called again for now."""
        self.failures += 1
        self._in_a_row += 1
        if error.reason == "busy":
            raise NotNow(str(error), error.retry_after or None)
        if error.reason == "misconfigured":
            raise ImpossibleJob(str(error))
        if self._in_a_row >= MOST_FAILURES:
            if error.reason in ("down", "slow"):
                raise ServerAway(str(error))
            raise ImpossibleJob(str(error))

    def _check_version(self, fingerprint: dict[str, Any]) -> None:
        """Store the fingerprint of the model behind the first answer; refuse other models' answers.

        Raises ImpossibleJob and LeaseLost.
        """
        job = self._job
        if not job.fingerprint:
            # Stored at once: a job that is put back goes on with the model that it began with.
            leases.store_part(job, fingerprint=fingerprint)
        elif fingerprint != job.fingerprint:
            raise ImpossibleJob(self._changed)
