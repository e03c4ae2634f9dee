"""When a slow client is given up."""

import math

from core.web.web_server import limits
from core.web.web_server.limits import body_deadline, send_deadline, slots, upload_deadline

DEADLINES = (
    (body_deadline, limits.BODY_RATE),
    (upload_deadline, limits.UPLOAD_RATE),
    (send_deadline, limits.SEND_RATE),
)


def test_each_byte_that_comes_moves_a_deadline():
    for deadline, rate in DEADLINES:
        assert deadline(5.0, 100 * rate, math.inf) - deadline(5.0, 0, math.inf) == 100
        assert deadline(6.0, 0, math.inf) - deadline(5.0, 0, math.inf) == 1


def test_one_who_was_fast_may_not_stand_still():
    for deadline, _ in DEADLINES:
        assert deadline(5.0, 10**15, 50.0) == 50.0 + limits.STALL_SECONDS


def test_an_upload_ends_however_much_of_it_comes():
    assert upload_deadline(5.0, 10**15, math.inf) == 5.0 + limits.UPLOAD_SECONDS


def test_two_thirds_of_the_threads_wait_for_nobody_s_upload():
    assert [slots(threads) for threads in (1, 3, 16)] == [1, 1, 5]
