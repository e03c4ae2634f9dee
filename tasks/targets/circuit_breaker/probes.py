"""Call failed targets, so that the site notices their recovery even if nobody is writing."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from django.core.cache import cache

from core.periodic import register_minutely
from tasks.models import Round, TargetModel
from tasks.targets.ask_before_opening import build_sample, fill_inputs
from tasks.targets.circuit_breaker.breaker import Breaker, find_ended_pauses
from tasks.targets.connect import get_endpoint
from tasks.targets.endpoints.base import EndpointError, Usage
from tasks.targets.send_test import NoAnswer, ask_target
from tasks.targets.spending_services import Payer, SpentError, check_budget, note_uses

PROBE_DEADLINE_SECONDS = 5.0
MAX_PARALLEL_PROBES = 8


class Probe(NamedTuple):
    """A target to call. inputs: None if the task has no example to send."""

    target: TargetModel
    inputs: Mapping[str, Any] | None


@register_minutely(
    counts="targets that answer again",
    why="Nobody asks a paused target, so nobody else would see that it is back.",
)
def probe_paused_targets() -> int:
    """Call each target of an open round whose pause is over; return how many answer again.

    Breakers are shared only through `CACHE_URL`; without it a process knows only its own. Call it
    outside transactions: it may take PROBE_DEADLINE_SECONDS for each MAX_PARALLEL_PROBES targets.
    """
    targets = TargetModel.objects.filter(rounds__state=Round.State.OPEN).distinct()
    # 1. Find the targets whose pause is over: only these may be asked again.
    due_keys = find_ended_pauses(cache, [str(pk) for pk in targets.values_list("pk", flat=True)])
    # 2. Leave out those whose budget is spent: silence would say nothing about them.
    probes = []
    for target in targets.filter(pk__in=due_keys).select_related("task"):
        if _is_affordable(target):
            probes.append(Probe(target, fill_inputs(target.task, build_sample(target.task))))
    if not probes:
        return 0
    # 3. Ask some at once, so that one that hangs does not delay the others.
    with ThreadPoolExecutor(min(MAX_PARALLEL_PROBES, len(probes))) as pool:
        answers = list(pool.map(_probe_target, probes))
    # 4. Count what was spent, also on failures.
    usages = [usage for _is_back, usage in answers]
    note_uses([Payer(probe.target) for probe in probes], usages)
    return sum(is_back for is_back, _usage in answers)


def _is_affordable(target: TargetModel) -> bool:
    """Return whether the target's budget allows a call."""
    try:
        check_budget(Payer(target))
    except SpentError:
        return False
    return True


def _probe_target(probe: Probe) -> tuple[bool, Usage | None]:
    """Call one target through its breaker; return whether it answered, and the call's usage."""
    target, breaker = probe.target, Breaker(cache, str(probe.target.pk))
    try:
        breaker.enter(PROBE_DEADLINE_SECONDS)
    except EndpointError:  # somebody who writes asks it at this moment
        return False, None
    usage = None
    try:
        if probe.inputs is None:
            get_endpoint(target).info(deadline_seconds=PROBE_DEADLINE_SECONDS)
        else:
            usage = ask_target(target, probe.inputs, seconds=PROBE_DEADLINE_SECONDS).usage
    except NoAnswer as error:
        breaker.note_failed_call(EndpointError(error.detail, reason=error.reason))
        return False, error.usage
    except EndpointError as error:
        breaker.note_failed_call(error)
        return False, None
    breaker.note_success()
    return True, usage
