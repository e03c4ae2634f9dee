"""What people read of a target that gave no answer: each thing once."""

import pytest

from tasks.targets import send_test
from tasks.targets.send_test import REASON_MESSAGES, NoAnswer, reserve_slot
from tests.support.outside import held


@pytest.mark.parametrize("reason", REASON_MESSAGES)
def test_words_are_said_once(reason):
    why = REASON_MESSAGES[reason]
    for detail, more in (
        (f"{why.rstrip('.')}: [Errno 111] refused.", "[Errno 111] refused."),
        (why, ""),
        ("It answers 500.", "It answers 500."),
        ("", ""),
    ):
        error = NoAnswer(reason, detail)
        assert (error.extra_detail, error.detail) == (more, detail)


def test_who_finds_no_place_to_wait_is_told_so(monkeypatch):
    """A request that tests a target takes one place, however many answers it waits for."""
    with held(monkeypatch, send_test), pytest.raises(NoAnswer) as caught, reserve_slot():
        raise AssertionError
    assert caught.value.reason == "busy"
    with reserve_slot(), reserve_slot():
        pass
