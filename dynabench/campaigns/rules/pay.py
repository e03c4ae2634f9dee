"""What people are owed, what a place can cost at most, and what an hour of work came to.

Money is in the currency's smallest unit.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil
from statistics import median


@dataclass(frozen=True)
class Pay:
    """The pay of a campaign: for the task, for each accepted example, for each that fools.

    test: for a test that was not passed.
    """

    task: int = 0
    accepted: int = 0
    bonus: int = 0
    fee_percent: int = 0
    tax_percent: int = 0
    test: int = 0

    def with_costs(self, amount: int) -> int:
        """Return an amount with the panel's fee, and tax on both, rounded up.

        >>> Pay(fee_percent=25, tax_percent=20).with_costs(100)
        150
        """
        # In whole numbers until the end, so that no float makes an amount a unit larger.
        return ceil(amount * (100 + self.fee_percent) * (100 + self.tax_percent) / 10_000)

    def most(self, written: int) -> int:
        """Return what a person can cost at most who writes this many examples, with fee and tax."""
        return self.with_costs(max(self.test, self.task + written * (self.accepted + self.bonus)))

    def reserved(self, people: int, written: int, others: int) -> int:
        """Return what people can cost at most, together with what is owed to others.

        Parameters
        ----------
        people
            How many people are taking part.
        written
            Examples that each of them writes.
        others
            What is owed to people who do not take part any more.

        Examples
        --------
        >>> Pay(task=100, bonus=50, fee_percent=10).reserved(2, written=1, others=40)
        374
        """
        return people * self.most(written) + self.with_costs(others)

    def people(self, budget: int | None, written: int, others: int) -> int | None:
        """Return how many people a budget pays at most, beside others; None: there is no limit.

        Parameters
        ----------
        budget
            None where there is none.
        written
            Examples that each person writes.
        others
            What is owed to people who do not take part any more.

        Examples
        --------
        >>> pay = Pay(task=100, bonus=50, fee_percent=10)
        >>> pay.people(373, written=1, others=40), pay.people(374, written=1, others=40)
        (1, 2)
        """
        # A campaign that pays nothing has places for everybody.
        each = self.most(written)
        if budget is None or not each:
            return None
        return max(0, budget - self.with_costs(others)) // each


def part_of(amount: int, done: int, asked: int) -> int:
    """Return the share of an amount for what was done of what was asked, rounded up.

    Not more than the amount, and all of it where nothing was asked.

    >>> part_of(150, 1, 2), part_of(100, 1, 3), part_of(100, 5, 3), part_of(100, 0, 0)
    (75, 34, 100, 100)
    """
    return ceil(amount * min(done, asked) / asked) if asked else amount


def per_hour(earned: Iterable[tuple[int, float]]) -> int | None:
    """Return what the median person earned in an hour; None while nobody has earned anything.

    earned: amount and seconds of each person.

    >>> per_hour([(300, 1800.0), (300, 3600.0), (300, 900.0)])
    600
    """
    # People who have not submitted yet have worked for 0 seconds.
    rates = [amount * 3600 / seconds for amount, seconds in earned if seconds > 0]
    return round(median(rates)) if rates else None


def people_left(pay: Pay, budget: int | None, spent: int, people: int) -> int | None:
    """Return how many more people the budget pays, at what a person earned so far.

    Parameters
    ----------
    pay
        Of the campaign.
    budget
        None where there is none.
    spent
        What was earned so far.
    people
        People who earned it. Where nobody has, the pay for the task counts.

    Returns
    -------
    None where there is no limit.
    """
    if budget is None:
        return None
    each: float = pay.with_costs(pay.task)
    if people:
        each = pay.with_costs(spent) / people
    if not each:
        return None
    return int(max(0, budget - pay.with_costs(spent)) // each)


WHOLE = frozenset(["CLP", "ISK", "JPY", "KRW", "PYG", "UGX", "VND", "XAF", "XOF", "XPF"])
"""Currencies without a smaller unit."""
THIRDS = frozenset(["BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"])
"""Currencies of a thousand smallest units."""


def units(amount: int, currency: str) -> str:
    """Return an amount of the smallest unit as people write it; ISO 4217 has the decimals.

    >>> units(425, "EUR"), units(425, "JPY"), units(425, "KWD")
    ('4.25', '425', '0.425')
    """
    places = decimals(currency)
    return f"{amount / 10**places:.{places}f}"


def decimals(currency: str) -> int:
    """Return how many digits behind the point a currency's smallest unit has."""
    if currency in WHOLE:
        return 0
    if currency in THIRDS:
        return 3
    return 2
