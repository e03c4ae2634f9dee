"""When a slow client is given up."""

import math

from core.web.web_server import limits
from core.web.web_server.limits import (
    compute_body_deadline,
    compute_send_deadline,
    compute_upload_deadline,
    count_slots,
)

DEADLINES = (
    (compute_body_deadline, limits.MIN_BODY_BYTES_PER_SECOND),
    (compute_upload_deadline, limits.MIN_UPLOAD_BYTES_PER_SECOND),
    (compute_send_deadline, limits.MIN_SEND_BYTES_PER_SECOND),
)


def test_each_byte_that_comes_moves_a_deadline():
    for deadline, rate in DEADLINES:
        assert deadline(5.0, 100 * rate, math.inf) - deadline(5.0, 0, math.inf) == 100
        assert deadline(6.0, 0, math.inf) - deadline(5.0, 0, math.inf) == 1


def test_one_who_was_fast_may_not_stand_still():
    for deadline, _ in DEADLINES:
        assert deadline(5.0, 10**15, 50.0) == 50.0 + limits.STALL_SECONDS


def test_an_upload_ends_however_much_of_it_comes():
    assert compute_upload_deadline(5.0, 10**15, math.inf) == 5.0 + limits.UPLOAD_SECONDS


def test_two_thirds_of_the_threads_wait_for_nobody_s_upload():
    assert [count_slots(threads) for threads in (1, 3, 16)] == [1, 1, 5]
