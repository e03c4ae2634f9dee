"""Asking targets while somebody waits: the process's pool, how long a page waits, what failed."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.core.cache import cache
from django.db import connection

from tasks.contexts.media.selectors import prepare_for_models
from tasks.models import Round, RoundTarget, TargetModel
from tasks.targets.connect import get_endpoint
from tasks.targets.endpoints.base import Endpoint, EndpointError, Prediction, Usage
from tasks.targets.endpoints.live import (
    Breaker,
    LiveTarget,
    PendingAnswers,
    TargetFailed,
    TargetNotAsked,
    get_process_pool,
)
from tasks.targets.failures import note_failure
from tasks.targets.spending_services import Payer, SpentError, check_budget, note_uses

Answers = PendingAnswers
"""One prediction a target, in the order asked."""

# Views that wait for a target hold a thread of the server. Beyond so many they answer "still
# waiting" at once, so that a slow target never takes the threads that other pages need.
_may_wait = threading.BoundedSemaphore(settings.LIVE_CALLS)


def model_inputs(
    round: Round, context: Mapping[str, Any], inputs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the fields of an example that a target may see: never the target field."""
    config = round.task.config
    values = prepare_for_models(config, round.task, {**context, **inputs})
    # A field that was left empty is there too, because an endpoint expects each of them.
    return {name: values.get(name, "") for name in config.model_fields}


def ask(
    entries: Sequence[RoundTarget],
    inputs: Mapping[str, Any],
    heard: Callable[[str], None] | None = None,
) -> Answers:
    """Ask all targets for one example.

    heard: hears the answer of the only target as it comes, where that can be. Raises EndpointError
    when one is misconfigured, or its budget of calls is used up.
    """
    targets = [replace(affordable(payer), heard=heard) for payer in payers_of(entries)]
    return call(targets, inputs, settings.LIVE_DEADLINE_SECONDS)


def payers_of(entries: Iterable[RoundTarget]) -> list[Payer]:
    """Return the accounts that pay for calls of a round's targets."""
    return [Payer(entry.target, entry.round_id) for entry in entries]


def affordable(payer: Payer) -> LiveTarget:
    """Return a task's target that may still be asked. Raises TargetFailed."""
    target = payer.target
    try:
        check_budget(payer)
        live = live_target(target.name, get_endpoint(target), str(target.pk))
    except EndpointError as error:
        raise TargetFailed(target.name, error) from None
    return replace(live, label=target.name)


def live_target(name: str, endpoint: Endpoint, breaker: str) -> LiveTarget:
    """Return an endpoint behind the circuit breaker of this key, which all processes share."""
    return LiveTarget(name, endpoint, Breaker(cache, breaker))


def note_spent(payers: Sequence[Payer], pending: Answers) -> None:
    """Count what the calls came to, failed ones too: now, or in the pool once the last has ended.

    Whoever asks calls this, outside of a transaction.
    """
    asker = threading.get_ident()

    def note(ended: Future[list[Usage | None]]) -> None:
        try:
            note_uses(payers, ended.result())
        finally:
            # As in `attempts.services`: no request closes the connection of the pool's thread.
            if threading.get_ident() != asker:
                connection.close()

    pending.ended.add_done_callback(note)


def call(targets: Sequence[LiveTarget], inputs: Mapping[str, Any], seconds: float) -> Answers:
    """Ask from the pool of this process. Raises EndpointError (`busy`) when its queue is full."""
    # As many calls again may wait for a place as run; beyond that people read that it is busy.
    pool = get_process_pool(settings.LIVE_CALLS, 2 * settings.LIVE_CALLS)
    return pool.ask(targets, inputs, seconds)


def waited(pending: Answers, seconds: float | None = None) -> bool:
    """Wait for the answers; return whether they came within `seconds`, or a page's waiting time."""
    # A bounded number of threads waits; the others answer at once, and their page asks again.
    if not _may_wait.acquire(blocking=False):
        return pending.done()
    try:
        pending.exception(timeout=seconds or settings.LIVE_WAIT_SECONDS)
    except NotYet:
        return False
    finally:
        _may_wait.release()
    return True


def answers_now(entries: Sequence[RoundTarget], inputs: Mapping[str, Any]) -> Sequence[Prediction]:
    """Return the targets' answers within the time that a page waits; raises EndpointError."""
    if not entries:
        return []
    payers = payers_of(entries)
    try:
        return answers_in_time([affordable(payer) for payer in payers], inputs, payers)
    except TargetFailed as error:
        note_failed(error, [entry.target for entry in entries])
        raise


def answers_in_time(
    targets: Sequence[LiveTarget],
    inputs: Mapping[str, Any],
    payers: Sequence[Payer],
    seconds: float | None = None,
) -> Sequence[Prediction]:
    """Return the answers of models within the time that a page waits; raises EndpointError.

    payers: of all of them, or none. seconds: to wait instead.
    """
    pending = call(targets, inputs, settings.LIVE_DEADLINE_SECONDS)
    is_there = waited(pending, seconds)
    # Also for answers that come too late: they cost as much.
    if payers:
        note_spent(payers, pending)
    if not is_there:
        raise EndpointError("The targets took too long.", reason="slow")
    return pending.result()


def failure_of(error: BaseException) -> str:
    """Return the word that an attempt keeps for an error.

    An EndpointError's reason, `loading` for a busy target, `spent` where its budget is used up.
    """
    if not isinstance(error, EndpointError):
        return "down"
    if isinstance(error, TargetFailed) and isinstance(error.error, SpentError):
        return "spent"
    return "loading" if error.reason == "busy" and _is_its_own(error) else error.reason


def note_failed(error: BaseException, targets: Sequence[TargetModel]) -> None:
    """Note a target's failure for its owners, unless it failed because many people ask."""
    if isinstance(error, TargetFailed) and _is_its_own(error) and error.reason != "busy":
        for target in targets:
            # The error names the target that failed; the others may have answered.
            if target.name == error.target:
                note_failure(target, error.error)


def _is_its_own(error: EndpointError) -> bool:
    """Return whether the target itself failed, and was not skipped by its circuit breaker."""
    return isinstance(error, TargetFailed) and not isinstance(error.error, TargetNotAsked)
