"""Asking a round's targets about one attempt: where stored rows meet the endpoints."""

import logging
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from typing import Any

from django.conf import settings
from django.core.cache import cache
from django.db import connection

from annotation.attempts.heartbeats import holder
from annotation.attempts.services import fail_attempt, finish_attempt, save_draft
from annotation.models import Attempt
from tasks.models import Generator, Round, RoundTarget, TargetModel
from tasks.selectors import targets_of
from tasks.targets.connect import endpoint_of, generator_endpoint
from tasks.targets.endpoints.base import EndpointError, Prediction
from tasks.targets.endpoints.live import Breaker, LeftAlone, LiveTarget, TargetFailed, process_pool
from tasks.targets.failures import note_failure

logger = logging.getLogger(__name__)
Asked = Future[list[Prediction]]
SUGGEST_SECONDS = 10.0

# Views that wait for a target hold a thread of the server. Beyond so many they answer "still
# waiting" at once, so that a slow target never takes the threads that other pages need.
_may_wait = threading.BoundedSemaphore(settings.LIVE_CALLS)


def ask(entries: Sequence[RoundTarget], inputs: Mapping[str, Any]) -> Asked:
    """Ask all targets for one example; raises EndpointError when one is misconfigured."""
    targets = [_live(entry.target) for entry in entries]
    pool = process_pool(settings.LIVE_CALLS, 2 * settings.LIVE_CALLS)
    return pool.ask(targets, inputs, settings.LIVE_DEADLINE_SECONDS)


def _live(target: TargetModel) -> LiveTarget:
    try:
        return LiveTarget(target.name, endpoint_of(target), Breaker(cache, str(target.pk)))
    except EndpointError as error:
        raise TargetFailed(target.name, error) from None


def model_inputs(
    round: Round, context: Mapping[str, Any], inputs: Mapping[str, Any]
) -> dict[str, Any]:
    """What a target may see of an example: never the target field."""
    values = {**context, **inputs}
    return {name: values.get(name, "") for name in round.task.config.model_fields}


def waited(asked: Asked, seconds: float | None = None) -> bool:
    """Whether the answer came within so many seconds, or within the time that a page waits."""
    if not _may_wait.acquire(blocking=False):
        return asked.done()
    try:
        asked.exception(timeout=seconds or settings.LIVE_WAIT_SECONDS)
    except NotYet:
        return False
    finally:
        _may_wait.release()
    return True


def settle(attempt: Attempt) -> Attempt:
    """Ask the targets and store what came of it; returns the attempt as it stands after the wait.

    When the wait is over first, the pool's thread stores it later. No transaction is open while
    the targets are asked.
    """
    assignment = attempt.assignment
    entries = targets_of(assignment.round)
    if not entries:
        _store(attempt, [], [])
        return attempt
    inputs = model_inputs(assignment.round, assignment.context.fields, attempt.inputs)
    try:
        asked = ask(entries, inputs)
    except EndpointError as error:
        logger.warning("attempt %s: %s", attempt.uuid, error)
        _note(error, entries)
        _fail(attempt, error.reason)
    else:
        if waited(asked):
            _conclude(attempt, entries, asked)
        else:
            save_draft(assignment=assignment, inputs=attempt.inputs)
            _conclude_later(attempt, entries, asked)
    return attempt


def _conclude(attempt: Attempt, entries: Sequence[RoundTarget], asked: Asked) -> None:
    error = asked.exception()
    if error is None:
        try:
            _store(attempt, entries, asked.result())
        except Exception:  # nobody shall wait for an attempt that will never be stored
            _fail(attempt, "rubbish")
            raise
        return
    reason = failure_of(error)
    logger.warning("attempt %s: %s: %s", attempt.uuid, reason, error)
    _note(error, entries)
    _fail(attempt, reason)


def failure_of(error: BaseException) -> str:
    """The word that an attempt keeps: an EndpointError's reason, or `loading` for a busy target."""
    if not isinstance(error, EndpointError):
        return "down"
    is_targets = isinstance(error, TargetFailed) and not isinstance(error.error, LeftAlone)
    return "loading" if error.reason == "busy" and is_targets else error.reason


def _note(error: BaseException, entries: Sequence[RoundTarget]) -> None:
    """Keep for the owners what a target did; that many people ask is no fault of it."""
    if isinstance(error, TargetFailed) and not isinstance(error.error, LeftAlone):
        for entry in entries:
            if entry.target.name == error.target and error.reason != "busy":
                note_failure(entry.target, error.error)


def _store(
    attempt: Attempt, entries: Sequence[RoundTarget], predictions: Sequence[Prediction]
) -> None:
    example = finish_attempt(attempt=attempt, targets=entries, predictions=predictions)
    if example is None:
        attempt.refresh_from_db()
    else:
        attempt.state, attempt.example = Attempt.State.DONE, example


def _fail(attempt: Attempt, reason: str) -> None:
    fail_attempt(attempt=attempt, reason=reason)
    attempt.refresh_from_db()


def _conclude_later(attempt: Attempt, entries: Sequence[RoundTarget], asked: Asked) -> None:
    asker = threading.get_ident()
    holder().hold(attempt.pk)

    def conclude(done: Asked) -> None:
        try:
            _conclude(attempt, entries, done)
        except Exception:
            logger.exception("attempt %s could not be stored", attempt.uuid)
            raise
        finally:
            holder().let_go(attempt.pk)
            if threading.get_ident() != asker:
                connection.close()

    asked.add_done_callback(conclude)


def answers_now(entries: Sequence[RoundTarget], inputs: Mapping[str, Any]) -> Sequence[Prediction]:
    """The targets' answers within the time that a page waits; raises EndpointError."""
    if not entries:
        return []
    try:
        asked = ask(entries, inputs)
        if not waited(asked):
            raise EndpointError("The targets took too long.", reason="slow")
        return asked.result()
    except TargetFailed as error:
        _note(error, entries)
        raise


def generate(generator: Generator, inputs: Mapping[str, Any]) -> Prediction:
    """What the generator writes, within SUGGEST_SECONDS; raises EndpointError."""
    breaker = Breaker(cache, f"generator:{generator.pk}")
    target = LiveTarget(generator.name, generator_endpoint(generator), breaker)
    pool = process_pool(settings.LIVE_CALLS, 2 * settings.LIVE_CALLS)
    asked = pool.ask([target], inputs, SUGGEST_SECONDS)
    if not waited(asked, SUGGEST_SECONDS):
        raise EndpointError("The generator took too long.", reason="slow")
    return asked.result()[0]
