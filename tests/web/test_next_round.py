"""The forecast of the next round, on the owners' page of rounds and in the API."""

import pytest
from django.core.cache import cache

from tasks.models import Round, TaskMember
from tests.support.factories import UserFactory
from tests.support.judged_rounds import finish_round
from validation.models import Validation
from validation.statistics.cache import get_all_numbers

PAGE, API = "/own/nli/rounds/", "/api/v1/tasks/nli/next-round/"


@pytest.fixture
def owner(nli):
    """An owner of the task."""
    person = UserFactory()
    TaskMember.objects.create(task=nli.task, user=person, role=TaskMember.Role.OWNER)
    return person


@pytest.fixture
def as_owner(client, owner):
    client.force_login(owner)
    return client


def test_a_task_with_few_finished_rounds_has_no_forecast(as_owner, nli, owner):
    for number in (2, 3, 4):
        finish_round(nli.task, number, 4, owner)
    finish_round(nli.task, 5, 4, owner, state=Round.State.READY)
    page = as_owner.get(PAGE).text
    assert 'id="too-few-rounds"' in page
    body = as_owner.get(API).json()
    assert body == {"rounds": 3, "needed": 4, "forecast": None, "noise": 0, "outlook": None}


def test_the_page_and_the_api_forecast_the_next_rate(as_owner, nli, owner):
    catches = (8, 6, 7, 6)
    rounds = [finish_round(nli.task, n, k, owner) for n, k in enumerate(catches, 2)]
    body = as_owner.get(API).json()
    rates = [get_all_numbers(rounds)[round.pk].numbers["vmer"].value for round in rounds]
    assert rates == [k / 10 for k in catches]
    half_width = 2.353363 * ((0.2**2 + 0.1**2 + 0.1**2) / 3) ** 0.5
    assert body["forecast"]["value"] == 0.6
    assert body["forecast"]["low"] == pytest.approx(0.6 - half_width, abs=1e-6)
    assert body["forecast"]["high"] == pytest.approx(0.6 + half_width, abs=1e-6)
    assert (body["rounds"], body["noise"], body["outlook"]) == (4, 0, "pays")
    page = as_owner.get(PAGE).text
    assert 'data-outlook="pays"' in page
    assert 'id="too-few-rounds"' not in page


def test_as_many_dubious_labels_as_errors_are_no_reason_for_a_round(as_owner, nli, owner):
    rounds = [finish_round(nli.task, n, 1, owner) for n in range(2, 6)]
    votes = Validation.objects.filter(example__round=rounds[-1])
    judge = votes.first().validator
    votes.filter(validator=judge).update(label="entailment")
    cache.clear()
    assert as_owner.get(API).json()["outlook"] == "noise"
    assert 'data-outlook="noise"' in as_owner.get(PAGE).text


def test_outsiders_and_blind_owners_read_no_forecast(client, as_owner, nli, owner):
    for number in range(2, 6):
        finish_round(nli.task, number, 4, owner)
    TaskMember.objects.filter(user=owner).update(is_blind=True)
    assert as_owner.get(API).status_code == 403
    page = as_owner.get(PAGE)
    assert page.status_code == 200
    assert 'id="next-round"' not in page.text
    client.force_login(UserFactory())
    assert client.get(API).status_code == 404
