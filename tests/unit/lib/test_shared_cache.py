"""When Redis counts as away, whatever order the answers come in."""

import time

from redis.exceptions import ConnectionError as Away

from core.data.shared_cache import ServerState


def test_an_answer_or_an_error_of_before_says_nothing_of_now():
    state = ServerState()
    before = time.monotonic()
    assert state.record_result(Away(), time.monotonic())
    assert not state.record_result(None, before)  # a late answer: it is away all the same
    assert [state.may_ask_server(), state.may_ask_server()] == [True, False]  # one caller tries
    assert not state.record_result(Away(), before)
    during = time.monotonic()
    assert not state.record_result(None, during)  # it is back
    assert not state.record_result(Away(), before)  # a late error
    assert [state.may_ask_server(), state.may_ask_server()] == [True, True]
    assert state.record_result(Away(), time.monotonic())  # the next outage
