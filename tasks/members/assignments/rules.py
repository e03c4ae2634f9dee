"""Rules for dividing a queue into shares, and for the state of an assignment. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from typing import Literal

POSITION_COUNT = 2**63
"""The number of positions. Each example has a random one (`validation.consensus.sampling`)."""
Span = tuple[int, int]
"""A range of positions, both ends included."""
ALL_POSITIONS: Span = (0, POSITION_COUNT - 1)
FULL_SHARE = 1 - 1e-9
"""The smallest sum of shares that counts as the whole queue, because of rounding errors."""
DAY = timedelta(days=1)


def compute_spans(shares: Sequence[float], overlap: int) -> list[list[Span]]:
    """Return ranges of positions for each share, so that each position has `overlap` owners.

    Parameters
    ----------
    shares : sequence of float
        Fractions of all judgements, together at most 1.
    overlap : int
        How many people judge each example.

    Returns
    -------
    list of list of Span
        The ranges of each share, in the order of `shares`.

    Notes ----- The circle contains the first `sum(shares)` of all positions. The shares are laid
    end to end around it, and cover it `overlap` times. So the same shares always get the same
    positions, and later examples are distributed among them like earlier ones.
    """
    # Where each share begins and ends along the line.
    end_positions = [0]
    for share in shares:
        end_positions.append(end_positions[-1] + int(share * POSITION_COUNT))
    # The circumference: what all shares cover, or every place if they cover everything.
    circle_length = end_positions[-1]
    if sum(shares) >= FULL_SHARE:
        circle_length = POSITION_COUNT
    if circle_length == POSITION_COUNT:
        # Rounding down may leave some places at the end, which then belong to the last share.
        end_positions[-1] = POSITION_COUNT
    return [
        _split_span(
            overlap * start % circle_length,
            min(overlap * (end - start), circle_length),
            circle_length,
        )
        for start, end in pairwise(end_positions)
    ]


def _split_span(start: int, length: int, circle_length: int) -> list[Span]:
    """Return a range of the circle, split in two if it crosses the end."""
    # How far the stretch reaches beyond the seam.
    overflow = start + length - circle_length
    if overflow <= 0:
        return [(start, start + length - 1)]
    return [(start, circle_length - 1), (0, overflow - 1)]


def find_excess(shares: Sequence[float], overlap: int) -> Literal["", "sum", "overlap"]:
    """Return why shares cannot be combined, or "".

    "sum": they exceed 1. "overlap": one person would judge an example twice.
    """
    if sum(shares) > 2 - FULL_SHARE:
        return "sum"
    if shares and max(shares) * overlap > sum(shares) * (2 - FULL_SHARE):
        return "overlap"
    return ""


@dataclass(frozen=True)
class AssignmentProgress:
    """A person's progress on an assignment.

    done_count, required_count: numbers of examples; `required_count` is None while it is unknown.
    due_on: the last day.
    """

    done_count: int
    required_count: int | None
    due_on: date | None
    is_over: bool = False  # it was ended, or its round takes nothing more

    @property
    def is_done(self) -> bool:
        """Return whether the required number is done. False if that number is unknown or 0."""
        return bool(self.required_count) and self.done_count >= (self.required_count or 0)

    def get_state(self, today: date) -> Literal["over", "done", "late", "open"]:
        """Return the state in one word. today: the day in UTC."""
        if self.is_done:
            return "done"
        if self.is_over:
            return "over"
        if self.due_on and self.due_on < today:
            return "late"
        return "open"


def find_reminder(
    set_at: datetime, due_on: date | None, now: datetime
) -> tuple[Literal["assigned", "due", "overdue"], datetime]:
    """Return the kind of reminder for an unfinished assignment, and the time from which it applies.

    Parameters
    ----------
    set_at : datetime
        When the assignment was set.
    due_on : date or None
        Its last day (UTC), or None.
    now : datetime
        The current time.

    Returns
    -------
    tuple of str and datetime
        "overdue" after the last day, "due" from the day before it, otherwise "assigned".
    """
    if due_on:
        # The last day begins at midnight UTC and counts until its end.
        midnight = datetime.combine(due_on, time(), UTC)
        if now >= midnight + DAY:
            return "overdue", midnight + DAY
        if now >= midnight - DAY:
            return "due", max(set_at, midnight - DAY)
    return "assigned", set_at
