"""Planning a campaign on the command line, by a task's own rules."""

import json

import pytest
from django.core.management import CommandError, call_command

from tests.support.factories import RoundFactory, TaskFactory

KEYS = [
    "careless", "careless_found", "honest", "honest_proposed", "ring", "ring_found",
    "vmer_true", "vmer", "cost", "currency",
]  # fmt: skip


@pytest.mark.django_db
def test_a_campaign_is_played_by_the_tasks_rules(capsys):
    task = TaskFactory(code="nli")
    options = {"people": 40, "careless": 0.15, "ring": 4, "seed": 3, "json": True}
    call_command("simulate_campaign", "nli", **options)
    played = json.loads(capsys.readouterr().out)
    assert list(played) == KEYS
    assert (played["careless"], played["honest"], played["ring"]) == (6, 30, 4)
    assert played["currency"] == "EUR"
    RoundFactory(task=task, pay_validation=1)
    call_command("simulate_campaign", "nli", pay_example=0, pay_bonus=0, **options)
    cheap = json.loads(capsys.readouterr().out)
    assert 0 < cheap["cost"] <= 40 * 60
    call_command("simulate_campaign", "nli", people=20)
    assert "honest: 11" in capsys.readouterr().out


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("options", "policy"),
    [({"careless": 1.5}, None), ({"people": 6}, None), ({"ring": -1}, None), ({}, "strict")],
)
def test_what_cannot_be_played_is_refused(options, policy):
    task = TaskFactory(code="nli")
    if policy:
        from validation.models import RoundPolicy

        stored = {"rule": policy, "needed": 3, "of": None, "threshold": 0.8}
        RoundPolicy.objects.create(round=RoundFactory(task=task), policy=stored)
    with pytest.raises(CommandError):
        call_command("simulate_campaign", "nli", **options)
