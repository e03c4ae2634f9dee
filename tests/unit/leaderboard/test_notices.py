"""When owners are told of something."""

from datetime import datetime, timedelta

import pytest

from dynabench.notices.registry import (
    MAX_NAME_CHARS,
    MAX_SWITCH_CHARS,
    NEWS_KINDS,
    TASK_NOTICES,
    CountNotice,
    PersonalNews,
    RoundNotice,
    list_switches,
)
from dynabench.notices.round_warnings import (
    LATE_JUDGING_TIME,
    RoundFacts,
    get_budget_numbers,
    get_context_numbers,
    get_end_numbers,
    get_judging_numbers,
)
from tasks.budgets import Budget, UsedBudget
from tests.support.guide import registered_for_now

NOW = datetime(2026, 11, 25, 12)


def of(**facts):
    round = RoundFacts(**{"number": 2, "is_open": True, **facts})
    numbers = {
        "judging": get_judging_numbers(round),
        "contexts": get_context_numbers(round),
        "budget": get_budget_numbers(round),
        "end": get_end_numbers(round, NOW),
    }
    return {name: told for name, told in numbers.items() if told is not None}


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"contexts": 20, "untouched": 2}, None),
        ({"contexts": 21, "untouched": 2}, {"contexts": {"count": 2, "all": 21}}),
        ({"contexts": 0}, None),
        ({"contexts": 20, "untouched": 0, "is_open": False}, None),
        ({"waiting_late": 3, "is_open": False}, {"judging": {"count": 3, "days": 3}}),
        ({"budget": Budget(max_collected=10), "used": UsedBudget(8)}, None),
        ({"budget": Budget(max_collected=10), "used": UsedBudget(9)}, {"budget": {"percent": 90}}),
        (
            {
                "budget": Budget(max_spent=1000, pay_example=10, max_fooling=9),
                "used": UsedBudget(95, 1),
            },
            {"budget": {"percent": 95}},
        ),
        ({"budget": Budget(ends_at=NOW + timedelta(hours=49))}, None),
        ({"budget": Budget(ends_at=NOW + timedelta(hours=48))}, {"end": {}}),
    ],
)
def test_a_round_tells_what_its_owners_should_know(facts, told):
    assert LATE_JUDGING_TIME.days == 3
    assert of(**facts) == (told or {})


PARTS = {
    CountNotice: {
        "label": "things wait",
        "page": "own:rounds",
        "build_sentence": lambda self, count: "%(count)d things wait.",
        "count_by_task": lambda self, now: {},
    },
    RoundNotice: {
        "label": "a thing waits",
        "page": "own:rounds",
        "build_sentence": lambda self, count: "A thing waits.",
        "get_numbers": lambda self, round, now: None,
    },
    PersonalNews: {
        "label": "a thing came",
        "place": 50,
        "build_sentence": lambda self, words: "A thing came.",
        "read_news": lambda self, now, user: iter(()),
    },
}


def add(base, name, **parts):
    with registered_for_now():
        return type("Thing", (base,), parts, name=name)


@pytest.mark.parametrize(("base", "part"), [(base, part) for base in PARTS for part in base.PARTS])
def test_one_without_a_part_is_refused_by_its_name(base, part):
    assert add(base, "thing", **PARTS[base])
    lacking = {name: value for name, value in PARTS[base].items() if name != part}
    with pytest.raises(TypeError, match=f"thing lacks: {part}\\."):
        add(base, "thing", **lacking)


@pytest.mark.parametrize(
    ("base", "name", "reason"),
    [
        (CountNotice, "reports", "already"),
        (CountNotice, "x" * (MAX_NAME_CHARS + 1), "letters"),
        (PersonalNews, "paid", "already"),
        (PersonalNews, "tasks", "already"),
        (PersonalNews, "x" * MAX_SWITCH_CHARS, "letters"),
    ],
)
def test_a_name_is_given_once_and_fits_its_column(base, name, reason):
    with pytest.raises(TypeError, match=reason):
        add(base, name, **PARTS[base])


def test_a_class_without_a_name_only_shares_code():
    before = dict(TASK_NOTICES), dict(NEWS_KINDS)
    type("Shared", (CountNotice,), {})
    type("Shared", (PersonalNews,), {})
    assert before == (TASK_NOTICES, NEWS_KINDS)
    assert [*list_switches()] == [
        "tasks", "invited", "consent", "invalid", "sent-back", "closing", "paid", "appeal"
    ]  # fmt: skip
