"""What a study costs by part, and what it is expected to cost in the end.

Money is in the currency's smallest unit. None means unknown, not zero.
"""

from collections.abc import Iterable
from typing import NamedTuple


class CostParts(NamedTuple):
    """A campaign's cost by part: its participants, other judges, model calls and evaluations."""

    people: int
    judges: int | None = None
    model_calls: int | None = None
    evaluation: int | None = None

    @property
    def known(self) -> int:
        """Return the sum of the parts that are known."""
        return sum(part for part in self if part is not None)

    @property
    def unknown(self) -> list[str]:
        """Return the names of the parts whose cost is unknown."""
        return [name for name, part in self._asdict().items() if part is None]


def sum_rounded(amounts: Iterable[float | None]) -> int | None:
    """Return the rounded sum of the amounts; None if one of them is unknown.

    >>> sum_rounded([1.2, 1.4]), sum_rounded([1.2, None]), sum_rounded([])
    (3, None, 0)
    """
    total = 0.0
    for amount in amounts:
        if amount is None:
            return None
        total += amount
    return round(total)


def price_time(seconds: float, hourly_price: int | None) -> float | None:
    """Return the cost of machine time at an hourly price; None if the price is unknown.

    >>> price_time(1800, 200), price_time(0, None), price_time(1, None)
    (100.0, 0.0, None)
    """
    if hourly_price is None:
        # No time costs nothing at any price.
        return None if seconds else 0.0
    return seconds * hourly_price / 3600


def extrapolate_to_end(
    so_far: int, submitted_people: int, place_count: int, affordable_people: int | None
) -> int | None:
    """Extrapolate an amount to the end of the campaign, when its places or budget are used up.

    Parameters
    ----------
    so_far
        The amount now.
    submitted_people
        Number of people who have submitted, who account for the amount.
    place_count
        The campaign's number of places.
    affordable_people
        Number of people whom the budget still pays; None: unlimited.

    Returns
    -------
    The expected amount; None before anybody has submitted.

    Examples
    --------
    >>> extrapolate_to_end(300, 3, 10, None), extrapolate_to_end(300, 3, 10, 2)
    (1000, 500)
    """
    if not submitted_people:
        return None
    # The budget may end before the places do.
    people = (
        place_count
        if affordable_people is None
        else min(place_count, submitted_people + affordable_people)
    )
    # At least those who have submitted: places may have become fewer since.
    return round(so_far / submitted_people * max(people, submitted_people))
