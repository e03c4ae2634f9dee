"""When Redis counts as away, whatever order the answers come in."""

import time

from redis.exceptions import ConnectionError as Away

from core.data.shared_cache import Outage


def test_an_answer_or_an_error_of_before_says_nothing_of_now():
    outage = Outage()
    before = time.monotonic()
    assert outage.note(Away(), time.monotonic())
    assert not outage.note(None, before)  # a late answer: it is away all the same
    assert [outage.may_ask(), outage.may_ask()] == [True, False]  # one caller tries
    assert not outage.note(Away(), before)
    during = time.monotonic()
    assert not outage.note(None, during)  # it is back
    assert not outage.note(Away(), before)  # a late error
    assert [outage.may_ask(), outage.may_ask()] == [True, True]
    assert outage.note(Away(), time.monotonic())  # the next outage
