"""What people are owed, what a place can cost at most, and what an hour of work came to.

Money is in the currency's smallest unit.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil
from statistics import median


@dataclass(frozen=True)
class Pay:
    """A campaign's pay: for the task, each accepted example and each fooling example.

    test: pay for a test that was not passed.
    """

    task: int = 0
    accepted: int = 0
    bonus: int = 0
    fee_percent: int = 0
    tax_percent: int = 0
    test: int = 0

    def with_costs(self, amount: int) -> int:
        """Return an amount plus the panel's fee, plus tax on both, rounded up.

        >>> Pay(fee_percent=25, tax_percent=20).with_costs(100)
        150
        """
        # In whole numbers until the end, so that no float makes an amount a unit larger.
        return ceil(amount * (100 + self.fee_percent) * (100 + self.tax_percent) / 10_000)

    def most(self, examples: int) -> int:
        """Return the maximum cost of a person who writes that many examples, with fee and tax."""
        return self.with_costs(max(self.test, self.task + examples * (self.accepted + self.bonus)))

    def reserved(self, people: int, examples: int, owed_to_others: int) -> int:
        """Return the maximum cost of the participants, together with what is owed to others.

        Parameters
        ----------
        people
            Number of current participants.
        examples
            Examples that each of them writes.
        owed_to_others
            What is owed to former participants.

        Examples
        --------
        >>> Pay(task=100, bonus=50, fee_percent=10).reserved(2, examples=1, owed_to_others=40)
        374
        """
        return people * self.most(examples) + self.with_costs(owed_to_others)

    def people(self, budget: int | None, examples: int, owed_to_others: int) -> int | None:
        """Return how many people the budget pays at the maximum each; None: unlimited.

        Parameters
        ----------
        budget
            None if there is none.
        examples
            Examples that each person writes.
        owed_to_others
            What is owed to former participants.

        Examples
        --------
        >>> pay = Pay(task=100, bonus=50, fee_percent=10)
        >>> pay.people(373, examples=1, owed_to_others=40)
        1
        >>> pay.people(374, examples=1, owed_to_others=40)
        2
        """
        # A campaign that pays nothing has places for everybody.
        cost_each = self.most(examples)
        if budget is None or not cost_each:
            return None
        return max(0, budget - self.with_costs(owed_to_others)) // cost_each


def prorate(amount: int, done_units: int, asked_units: int) -> int:
    """Return the share of an amount for `done_units` of `asked_units` of work, rounded up.

    At most the whole amount, and all of it if nothing was asked.

    >>> prorate(150, 1, 2), prorate(100, 1, 3), prorate(100, 5, 3), prorate(100, 0, 0)
    (75, 34, 100, 100)
    """
    return ceil(amount * min(done_units, asked_units) / asked_units) if asked_units else amount


def calculate_median_hourly_pay(earnings: Iterable[tuple[int, float]]) -> int | None:
    """Return the median hourly earnings; None while nobody has earned anything.

    earnings: amount and seconds of each person.

    >>> calculate_median_hourly_pay([(300, 1800.0), (300, 3600.0), (300, 900.0)])
    600
    """
    # People who have not submitted yet have worked for 0 seconds.
    rates = [amount * 3600 / seconds for amount, seconds in earnings if seconds > 0]
    return round(median(rates)) if rates else None


def count_affordable_people(pay: Pay, budget: int | None, spent: int, people: int) -> int | None:
    """Return how many more people the budget pays, at the average earnings so far.

    Parameters
    ----------
    pay
        The campaign's pay.
    budget
        None if there is none.
    spent
        The sum of earnings so far.
    people
        Number of people who earned it. If 0, the pay for the task is used as the average.

    Returns
    -------
    The number of people; None if there is no limit.
    """
    if budget is None:
        return None
    cost_each: float = pay.with_costs(pay.task)
    if people:
        cost_each = pay.with_costs(spent) / people
    if not cost_each:
        return None
    return int(max(0, budget - pay.with_costs(spent)) // cost_each)


CURRENCIES_WITHOUT_DECIMALS = frozenset(
    ["CLP", "ISK", "JPY", "KRW", "PYG", "UGX", "VND", "XAF", "XOF", "XPF"]
)
"""Currencies without a smaller unit."""
CURRENCIES_WITH_THREE_DECIMALS = frozenset(["BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"])
"""Currencies of a thousand smallest units."""


def format_units(amount: int, currency: str) -> str:
    """Format an amount given in a currency's smallest unit, with ISO 4217's decimals.

    >>> format_units(425, "EUR"), format_units(425, "JPY"), format_units(425, "KWD")
    ('4.25', '425', '0.425')
    """
    places = get_decimals(currency)
    return f"{amount / 10**places:.{places}f}"


def get_decimals(currency: str) -> int:
    """Return the number of decimal places of a currency."""
    if currency in CURRENCIES_WITHOUT_DECIMALS:
        return 0
    if currency in CURRENCIES_WITH_THREE_DECIMALS:
        return 3
    return 2
