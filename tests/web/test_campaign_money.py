"""Amounts of a campaign: written in its currency, stored in the currency's smallest unit."""

import pytest

from dynabench.campaigns.forms import MONEY_FIELDS, CampaignForm
from dynabench.campaigns.plan import PLAN_STEPS
from tasks.models import Task, TaskMember
from tests.support.campaigns import open_campaign
from tests.support.factories import UserFactory
from tests.web.conftest import HTMX

ONE = dict.fromkeys(MONEY_FIELDS, "1")


@pytest.mark.parametrize(
    ("currency", "amount", "stored"),
    [
        ("EUR", "1.50", 150),
        ("EUR", "0.2", 20),
        ("JPY", "150", 150),
        ("KWD", "0.425", 425),
        ("EUR", "1.505", None),
        ("JPY", "1.5", None),
        ("EUR", "-1", None),
        ("EUR", "1e9", None),
    ],
)
def test_an_amount_is_written_in_the_currency(nli, currency, amount, stored):
    sent = {"currency": currency, **ONE, "pay_task": amount}
    form = CampaignForm(sent, task=nli.task, tasks=Task.objects.none(), step="pay")
    assert ("pay_task" in form.errors) == (stored is None)
    assert "hourly" not in form.errors
    if stored is not None:
        assert form.cleaned_data["pay_task"] == stored


def test_an_amount_is_shown_as_it_was_written(nli):
    campaign = open_campaign(nli.task, pay_task=150, budget=None)
    form = CampaignForm(instance=campaign, task=nli.task, tasks=Task.objects.none(), step="pay")
    assert form["pay_task"].value() == "1.50"
    assert form["budget"].value() is None


def test_the_form_says_what_a_plan_costs_as_the_services_reckon(nli):
    plan = {"pay_task": 300, "pay_bonus": 50, "fee_percent": 25, "tax_percent": 20, "each": 4}
    campaign = open_campaign(nli.task, places=3, kind="write", budget=1000, **plan)
    form = CampaignForm(instance=campaign, task=nli.task, tasks=Task.objects.none(), step="pay")
    assert (form.cost.pay, form.cost.total) == (500, 3 * campaign.pay.compute_max_cost(4))
    assert (form.cost.people, form.cost.people_paid) == (3, 1)
    wrong = CampaignForm(
        {"currency": "EUR", "pay_task": "much"},
        task=nli.task,
        tasks=Task.objects.none(),
        step="pay",
    )
    assert wrong.cost is None


def test_the_form_lists_what_a_campaign_lacks(nli):
    form = CampaignForm(task=nli.task, tasks=Task.objects.none(), step="work")
    missing = {part.field: part.step for part in form.missing_parts}
    assert missing == {
        "name": "work", "slug": "work", "ethics": "consent", "consent": "consent",
        "code_done": "panel",
    }  # fmt: skip
    assert [*form.fields] == [*PLAN_STEPS["work"][1]]
    assert not any(step.is_done for step in form.steps)
    assert form.current_step.name == "work"


def test_every_field_of_a_plan_is_in_one_step(nli):
    fields = [name for _title, names in PLAN_STEPS.values() for name in names]
    assert sorted(fields) == sorted(CampaignForm.base_fields)


def test_an_estimate_stores_nothing(nli, client):
    owner = TaskMember.objects.create(task=nli.task, user=UserFactory(), role="owner").user
    client.force_login(owner)
    sent = {"estimate": "1", "currency": "EUR", "kind": "judge", "places": 2, "each": 1}
    sent |= {"pay_accepted": 0, "pay_bonus": 0, "pay_test": 0, "fee_percent": 0, "tax_percent": 0}
    sent["pay_task"] = "1.50"
    open_campaign(nli.task, state="draft", ethics="")
    page = client.post("/own/nli/campaigns/study/change/pay/", sent, **HTMX)
    assert page.status_code == 200
    assert "3.00" in page.text
    assert 'value="consent"' in page.text  # the step that lacks something
    assert "<form" not in page.text
    assert nli.task.campaigns.get().pay_bonus == 0
    page = client.post("/own/nli/campaigns/new/", {"estimate": "1", "name": "One"}, **HTMX)
    assert 'href="#field-slug"' in page.text
    assert nli.task.campaigns.count() == 1
