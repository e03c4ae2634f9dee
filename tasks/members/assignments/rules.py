"""How shares of a queue are laid out, and how an assignment stands. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from typing import Literal

PLACES = 2**63
"""Examples have places from 0 to PLACES - 1, by chance: `validation.consensus.sampling`."""
Span = tuple[int, int]
"""From one place to another, both included."""
EVERY: Span = (0, PLACES - 1)
FULL = 1 - 1e-9
"""Shares that come to so much are all of the queue, whatever rounding did."""
DAY = timedelta(days=1)


def spans(shares: Sequence[float], overlap: int) -> list[list[Span]]:
    """Return the spans of places for each share, so that each place has `overlap` different owners.

    Parameters
    ----------
    shares : sequence of float
        Fractions of all judgements, together at most 1.
    overlap : int
        How many people judge each example.

    Returns
    -------
    list of list of Span
        The spans of each share, in the order of `shares`.

    Notes
    -----
    The shares are laid end to end around a circle that contains the first `sum(shares)` of all
    places, and cover it `overlap` times. So the same shares always get the same places, and later
    examples are distributed among them as earlier ones were.
    """
    # Where each share begins and ends along the line.
    end_places = [0]
    for share in shares:
        end_places.append(end_places[-1] + int(share * PLACES))
    # The circumference: what all shares cover, or every place if they cover everything.
    circle_places = end_places[-1]
    if sum(shares) >= FULL:
        circle_places = PLACES
    if circle_places == PLACES:
        # Rounding down may leave some places at the end, which then belong to the last share.
        end_places[-1] = PLACES
    return [
        _split_span(
            overlap * a % circle_places, min(overlap * (b - a), circle_places), circle_places
        )
        for a, b in pairwise(end_places)
    ]


def _split_span(start: int, length: int, circle_places: int) -> list[Span]:
    """Return a span of the circle, split in two if it crosses the end."""
    # How far the stretch reaches beyond the seam.
    overflow = start + length - circle_places
    if overflow <= 0:
        return [(start, start + length - 1)]
    return [(start, circle_places - 1), (0, overflow - 1)]


def too_much(shares: Sequence[float], overlap: int) -> Literal["", "sum", "overlap"]:
    """Return why shares cannot be combined: they exceed 1, or one person would judge twice."""
    if sum(shares) > 2 - FULL:
        return "sum"
    if shares and max(shares) * overlap > sum(shares) * (2 - FULL):
        return "overlap"
    return ""


@dataclass(frozen=True)
class Standing:
    """A person's progress on an assignment.

    wanted: how many examples are requested; None while the remaining number is unknown.
    """

    done: int
    wanted: int | None
    due_on: date | None
    is_over: bool = False  # it was ended, or its round takes nothing more

    @property
    def is_done(self) -> bool:
        """Return whether the requested number is done. A share of zero examples is never done."""
        return bool(self.wanted) and self.done >= (self.wanted or 0)

    def state(self, today: date) -> Literal["over", "done", "late", "open"]:
        """Return the state in one word."""
        if self.is_done:
            return "done"
        if self.is_over:
            return "over"
        if self.due_on and self.due_on < today:
            return "late"
        return "open"


def news(
    set_at: datetime, due_on: date | None, now: datetime
) -> tuple[Literal["assigned", "due", "overdue"], datetime]:
    """Return what to tell a person about an unfinished assignment, and since when it holds.

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
        "overdue" after the last day, "due" from the day before it, else "assigned".
    """
    if due_on:
        # The last day begins at midnight UTC and counts until its end.
        midnight = datetime.combine(due_on, time(), UTC)
        if now >= midnight + DAY:
            return "overdue", midnight + DAY
        if now >= midnight - DAY:
            return "due", max(set_at, midnight - DAY)
    return "assigned", set_at
