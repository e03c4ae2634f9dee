"""When owners are told of something."""

from datetime import datetime, timedelta

import pytest

from dynabench.notices.rules import LATE, RoundFacts, TaskFacts, Wanted, wanted
from tasks.budgets import Budget, UsedBudget

NOW = datetime(2026, 11, 25, 12)


def of(**facts):
    facts = {"number": 2, "is_open": True, **facts}
    return list(wanted(TaskFacts([RoundFacts(**facts)]), NOW))


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"contexts": 20, "untouched": 2}, None),
        ({"contexts": 21, "untouched": 2}, Wanted("contexts", 2, {"count": 2, "all": 21})),
        ({"contexts": 0}, None),
        ({"contexts": 20, "untouched": 0, "is_open": False}, None),
        ({"waiting_late": 3, "is_open": False}, Wanted("judging", 2, {"count": 3, "days": 3})),
        ({"budget": Budget(collected=10), "used": UsedBudget(8)}, None),
        (
            {"budget": Budget(collected=10), "used": UsedBudget(9)},
            Wanted("budget", 2, {"percent": 90}),
        ),
        (
            {"budget": Budget(money=1000, pay_example=10, fooling=9), "used": UsedBudget(95, 1)},
            Wanted("budget", 2, {"percent": 95}),
        ),
        ({"budget": Budget(ends_at=NOW + timedelta(hours=49))}, None),
        ({"budget": Budget(ends_at=NOW + timedelta(hours=48))}, Wanted("end", 2, {})),
    ],
)
def test_a_round_tells_what_its_owners_should_know(facts, told):
    assert LATE.days == 3
    assert of(**facts) == ([told] if told else [])


def test_a_task_tells_of_targets_reports_and_models():
    facts = TaskFacts(failing=1, reports=2, submitted=3, hasty=4)
    assert list(wanted(facts, NOW)) == [
        Wanted("target", 0, {"count": 1}),
        Wanted("reports", 0, {"count": 2}),
        Wanted("models", 0, {"count": 3}),
        Wanted("reading", 0, {"count": 4}),
    ]
    assert list(wanted(TaskFacts(), NOW)) == []
