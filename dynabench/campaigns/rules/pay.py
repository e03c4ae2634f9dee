"""The rule of pay: what work earns, what people are owed, and what a campaign costs at most. Pure.

A person can earn

1. the pay for the task, when they submit their work: in full, or for the part that is done
   (`Pay.compute_submission_pay`),
2. the pay for each accepted example, and a bonus for each one that fooled the model, up to a
   maximum number of examples (`list_due_credits`),
3. or only the pay for the test, if they could not begin the work.

Every amount is stored as a row of the ledger. What is owed is what was credited minus what was paid
(`compute_owed`). Money is in the currency's smallest unit.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from statistics import median
from typing import NamedTuple

OWED_KINDS = ("earned", "accepted", "bonus")
"""The kinds of ledger rows that add to what a person is owed."""


@dataclass(frozen=True)
class DoneWork:
    """The amount of each kind of work that a person has done for a campaign.

    kind: the campaign's kind (`Campaign.Kind`). each: the required amount per kind of work.
    has_code: whether people who finish get a code for the panel.
    """

    kind: str
    each: int
    written: int = 0
    judged: int = 0
    compared: int = 0
    has_code: bool = False

    @property
    def amounts(self) -> list[tuple[str, int]]:
        """Return (kind of work, amount done) for each kind that the campaign requires.

        >>> DoneWork("both", each=3, written=4, judged=1).amounts
        [('write', 4), ('judge', 1)]
        """
        amounts_by_campaign_kind = {
            "write": [("write", self.written)],
            "judge": [("judge", self.judged)],
            "both": [("write", self.written), ("judge", self.judged)],
            "arena": [("arena", self.compared)],
        }
        return amounts_by_campaign_kind[self.kind]

    @property
    def unfinished_kinds(self) -> list[str]:
        """Return the kinds of work of which the person has not done enough."""
        return [kind for kind, amount in self.amounts if amount < self.each]

    @property
    def is_enough(self) -> bool:
        """Return whether all required work is done."""
        return not self.unfinished_kinds

    @property
    def amount(self) -> int:
        """Return how much of the required work is done, at most `required_amount`.

        >>> DoneWork("both", each=3, written=4, judged=1).amount
        4
        """
        # More of one kind of work does not make up for less of another.
        return sum(min(amount, self.each) for _kind, amount in self.amounts)

    @property
    def required_amount(self) -> int:
        """Return the total amount of required work."""
        return self.each * len(self.amounts)

    @property
    def has_begun(self) -> bool:
        """Return whether any of the required work is done."""
        return self.amount > 0

    @property
    def is_paid_as_work(self) -> bool:
        """Return whether the pay for the task is due, whole or in part, and not that for the test.

        >>> DoneWork("write", each=0).is_paid_as_work
        True
        """
        # Where the campaign requires no work here, nobody can begin, and all of it is done.
        return self.has_begun or self.is_enough


@dataclass(frozen=True)
class Pay:
    """A campaign's pay rates, with the fee and the tax that the campaign pays on top of them.

    task: for the whole work. accepted: for each accepted example. bonus: in addition, for each
    example that fooled the model. test: for people who could not begin the work.
    """

    task: int = 0
    accepted: int = 0
    bonus: int = 0
    fee_percent: int = 0
    tax_percent: int = 0
    test: int = 0

    def compute_submission_pay(self, done_work: DoneWork, *, are_rounds_over: bool) -> int:
        """Return what a person earns by submitting the work that they have done.

        Parameters
        ----------
        done_work
            The work that the person has done.
        are_rounds_over
            Whether the campaign's rounds have ended, so that nobody can continue.

        Returns
        -------
        int
            The full pay if all work is done, or if the rounds ended after the person began.
            Otherwise the share of the pay for the part that is done. The pay for the test if
            nothing is done.

        Examples
        --------
        >>> pay, done_work = Pay(task=100, test=20), DoneWork("write", each=4, written=1)
        >>> pay.compute_submission_pay(done_work, are_rounds_over=False)
        25
        >>> pay.compute_submission_pay(done_work, are_rounds_over=True)
        100
        """
        # Nobody is paid for work that had ended before they began, but their time counts.
        if not done_work.is_paid_as_work:
            return self.test
        # People who begin rely on the full pay, which the end of a round must not reduce.
        if done_work.is_enough or are_rounds_over:
            return self.task
        return prorate(self.task, done_work.amount, done_work.required_amount)

    def compute_approval_supplement(self, part_pay: int | None) -> int:
        """Return what an approval by the panel adds to the pay for the task.

        Panels pay the whole amount or nothing, so the rest of it counts as earned, too. part_pay:
        what the person has earned for partial work; None if they have earned the full pay.
        """
        return 0 if part_pay is None else self.task - part_pay

    def compute_example_pay(self, bonus_share: float | None) -> dict[str, int]:
        """Return what an accepted example earns, by kind of ledger row.

        bonus_share: the share of the bonus that the example earns, from 0 to 1 for a new way to
        fool the model; None if no bonus is due. A bonus of 0 is included, so that the ledger says
        that the example was compared with others.

        >>> pay = Pay(accepted=10, bonus=50)
        >>> pay.compute_example_pay(None), pay.compute_example_pay(0.5)
        ({'accepted': 10}, {'accepted': 10, 'bonus': 25})
        """
        # A pay of 0 adds no row, unlike a bonus of 0, whose row records the comparison.
        amounts = {}
        if self.accepted:
            amounts["accepted"] = self.accepted
        if bonus_share is not None:
            amounts["bonus"] = round(self.bonus * bonus_share)
        return amounts

    def add_costs(self, amount: int) -> int:
        """Return an amount plus the panel's fee, plus tax on both, rounded up.

        >>> Pay(fee_percent=25, tax_percent=20).add_costs(100)
        150
        """
        # In whole numbers until the end, so that no float makes an amount a unit larger.
        return ceil(amount * (100 + self.fee_percent) * (100 + self.tax_percent) / 10_000)

    def compute_max_cost(self, examples: int) -> int:
        """Return the maximum cost, with fee and tax, of a person who writes `examples` examples."""
        return self.add_costs(self.compute_max_earnings(examples))

    def compute_max_earnings(self, examples: int) -> int:
        """Return the maximum that a person who writes `examples` examples can earn.

        >>> Pay(task=100, bonus=50).compute_max_earnings(2), Pay(test=30).compute_max_earnings(0)
        (200, 30)
        """
        return max(self.test, self.task + examples * (self.accepted + self.bonus))

    def compute_reserved_cost(self, people: int, examples: int, owed_to_others: int) -> int:
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
        >>> pay = Pay(task=100, bonus=50, fee_percent=10)
        >>> pay.compute_reserved_cost(2, examples=1, owed_to_others=40)
        374
        """
        return people * self.compute_max_cost(examples) + self.add_costs(owed_to_others)

    def count_fully_paid_people(
        self, budget: int | None, examples: int, owed_to_others: int
    ) -> int | None:
        """Return how many people the budget can pay if each earns the maximum; None if unlimited.

        Parameters
        ----------
        budget
            The campaign's budget; None if it has none.
        examples
            Examples that each person writes.
        owed_to_others
            What is owed to former participants.

        Examples
        --------
        >>> pay = Pay(task=100, bonus=50, fee_percent=10)
        >>> pay.count_fully_paid_people(373, examples=1, owed_to_others=40)
        1
        >>> pay.count_fully_paid_people(374, examples=1, owed_to_others=40)
        2
        """
        # A campaign that pays nothing has places for everybody.
        cost_per_person = self.compute_max_cost(examples)
        if budget is None or not cost_per_person:
            return None
        return max(0, budget - self.add_costs(owed_to_others)) // cost_per_person


class AcceptedExample(NamedTuple):
    """An accepted example of a person who has submitted their work.

    place: the id of the person's place. cause: the text that identifies the example in the ledger.
    bonus_share: as in `Pay.compute_example_pay`.
    """

    place: int
    cause: str
    bonus_share: float | None


class Credit(NamedTuple):
    """An amount to credit to the person who holds a place. kind: one of OWED_KINDS."""

    place: int
    kind: str
    cause: str
    amount: int


def list_due_credits(
    pay: Pay,
    examples: Iterable[AcceptedExample],
    *,
    max_examples: int,
    credited_keys: Collection[tuple[int, str, str]],
    paid_counts: Mapping[tuple[int, str], int],
) -> Iterator[Credit]:
    """Yield the amounts that accepted examples have made due.

    Parameters
    ----------
    pay
        The campaign's pay rates.
    examples
        The accepted examples, in the order in which they were decided.
    max_examples
        The maximum number of examples for which a person gets an amount of one kind, so that the
        budget is not exceeded.
    credited_keys
        The (place, kind, cause) of each ledger row. Nothing is credited twice for one cause.
    paid_counts
        The number of ledger rows above 0 by (place, kind).
    """
    # A copy, because the caller's counts say what is stored.
    counts = Counter(paid_counts)
    for example in examples:
        for kind, amount in pay.compute_example_pay(example.bonus_share).items():
            is_at_limit = counts[example.place, kind] >= max_examples
            is_credited = (example.place, kind, example.cause) in credited_keys
            if is_at_limit or is_credited:
                continue
            # A bonus of 0 uses up nothing of the limit.
            counts[example.place, kind] += amount > 0
            yield Credit(example.place, kind, example.cause, amount)


def compute_earned(amount_by_kind: Mapping[str, int]) -> int:
    """Return everything that was credited to a person, paid or not.

    amount_by_kind: the sum of the person's ledger rows of each kind.
    """
    return sum(amount_by_kind.get(kind, 0) for kind in OWED_KINDS)


def compute_owed(amount_by_kind: Mapping[str, int]) -> int:
    """Return what a person has earned but not been paid yet. Negative if they were paid too much.

    >>> compute_owed({"earned": 100, "bonus": 25, "paid": 100})
    25
    """
    return compute_earned(amount_by_kind) - amount_by_kind.get("paid", 0)


def prorate(amount: int, done_units: int, asked_units: int) -> int:
    """Return the share of an amount for `done_units` of `asked_units` of work, rounded up.

    Never more than the whole amount. The whole amount if `asked_units` is 0.

    >>> prorate(150, 1, 2), prorate(100, 1, 3), prorate(100, 5, 3), prorate(100, 0, 0)
    (75, 34, 100, 100)
    """
    # Rounded up, so that even the smallest part earns something.
    return ceil(amount * min(done_units, asked_units) / asked_units) if asked_units else amount


def calculate_median_hourly_pay(earnings: Iterable[tuple[int, float]]) -> int | None:
    """Return the median hourly earnings; None while nobody has earned anything.

    earnings: the amount earned and the seconds worked by each person.

    >>> calculate_median_hourly_pay([(300, 1800.0), (300, 3600.0), (300, 900.0)])
    600
    """
    # People who have not submitted yet have worked for 0 seconds.
    rates = [amount * 3600 / seconds for amount, seconds in earnings if seconds > 0]
    return round(median(rates)) if rates else None


def count_affordable_people(pay: Pay, budget: int | None, spent: int, people: int) -> int | None:
    """Return how many more people the budget can pay at the average earnings so far.

    Parameters
    ----------
    pay
        The campaign's pay.
    budget
        The campaign's budget; None if it has none.
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
    cost_per_person: float = pay.add_costs(pay.task)
    if people:
        cost_per_person = pay.add_costs(spent) / people
    if not cost_per_person:
        return None
    return int(max(0, budget - pay.add_costs(spent)) // cost_per_person)
