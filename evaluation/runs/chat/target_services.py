"""Call the chat models among a task's targets, with a job's own prompt.

Takes no lock: the job's worker holds its lease.
"""

from collections.abc import Callable, Mapping
from typing import Any

from django.db.models import QuerySet

from evaluation.contract import ImpossibleJob, NotNow, ServerAway
from evaluation.isolation.queue import leases
from evaluation.models.jobs import ChatJob
from tasks.models import TargetModel, Task
from tasks.targets.endpoints.base import Endpoint, EndpointError
from tasks.targets.spending_services import MeteredEndpoint, Payer

CHAT_ADAPTER = "openai_chat"
"""The adapter of targets that jobs can call with their own prompts."""
ANSWER_SECONDS = 60.0  # for one answer
MAX_FAILURES = 5  # in a row, after which the model is not called any more


def find_chat_targets(task: Task) -> QuerySet[TargetModel]:
    """Return the task's chat models."""
    return task.targets.filter(adapter=CHAT_ADAPTER)


def read_target_settings(target: TargetModel) -> dict[str, Any]:
    """Return the target's address and options, which a job stores when it starts."""
    return {"url": target.url, "options": target.options}


class TargetClient:
    """A client for a target's chat model that enforces the target's budgets.

    The model must not change after the job was created. Call outside any transaction.
    build_endpoint: returns the model's endpoint. change_message: the message if the model has
    changed since the job was created.
    Errors decide what happens to the job: NotNow while the model is busy, ServerAway, or
    ImpossibleJob.
    """

    def __init__(
        self,
        job: ChatJob,
        build_endpoint: Callable[[], Endpoint],
        change_message: str,
    ) -> None:
        self._job, self._build, self._change_message = job, build_endpoint, change_message
        self.call_count = self.failure_count = self._consecutive_failures = 0
        self._endpoint: Endpoint | None = None

    def ask(self, inputs: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the model's answer; None if the call failed. Raises WorkStopped, LeaseLost."""
        self.call_count += 1
        try:
            answer = self._get_endpoint().predict([inputs], deadline_seconds=ANSWER_SECONDS)[0]
        except EndpointError as error:
            self._count_failure(error)
            return None
        self._consecutive_failures = 0  # after one good answer, the server counts as healthy
        if self._job.away_since:
            leases.store_partial_results(self._job, away_since=None)
        self._check_version(dict(answer.fingerprint))
        return answer.output

    def _get_endpoint(self) -> Endpoint:
        """Return the endpoint, which the first call builds. Raises ImpossibleJob."""
        if self._endpoint is None:
            target = self._job.target
            # Its owners may have changed it, so half of the answers would be another model's.
            if read_target_settings(target) != self._job.asked_with:
                raise ImpossibleJob(self._change_message)
            try:
                self._endpoint = MeteredEndpoint(self._build(), Payer(target))
            except EndpointError as error:
                raise ImpossibleJob(str(error)) from None
        return self._endpoint

    def _count_failure(self, error: EndpointError) -> None:
        """Count a failed call. Raises WorkStopped if the model must not be called again for now."""
        self.failure_count += 1
        self._consecutive_failures += 1
        if error.reason == "busy":
            raise NotNow(str(error), error.retry_after or None)
        if error.reason == "misconfigured":
            raise ImpossibleJob(str(error))
        if self._consecutive_failures >= MAX_FAILURES:
            if error.reason in ("down", "slow"):
                raise ServerAway(str(error))
            raise ImpossibleJob(str(error))

    def _check_version(self, fingerprint: dict[str, Any]) -> None:
        """Store the fingerprint of the model that gave the first answer, and compare later ones.

        Raises ImpossibleJob if another model answered, and LeaseLost.
        """
        job = self._job
        if not job.fingerprint:
            # Stored at once, so that a requeued job continues with the same model.
            leases.store_partial_results(job, fingerprint=fingerprint)
        elif fingerprint != job.fingerprint:
            raise ImpossibleJob(self._change_message)
