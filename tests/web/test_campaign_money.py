"""Amounts of a campaign: written in its currency, stored in the currency's smallest unit."""

import pytest

from dynabench.campaigns.forms import MONEY_FIELDS, CampaignForm
from tasks.models import Task
from tests.support.campaigns import open_campaign

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
    form = CampaignForm(sent, task=nli.task, tasks=Task.objects.none())
    assert ("pay_task" in form.errors) == (stored is None)
    assert "hourly" not in form.errors
    if stored is not None:
        assert form.cleaned_data["pay_task"] == stored


def test_an_amount_is_shown_as_it_was_written(nli):
    campaign = open_campaign(nli.task, pay_task=150, budget=None)
    form = CampaignForm(instance=campaign, task=nli.task, tasks=Task.objects.none())
    assert form["pay_task"].value() == "1.50"
    assert form["budget"].value() is None
    closed = {title: is_open for title, _fields, is_open in form.parts if not is_open}
    assert 0 < len(closed) < len(form.parts)
