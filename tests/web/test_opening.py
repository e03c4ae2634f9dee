"""A round whose target is being loaded opens by itself when the target is ready."""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from core.accounts.models import LogEntry
from core.periodic import SCHEDULED_JOBS
from tasks.models import Round, TargetModel, TaskMember
from tasks.rounds.loop import RoundError
from tasks.rounds.opening_services import cancel_opening, open_waiting_rounds, request_round_state
from tasks.rounds.states import set_round_state
from tests.support.factories import UserFactory, scripted_target

URL = "/own/nli/rounds/"
OPEN = f"{URL}1/open/"


@pytest.fixture
def loading(nli):
    """A round in draft whose target is being loaded."""
    scripted_target(nli, label="neutral", fail="busy")
    Round.objects.update(state="draft", opened_at=None)
    nli.refresh_from_db()
    return nli


@pytest.fixture
def owner(client, loading):
    user = UserFactory(email="owner@example.org")
    TaskMember.objects.create(task=loading.task, user=user, role="owner")
    client.force_login(user)
    client.user = user
    return client


def is_loaded():
    TargetModel.objects.update(options={"label": "neutral"})


def by_page(client):
    client.post(OPEN)


def by_api(client):
    answer = client.post(
        "/api/v1/tasks/nli/rounds/1/state/", {"state": "open"}, content_type="application/json"
    )
    assert answer.status_code == 200
    assert answer.json()["opening_since"]


def by_admin(client):
    client.user.is_staff = client.user.is_superuser = True
    client.user.save()
    place = reverse("admin:tasks_round_change", args=[Round.objects.get().pk])
    client.post(place.replace("/change/", "/state/"), {"state": "open"})


@pytest.mark.parametrize("door", [by_page, by_api, by_admin])
def test_a_round_opens_when_its_target_is_ready(owner, loading, door):
    door(owner)
    loading.refresh_from_db()
    assert loading.state == "draft"
    assert loading.opening_since is not None
    assert f"{URL}1/stay/" in owner.get(URL).text
    assert open_waiting_rounds() == 0
    is_loaded()
    assert open_waiting_rounds in [work.function for work in SCHEDULED_JOBS.values()]
    assert open_waiting_rounds() == 1
    loading.refresh_from_db()
    assert (loading.state, loading.opening_since) == ("open", None)
    assert LogEntry.objects.filter(action="round.opening_requested").count() == 1
    assert open_waiting_rounds() == 0


def test_an_opening_can_be_cancelled(owner, loading):
    request_round_state(round=loading, state="open", actor=None)
    since = Round.objects.get().opening_since
    card = owner.post(f"{URL}1/stay/", HTTP_HX_REQUEST="true")
    assert f"{URL}1/stay/" not in card.text
    is_loaded()
    assert open_waiting_rounds() == 0
    with pytest.raises(RoundError):  # as a check that had begun before
        set_round_state(round=loading, state="open", actor=None, waiting_since=since)
    request_round_state(round=loading, state="open", actor=None)
    assert Round.objects.get().state == "open"
    cancel_opening(round=loading, actor=None)
    assert LogEntry.objects.filter(action="round.opening_ended").count() == 1


def test_the_present_state_sent_again_cancels_in_the_api(owner, loading):
    by_api(owner)
    wanted = {"state": "draft"}
    place = "/api/v1/tasks/nli/rounds/1/state/"
    answer = owner.post(place, wanted, content_type="application/json")
    assert (answer.status_code, answer.json()["opening_since"]) == (200, None)
    assert owner.post(place, wanted, content_type="application/json").status_code == 409


def test_another_state_ends_the_waiting(loading):
    request_round_state(round=loading, state="open", actor=None)
    set_round_state(round=loading, state="ready", actor=None)
    is_loaded()
    assert open_waiting_rounds() == 0
    assert Round.objects.get().state == "ready"


def test_what_cannot_be_opened_waits_no_more_and_says_why(owner, loading):
    request_round_state(round=loading, state="open", actor=None)
    TargetModel.objects.update(options={"fail": "down"})
    assert open_waiting_rounds() == 0
    loading.refresh_from_db()
    assert (loading.opening_since, bool(loading.opening_note)) == (None, True)
    assert loading.opening_note in owner.get(URL).text
    TargetModel.objects.update(options={"fail": "busy"})
    request_round_state(round=loading, state="open", actor=None)
    Round.objects.update(opening_since=timezone.now() - timedelta(hours=2))
    assert open_waiting_rounds() == 0
    assert Round.objects.get().opening_since is None


def test_a_target_that_fails_otherwise_is_told_at_once(owner, loading):
    scripted_target(loading, name="other", fail="down")
    assert owner.post(OPEN).status_code == 409
    assert Round.objects.get().opening_since is None
