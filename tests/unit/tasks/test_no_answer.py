"""What people read of a target that gave no answer: each thing once."""

import pytest

from tasks.targets.send_test import REASONS, NoAnswer


@pytest.mark.parametrize("reason", REASONS)
def test_words_are_said_once(reason):
    why = REASONS[reason]
    for detail, more in (
        (f"{why.rstrip('.')}: [Errno 111] refused.", "[Errno 111] refused."),
        (why, ""),
        ("It answers 500.", "It answers 500."),
        ("", ""),
    ):
        error = NoAnswer(reason, detail)
        assert (error.more, error.detail) == (more, detail)
