"""The automatic check of a validator by gold items; only evidence counts against anybody."""

from enum import Enum

from validation.rates.rates import wilson

LEAST_GOLD = 8
"""Gold items that a person has answered before they count."""
# So of 8 answers all must be right, of 10 nine, of 20 sixteen.
GOLD_BOUND = 0.55


class Check(Enum):
    """The result of an automatic check: passed, failed or unknown."""

    PASS = "pass"  # noqa: S105 - not a password
    FAIL = "fail"
    UNKNOWN = "unknown"


def gold_check(correct_count: int, answered_count: int) -> Check:
    """Check a validator's share of correct gold answers by Wilson's lower bound."""
    if answered_count < LEAST_GOLD:
        return Check.UNKNOWN
    return Check.PASS if wilson(correct_count, answered_count)[0] >= GOLD_BOUND else Check.FAIL
