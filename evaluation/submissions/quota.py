"""Compute how many models a person or team may still submit to a task within a day."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from evaluation.contract import UNMEASURED_OUTCOMES, Outcome

QUOTA_WINDOW = timedelta(days=1)
UNCOUNTED_OUTCOMES = ("lost",) + UNMEASURED_OUTCOMES
"""States and outcomes that do not count, because the platform or another server failed."""


class Charge(StrEnum):
    """The way in which a submission counts towards a quota."""

    FREE = "free"  # the platform or other servers failed, or it was cancelled before it started
    PENDING = "pending"  # its check has not ended
    ACCEPTED = "accepted"
    REFUSED = "refused"


@dataclass(frozen=True)
class QuotaEntry:
    """A submission in a quota, with the time at which it was submitted."""

    submitted_at: datetime
    charge: Charge


@dataclass(frozen=True)
class Caps:
    """The maximum number of a person's submissions in `QUOTA_WINDOW`.

    Refused submissions have a separate cap, because each refusal reveals something.
    """

    accepted: int
    refused: int


@dataclass(frozen=True)
class Quota:
    """The number of models that may still be submitted.

    free_at: when the next one may be submitted if none is left; None if unknown.
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
    if state in UNCOUNTED_OUTCOMES or outcome in UNCOUNTED_OUTCOMES:
        return Charge.FREE
    if state == "failed":
        return Charge.REFUSED
    if state == "cancelled":
        # A check that had started has used the site's time.
        if was_started:
            return Charge.ACCEPTED
        return Charge.FREE
    others_failed = any(
        state in UNCOUNTED_OUTCOMES or run_outcome in UNCOUNTED_OUTCOMES
        for state, run_outcome in run_states
    )
    has_result = any(
        state in ("queued", "running") or run_outcome == Outcome.OK
        for state, run_outcome in run_states
    )
    if others_failed and not has_result:
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
    # Quota is only freed when an entry leaves the window, so only these times are tried.
    end_times = sorted(
        entry.submitted_at + QUOTA_WINDOW
        for entry in costly_entries
        if entry.submitted_at + QUOTA_WINDOW > now
    )
    return Quota(
        0, next((end for end in end_times if _count_left(costly_entries, caps, end)), None)
    )


def _count_left(entries: Iterable[QuotaEntry], caps: Caps, now: datetime) -> int:
    """Return how many more models may be submitted at the time `now`."""
    charges = [entry.charge for entry in entries if now - QUOTA_WINDOW < entry.submitted_at]
    pending_count = charges.count(Charge.PENDING)
    accepted_left = caps.accepted - charges.count(Charge.ACCEPTED) - pending_count
    refused_left = caps.refused - charges.count(Charge.REFUSED) - pending_count
    return max(0, min(accepted_left, refused_left))
