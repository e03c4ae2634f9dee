"""What a pilot tells about its study: means, minutes and the expected cost of each arm. Pure."""

from collections.abc import Sequence
from math import exp
from statistics import fmean

from dynabench.campaigns.rules.pay import Pay
from dynabench.studies.rules.plan import Outcome, StudyPlan
from dynabench.studies.rules.records import PersonRecord


def compute_outcome_mean(outcome: Outcome, records: Sequence[PersonRecord]) -> float | None:
    """Return the mean of an outcome's values in one arm; of a time, the geometric mean in seconds.

    None without values.
    """
    values = [
        value.value
        for record in records
        for value in record.values
        if value.outcome == outcome.name
    ]
    if not values:
        return None
    # Times are kept as logarithms.
    return exp(fmean(values)) if outcome.kind.scale == "time" else fmean(values)


def count_planned_people(plan: StudyPlan, arm: str) -> int:
    """Return how many people the plan has in an arm, rounded up."""
    if plan.design == "within":
        return plan.size.people
    parts = plan.ratios
    return -(-plan.size.people * parts[arm] // sum(parts.values()))


def compute_people_cost(pay: Pay, submitted: int, accepted: int, catches: int) -> int:
    """Return what people cost who have submitted, with fee and tax, in the smallest unit.

    accepted: confirmed examples that are paid. catches: those of them that fooled the model, each
    with the whole bonus: bonuses by novelty or information are less.

    >>> compute_people_cost(Pay(task=100, accepted=10, bonus=50, fee_percent=10), 2, 3, 1)
    308
    """
    return pay.add_costs(submitted * pay.task + accepted * pay.accepted + catches * pay.bonus)


def extrapolate_cost(cost: int, submitted: int, planned: int) -> int | None:
    """Return the expected cost of all planned people of an arm; None if nobody has submitted.

    >>> extrapolate_cost(250, 2, 100), extrapolate_cost(0, 0, 100)
    (12500, None)
    """
    return round(cost / submitted * planned) if submitted else None
