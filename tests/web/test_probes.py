"""Targets that failed are asked again by the queue, although nobody writes."""

import time_machine
from django.core.cache import cache
from django.utils import timezone

from tasks.models import ModelUse, Round, TargetModel
from tasks.targets.circuit_breaker.breaker import FAILURES_TO_OPEN, Breaker, find_open_breakers
from tasks.targets.circuit_breaker.probes import probe_paused_targets
from tasks.targets.endpoints.base import EndpointError
from tests.support.factories import RoundFactory, scripted_target


def fail(target):
    for _ in range(FAILURES_TO_OPEN):
        Breaker(cache, str(target.pk)).note_failed_call(EndpointError("It is away.", reason="down"))


def is_open(target):
    return bool(find_open_breakers(cache, [str(target.pk)]))


def test_who_answers_again_and_who_does_not(nli):
    """Each is asked once, when its pause is over, whatever becomes of the others."""
    cache.clear()
    back = scripted_target(nli, "back", label="neutral")
    dead = scripted_target(nli, "dead", fail="down")
    broke = scripted_target(nli, "broke", label="neutral", requests_a_day=1)
    ModelUse.objects.create(target=broke, day=timezone.now().date(), requests=1)
    idle = scripted_target(RoundFactory(task=nli.task, number=2, state=Round.State.CLOSED), "idle")
    with time_machine.travel(timezone.now(), tick=False) as clock:
        for target in (back, dead, broke, idle):
            fail(target)
        assert probe_paused_targets() == 0  # nobody's pause is over
        clock.shift(40)
        assert probe_paused_targets() == 1
        assert [is_open(target) for target in (back, dead, broke, idle)] == [
            False, True, True, True,
        ]  # fmt: skip
        for _minute in range(10):
            clock.shift(60)
            assert probe_paused_targets() == 0
            assert is_open(dead)  # without a gap, so that the alert fires
        assert not is_open(idle)
        TargetModel.objects.filter(pk=dead.pk).update(options={"label": "neutral"})
        clock.shift(60)
        assert probe_paused_targets() == 1
        assert not is_open(dead)
    assert not ModelUse.objects.filter(target=idle).exists()
