"""Threads that wait for a part which others run: some may wait, the rest are refused at once."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from core import outside
from core.outside import ServiceHanging, ThreadSlots, is_web_process, limit_waiting_threads


@pytest.fixture
def two_may_wait(monkeypatch):
    monkeypatch.setattr(outside, "PATIENCE_SECONDS", 0.0)
    limit_waiting_threads(2)
    yield
    limit_waiting_threads(None)


def test_a_job_waits_with_any_number_of_threads():
    places = ThreadSlots()
    assert not is_web_process()
    with places.take_slot(), places.take_slot(), places.take_slot():
        pass


def test_what_exceeds_the_share_is_refused_and_then_comes_in_again(two_may_wait):
    assert is_web_process()
    places, answered = ThreadSlots(), Event()

    def call():
        with places.take_slot():
            waiting.append(1)
            answered.wait(10)

    waiting = []
    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(call) for _ in range(2)]
        while len(waiting) < 2:
            pass
        for _ in range(3):
            with pytest.raises(ServiceHanging), places.take_slot():
                pass
        answered.set()
        for one in calls:
            one.result()
    with places.take_slot(), places.take_slot():
        pass


def test_while_a_part_hangs_nobody_waits_for_a_place(two_may_wait, monkeypatch):
    """Only a call that succeeds shows that it is back."""
    asked = []

    class Free:
        def acquire(self, timeout):
            asked.append(timeout)
            return len(asked) > 1

        def release(self):
            pass

    monkeypatch.setattr(outside, "PATIENCE_SECONDS", 7.0)
    places = ThreadSlots()
    places._free_slots = Free()
    with pytest.raises(ServiceHanging), places.take_slot():
        pass
    with pytest.raises(ValueError, match="away"), places.take_slot():
        raise ValueError("away")
    for _ in range(2):
        with places.take_slot():
            pass
    assert asked == [7.0, 0, 0, 7.0]
