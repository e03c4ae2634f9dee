"""The number of models that a person may submit to a task in a day."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from evaluation.contract import UNMEASURED_OUTCOMES, Outcome

WINDOW = timedelta(days=1)
NOT_THE_MODELS_FAULT = ("lost",) + UNMEASURED_OUTCOMES
"""The state or outcome of what failed through the platform's fault, or another server's."""


class Charge(StrEnum):
    """How a submission counts towards a person's quota."""

    FREE = "free"  # platform or other servers failed, or it was cancelled before it began
    PENDING = "pending"  # its check may still be passed or not
    ACCEPTED = "accepted"
    REFUSED = "refused"


@dataclass(frozen=True)
class QuotaEntry:
    """A submission in a quota, with the time at which it was submitted."""

    at: datetime
    charge: Charge


@dataclass(frozen=True)
class Caps:
    """The maximum number of a person's submissions in `WINDOW`.

    Refused submissions have a separate cap, because each refusal reveals something.
    """

    accepted: int
    refused: int


@dataclass(frozen=True)
class Quota:
    """The number of models that may still be submitted.

    free_at: if none, when the next one may be submitted; None if unknown.
    """

    left: int
    free_at: datetime | None = None


def choose_charge(
    state: str, outcome: str, was_started: bool, run_states: Collection[tuple[str, str]]
) -> Charge:
    """Return how a submission counts, by state and outcome of its check and of each run.

    A submission whose evaluations measured nothing through no fault of the model is free.
    """
    if state in ("queued", "running"):
        return Charge.PENDING
    if state in NOT_THE_MODELS_FAULT or outcome in NOT_THE_MODELS_FAULT:
        return Charge.FREE
    if state == "failed":
        return Charge.REFUSED
    if state == "cancelled":
        if was_started:
            return Charge.ACCEPTED
        return Charge.FREE
    others_failed = any(
        state in NOT_THE_MODELS_FAULT or out in NOT_THE_MODELS_FAULT for state, out in run_states
    )
    measured = any(state in ("queued", "running") or out == Outcome.OK for state, out in run_states)
    if others_failed and not measured:
        return Charge.FREE
    return Charge.ACCEPTED


def compute_quota(entries: Iterable[QuotaEntry], caps: Caps, now: datetime) -> Quota:
    """Return how many more models a person may submit to a task at the time `now`.

    Pending submissions count towards both caps, so that neither can be exceeded.
    """
    costly_entries = [entry for entry in entries if entry.charge != Charge.FREE]
    left_count = _count_left(costly_entries, caps, now)
    if left_count:
        return Quota(left_count)
    # Room can only come when an entry leaves the window, so only these moments are tried.
    ends = sorted(entry.at + WINDOW for entry in costly_entries if entry.at + WINDOW > now)
    return Quota(0, next((end for end in ends if _count_left(costly_entries, caps, end)), None))


def _count_left(entries: Iterable[QuotaEntry], caps: Caps, now: datetime) -> int:
    """Return how many more models may be submitted at the time `now`."""
    charges = [entry.charge for entry in entries if now - WINDOW < entry.at]
    pending = charges.count(Charge.PENDING)
    free_count = caps.accepted - charges.count(Charge.ACCEPTED) - pending
    may_fail = caps.refused - charges.count(Charge.REFUSED) - pending
    return max(0, min(free_count, may_fail))
