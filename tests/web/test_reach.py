"""The numbers that visitors see of the whole site: only public tasks, only when they are many."""

import pytest
from django.core.cache import cache
from django.utils import timezone

from annotation.models import Example
from dynabench import reach
from tasks.models import SIMULATED_TASK_CODE, Round, Task
from tests.support.factories import UserFactory
from tests.support.judging import write
from validation.models import Consensus


@pytest.fixture
def catch(nli, alice, monkeypatch):
    monkeypatch.setattr(reach, "MIN_CATCHES", 1)
    monkeypatch.setattr(reach, "MIN_PEOPLE", 1)
    Round.objects.filter(pk=nli.pk).update(opened_at="2026-01-01T00:00Z")
    example = write(nli, alice)
    Consensus.objects.update_or_create(
        example=example,
        defaults={
            "round": nli,
            "state": "decided",
            "votes": 3,
            "still_needed": 0,
            "is_verified": True,
            "is_validated_error": True,
        },
    )
    return example


def find_again():
    cache.clear()
    return reach.find_reach()


def test_it_counts_catches_people_and_rounds(catch, nli):
    write(nli, UserFactory(), 1)
    assert find_again() == reach.Reach(catches=1, people=2, rounds=1)


@pytest.mark.parametrize("change", [{"is_visible": False}, {"code": SIMULATED_TASK_CODE}], ids=str)
def test_private_and_simulated_tasks_do_not_count(catch, change):
    Task.objects.update(**change)
    assert find_again() is None


def test_sensitive_tasks_do_not_count(catch, hate):
    Example.objects.update(round=hate)
    Consensus.objects.update(round=hate)
    assert find_again() is None


@pytest.mark.parametrize(
    "change", [{"retracted_at": timezone.now()}, {"by_program": True}], ids=["retracted", "program"]
)
def test_only_standing_tries_of_people_count(catch, change):
    Example.objects.update(**change)
    assert find_again() is None


def test_small_numbers_are_not_shown(catch, client, monkeypatch):
    cache.clear()
    assert 'id="reach"' in client.get("/").text
    monkeypatch.setattr(reach, "MIN_PEOPLE", 2)
    cache.clear()
    assert 'id="reach"' not in client.get("/").text
