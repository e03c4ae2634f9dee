"""Calls at the end of a chunk of frames take no memory from the system again and again."""

import resource
from threading import Thread

from core.web.frames import wrap_with_frame_room

CALLS = 500
DEEPEST = 400  # frames: more than two chunks


def most_faults(found):
    """Of page faults, wherever the loop of `faults` stands."""
    found.append(max(faults(depth) for depth in range(DEEPEST)))


def faults(depth):
    if depth:
        return faults(depth - 1)
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    for _ in range(CALLS):
        nothing()
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before


def nothing():
    """Take a frame of some 800 bytes."""


nothing.__code__ = nothing.__code__.replace(co_stacksize=100)


def test_no_place_of_a_loop_costs_a_page_for_each_call():
    found = []
    thread = Thread(
        target=wrap_with_frame_room(most_faults), args=(found,)
    )  # with frames of its own
    thread.start()
    thread.join()
    assert found[0] < CALLS


def test_what_is_called_gets_its_arguments_and_its_result_comes_back():
    assert wrap_with_frame_room(divmod)(7, 2) == (3, 1)
    assert wrap_with_frame_room(dict)(a=1) == {"a": 1}
