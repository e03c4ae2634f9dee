"""The automatic check of a validator by gold items; only evidence counts against anybody."""

from enum import Enum

from validation.rates.rates import wilson

LEAST_GOLD = 8
"""Gold items that a person has answered before they count."""
# So of 8 answers all must be right, of 10 nine, of 20 sixteen.
GOLD_BOUND = 0.55


class Check(Enum):
    """The outcome of an automatic check. What could not be checked is unknown, never a fail."""

    PASS = "pass"  # noqa: S105 - not a password
    FAIL = "fail"
    UNKNOWN = "unknown"


def gold_check(correct: int, answered: int) -> Check:
    """Check whether a validator answers gold correctly: by Wilson's lower bound of their share."""
    if answered < LEAST_GOLD:
        return Check.UNKNOWN
    return Check.PASS if wilson(correct, answered)[0] >= GOLD_BOUND else Check.FAIL
