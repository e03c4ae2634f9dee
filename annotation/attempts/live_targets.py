"""Requests to targets while somebody waits: the process's pool, waits, costs and failures."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.core.cache import cache
from django.db import connection

from tasks.contexts.media.selectors import prepare_for_models
from tasks.models import Round, RoundTarget, TargetModel
from tasks.targets.circuit_breaker.breaker import Breaker, TargetNotAsked
from tasks.targets.connect import get_endpoint
from tasks.targets.endpoints.base import Endpoint, EndpointError, Prediction, Usage
from tasks.targets.endpoints.live import LiveTarget, PendingAnswers, TargetFailed, get_process_pool
from tasks.targets.failures import note_failure
from tasks.targets.spending_services import Payer, SpentError, check_budget, note_uses

Answers = PendingAnswers
"""One prediction per target, in the order of the request."""

# Views that wait for a target hold a thread of the server. Beyond so many they answer "still
# waiting" at once, so that a slow target never takes the threads that other pages need.
_waiting_slots = threading.BoundedSemaphore(settings.LIVE_CALLS)


def build_model_inputs(
    round: Round, context: Mapping[str, Any], inputs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the fields of an example that a target may see, never the target field."""
    config = round.task.config
    values = prepare_for_models(config, round.task, {**context, **inputs})
    # A field that was left empty is there too, because an endpoint expects each of them.
    return {name: values.get(name, "") for name in config.model_fields}


def ask_live_targets(
    entries: Sequence[RoundTarget],
    inputs: Mapping[str, Any],
    on_text: Callable[[str], None] | None = None,
) -> Answers:
    """Ask all targets about one example.

    on_text: called with the partial answer of a single target as it is streamed, if the
    endpoint supports that. Raises EndpointError if a target is misconfigured or its call
    budget is used up.
    """
    targets = [
        replace(get_affordable_target(payer), on_text=on_text) for payer in list_payers(entries)
    ]
    return submit_to_pool(targets, inputs, settings.LIVE_DEADLINE_SECONDS)


def list_payers(entries: Iterable[RoundTarget]) -> list[Payer]:
    """Return the accounts to which the calls are charged, one for each target."""
    return [Payer(entry.target, entry.round_id) for entry in entries]


def get_affordable_target(payer: Payer) -> LiveTarget:
    """Return a task's target, after checking its call budget. Raises TargetFailed."""
    target = payer.target
    try:
        check_budget(payer)
        live_target = build_live_target(target.name, get_endpoint(target), str(target.pk))
    except EndpointError as error:
        raise TargetFailed(target.name, error) from None
    return replace(live_target, label=target.name)


def build_live_target(name: str, endpoint: Endpoint, breaker: str) -> LiveTarget:
    """Return an endpoint with a circuit breaker.

    breaker: the breaker's key; all processes share its state.
    """
    return LiveTarget(name, endpoint, Breaker(cache, breaker))


def record_spending(payers: Sequence[Payer], pending_answers: Answers) -> None:
    """Record the cost of the calls, including failed ones, as soon as the last has ended.

    Call it after each request to targets, outside a transaction.
    """
    asking_thread_id = threading.get_ident()

    def record_uses(ended: Future[list[Usage | None]]) -> None:
        try:
            note_uses(payers, ended.result())
        finally:
            # As in `attempts.services`: no request closes the connection of the pool's thread.
            if threading.get_ident() != asking_thread_id:
                connection.close()

    pending_answers.ended.add_done_callback(record_uses)


def submit_to_pool(
    targets: Sequence[LiveTarget], inputs: Mapping[str, Any], seconds: float
) -> Answers:
    """Ask the targets from this process's pool.

    seconds: deadline. Raises EndpointError (`busy`) if the queue is full.
    """
    # As many calls again may wait for a place as run; beyond that people read that it is busy.
    pool = get_process_pool(settings.LIVE_CALLS, 2 * settings.LIVE_CALLS)
    return pool.ask(targets, inputs, seconds)


def wait_for_answers(pending_answers: Answers, seconds: float | None = None) -> bool:
    """Wait for the answers; return whether they have arrived or failed in time.

    seconds: time to wait; None for a page's usual wait. If too many threads are waiting already,
    returns at once.
    """
    # A bounded number of threads waits; the others answer at once, and their page asks again.
    if not _waiting_slots.acquire(blocking=False):
        return pending_answers.done()
    try:
        pending_answers.exception(timeout=seconds or settings.LIVE_WAIT_SECONDS)
    except FutureTimeoutError:
        return False
    finally:
        _waiting_slots.release()
    return True


def request_answers(
    entries: Sequence[RoundTarget], inputs: Mapping[str, Any], seconds: float | None = None
) -> Sequence[Prediction]:
    """Return the targets' answers if they arrive in time; empty without targets.

    seconds: time to wait; None for a page's usual wait. Raises EndpointError. A target's failure is
    recorded for its owners.
    """
    if not entries:
        return []
    payers = list_payers(entries)
    try:
        return request_answers_in_time(
            [get_affordable_target(payer) for payer in payers], inputs, payers, seconds
        )
    except TargetFailed as error:
        record_target_failure(error, [entry.target for entry in entries])
        raise


def request_answers_in_time(
    targets: Sequence[LiveTarget],
    inputs: Mapping[str, Any],
    payers: Sequence[Payer],
    seconds: float | None = None,
) -> Sequence[Prediction]:
    """Return the models' answers if they arrive in time, otherwise raise EndpointError.

    payers: one per target, or none. seconds: time to wait; None for a page's usual wait.
    """
    pending_answers = submit_to_pool(targets, inputs, settings.LIVE_DEADLINE_SECONDS)
    is_in_time = wait_for_answers(pending_answers, seconds)
    # Also for answers that come too late: they cost as much.
    if payers:
        record_spending(payers, pending_answers)
    if not is_in_time:
        raise EndpointError("The targets took too long.", reason="slow")
    return pending_answers.result()


def get_failure_code(error: BaseException) -> str:
    """Return the code that an attempt stores for an error.

    For an EndpointError, this is its reason. Otherwise, it is `loading` for a busy target, `spent`
    for a target whose budget is used up, and `down` for other errors.
    """
    if not isinstance(error, EndpointError):
        return "down"
    if isinstance(error, TargetFailed) and isinstance(error.error, SpentError):
        return "spent"
    # A busy target is the target's state; a busy pool is ours.
    return "loading" if error.reason == "busy" and _has_target_failed(error) else error.reason


def record_target_failure(error: BaseException, targets: Sequence[TargetModel]) -> None:
    """Record a target's failure for its owners, unless it was only busy."""
    if isinstance(error, TargetFailed) and _has_target_failed(error) and error.reason != "busy":
        for target in targets:
            # The error names the target that failed; the others may have answered.
            if target.name == error.target:
                note_failure(target, error.error)


def _has_target_failed(error: EndpointError) -> bool:
    """Return whether the target itself failed, instead of being skipped by its breaker."""
    return isinstance(error, TargetFailed) and not isinstance(error.error, TargetNotAsked)
