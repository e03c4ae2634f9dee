"""What people are owed, what a place can cost at most, and what an hour of work came to.

Money is in the currency's smallest unit.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil
from statistics import median


@dataclass(frozen=True)
class Pay:
    """What a campaign pays: for the task, for each accepted example, for each that fools.

    test: for one that was not passed.
    """

    task: int = 0
    accepted: int = 0
    bonus: int = 0
    fee_percent: int = 0
    tax_percent: int = 0
    test: int = 0

    def with_costs(self, amount: int) -> int:
        """An amount with the panel's fee, and tax on both, rounded up.

        >>> Pay(fee_percent=25, tax_percent=20).with_costs(100)
        150
        """
        return ceil(amount * (100 + self.fee_percent) * (100 + self.tax_percent) / 10_000)

    def most(self, written: int) -> int:
        """What a person who writes so many examples can cost at most, with fee and tax."""
        return self.with_costs(max(self.test, self.task + written * (self.accepted + self.bonus)))

    def reserved(self, people: int, written: int, others: int) -> int:
        """What so many people can cost at most, beside what others are owed who are out again.

        >>> Pay(task=100, bonus=50, fee_percent=10).reserved(2, written=1, others=40)
        374
        """
        return people * self.most(written) + self.with_costs(others)

    def people(self, budget: int | None, written: int, others: int) -> int | None:
        """How many people a budget pays at most, beside others; None: there is no limit.

        >>> pay = Pay(task=100, bonus=50, fee_percent=10)
        >>> pay.people(373, written=1, others=40), pay.people(374, written=1, others=40)
        (1, 2)
        """
        each = self.most(written)
        if budget is None or not each:
            return None
        return max(0, budget - self.with_costs(others)) // each


def part_of(amount: int, done: int, asked: int) -> int:
    """The share of an amount for what was done of what was asked, rounded up; no more than all.

    >>> part_of(150, 1, 2), part_of(100, 1, 3), part_of(100, 5, 3), part_of(100, 0, 0)
    (75, 34, 100, 100)
    """
    return ceil(amount * min(done, asked) / asked) if asked else amount


def per_hour(earned: Iterable[tuple[int, float]]) -> int | None:
    """What the median person earned in an hour; None while nobody has. Of amounts and seconds.

    >>> per_hour([(300, 1800.0), (300, 3600.0), (300, 900.0)])
    600
    """
    rates = [amount * 3600 / seconds for amount, seconds in earned if seconds > 0]
    return round(median(rates)) if rates else None


def people_left(pay: Pay, budget: int | None, spent: int, people: int) -> int | None:
    """How many more the budget pays, at what a person earned so far; None: there is no limit.

    people: who earned `spent`. Where nobody has, the pay for the task alone counts.
    """
    if budget is None:
        return None
    each = pay.with_costs(spent) / people if people else pay.with_costs(pay.task)
    return int(max(0, budget - pay.with_costs(spent)) // each) if each else None


WHOLE = frozenset(["CLP", "ISK", "JPY", "KRW", "PYG", "UGX", "VND", "XAF", "XOF", "XPF"])
THIRDS = frozenset(["BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"])


def units(amount: int, currency: str) -> str:
    """An amount of the smallest unit as people write it; ISO 4217 has the decimals.

    >>> units(425, "EUR"), units(425, "JPY"), units(425, "KWD")
    ('4.25', '425', '0.425')
    """
    places = decimals(currency)
    return f"{amount / 10**places:.{places}f}"


def decimals(currency: str) -> int:
    """How many digits its smallest unit stands behind the point."""
    return 0 if currency in WHOLE else 3 if currency in THIRDS else 2
