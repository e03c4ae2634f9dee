"""What calls of models cost: counted a round and day, held to budgets, shown to owners."""

import pytest
import time_machine
from django.urls import reverse
from django.utils import timezone

from annotation.attempts.live_targets import get_failure_code
from core.errors import Refused
from tasks.models import ModelUse, RoundTarget, TargetModel
from tasks.rounds.loop import register_target
from tasks.targets.endpoints.base import Usage
from tasks.targets.endpoints.live import TargetFailed
from tasks.targets.services import check_same_model
from tasks.targets.spending_services import (
    Payer,
    SpentError,
    check_budget,
    note_uses,
    sum_uses_in_round,
)
from tests.support.owner_pages import busy  # noqa: F401

NOON = "2026-03-01T12:00:00Z"


@pytest.fixture
def entry(nli):
    """A chat model in an open round of `nli`, with prices and budgets."""
    options = {"model": "m", "price_in": 2, "price_out": 10, "tokens_a_day": 100}
    nli.round_targets.all().delete()
    target = register_target(
        task=nli.task, name="chat", url="https://chat.example.org/v1", adapter="openai_chat",
        options=options,
    )  # fmt: skip
    return RoundTarget.objects.create(round=nli, target=target)


def payer(entry):
    return Payer(entry.target, entry.round_id)


def note(entry, tokens_in, tokens_out):
    note_uses([payer(entry)], [Usage(tokens_in, tokens_out)])


def test_calls_of_a_day_are_summed_with_their_prices(entry):
    with time_machine.travel(NOON):
        note(entry, 30, 5)
        note(entry, 10, 5)
    row = ModelUse.objects.get()
    assert (row.requests, row.tokens_in, row.tokens_out) == (2, 40, 10)
    assert row.cost == pytest.approx((40 * 2 + 10 * 10) / 1_000_000)
    assert str(row.day) == "2026-03-01"


def test_calls_that_cost_nothing_are_not_counted(entry, django_assert_num_queries):
    with django_assert_num_queries(0):
        note_uses([payer(entry)], [None])


def test_a_used_up_day_ends_at_midnight(entry):
    with time_machine.travel(NOON):
        note(entry, 90, 9)
        check_budget(payer(entry))
        note(entry, 1, 0)
        with pytest.raises(SpentError, match="tokens_a_day") as spent:
            check_budget(payer(entry))
        assert spent.value.retry_after == pytest.approx(12 * 3600, abs=60)
        assert get_failure_code(TargetFailed("chat", spent.value)) == "spent"
    with time_machine.travel("2026-03-02T00:00:01Z"):
        check_budget(payer(entry))


@pytest.mark.parametrize("budget", ["requests_a_day", "requests_a_round", "tokens_a_round"])
def test_each_budget_binds(entry, budget):
    entry.target.options = {"model": "m", budget: 1}
    check_budget(payer(entry))
    note(entry, 1, 0)
    with pytest.raises(SpentError, match=budget):
        check_budget(payer(entry))
    if budget.endswith("round"):
        check_budget(Payer(entry.target, entry.round_id + 1))  # another round has its own


def test_no_budget_asks_the_database_nothing(entry, django_assert_num_queries):
    entry.target.options = {"model": "m"}
    with django_assert_num_queries(0):
        check_budget(payer(entry))


def test_budgets_change_while_a_round_runs_and_the_model_does_not(entry):
    entry.target.rounds.update(opened_at=timezone.now())
    options = entry.target.options
    check_same_model(entry.target, {"options": options | {"tokens_a_day": 500, "price_in": 3}})
    with pytest.raises(Refused):
        check_same_model(entry.target, {"options": options | {"model": "other"}})


@pytest.mark.usefixtures("few_are_enough")
def test_the_dashboard_shows_what_calls_cost(as_alice, busy):  # noqa: F811
    prices = {"price_in": 2_000_000}
    target = TargetModel.objects.create(task=busy.task, name="chat", options=prices)
    note(RoundTarget(round=busy, target=target), 3, 4)
    assert sum_uses_in_round(busy)[0]["cost"] == pytest.approx(6)
    page = as_alice.get(reverse("own:dashboard", args=[busy.task.code]))
    assert 'data-uses="chat"' in page.text
    assert "6.00" in page.text
