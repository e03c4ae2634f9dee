"""The automatic check of a validator by their answers to gold items.

A validator who fails it is paused (`validation/judging/gold_pause.py`).
"""

from enum import Enum

from validation.rates.rates import compute_wilson_interval

MIN_GOLD_ANSWERS = 8
"""The fewest answers to gold items by which a person is checked."""
# So all of 8 answers must be right, 9 of 10, or 16 of 20.
MIN_GOLD_SHARE = 0.55


class Check(Enum):
    """The result of an automatic check: passed, failed or unknown."""

    PASS = "pass"  # noqa: S105 - not a password
    FAIL = "fail"
    UNKNOWN = "unknown"


def assess_gold_answers(correct_count: int, answered_count: int) -> Check:
    """Check a validator's share of correct gold answers by Wilson's lower bound."""
    if answered_count < MIN_GOLD_ANSWERS:
        return Check.UNKNOWN
    return (
        Check.PASS
        if compute_wilson_interval(correct_count, answered_count)[0] >= MIN_GOLD_SHARE
        else Check.FAIL
    )
