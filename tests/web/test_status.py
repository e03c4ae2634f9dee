"""The page that tells everybody whether the site works, and the incidents on it."""

import pytest
from django.core.cache import cache
from django.db import OperationalError
from django.utils import timezone

from core.accounts.models import LogEntry
from core.jobs.models import Incident
from dynabench.operations.watching import facts, status
from evaluation.models import TrainingRun
from tasks.targets.circuit_breaker.breaker import FAILURES_TO_OPEN, Breaker
from tasks.targets.endpoints.base import EndpointError
from tests.support.factories import RoundFactory, TaskFactory, scripted_target

pytestmark = pytest.mark.django_db
WRITE = "/status/incident/"
NOTE = {"title": "The model of NLI is away", "text": "We <b>mend</b> it."}


@pytest.fixture(autouse=True)
def _counted_now():
    cache.clear()


def away(*args, **kwargs):
    raise OperationalError("connection refused")


def test_it_tells_what_answers_and_what_waits(client, nli, monkeypatch, django_assert_num_queries):
    hidden = RoundFactory(task=TaskFactory(code="sentiment", name="Secret plan", is_visible=False))
    target = scripted_target(nli, "alpha")
    scripted_target(hidden, "beta")
    TrainingRun.objects.create(task=nli.task, options={})
    found = client.get("/status/")
    assert dict(found.context["tasks"]) == {nli.task.name: False}
    assert {job.waiting for said, job in found.context["jobs"]} == {0, 1}
    assert "Secret plan" not in found.text
    for _ in range(FAILURES_TO_OPEN):
        Breaker(cache, str(target.pk)).note_failed_call(EndpointError("It is away.", reason="down"))
    monkeypatch.setattr(status, "count_facts", away)
    with django_assert_num_queries(0):
        found = client.get("/status/")
    assert dict(found.context["tasks"]) == {nli.task.name: True}
    assert found.context["is_away"]
    cache.clear()
    assert client.get("/status/").status_code == 200


def test_a_model_server_that_is_away_is_told_before_anybody_writes(client, nli, settings):
    settings.MODEL_SERVER_URL = "http://127.0.0.1:1"
    type(scripted_target(nli)).objects.update(url="", source="weights")
    assert dict(client.get("/status/").context["tasks"]) == {nli.task.name: True}


def states_of(page):
    return [name for name in ("all-up", "models-down", "database-down") if f'id="{name}"' in page]


def test_one_line_says_whether_everything_is_up(client, nli, settings, monkeypatch):
    target = scripted_target(nli)
    assert states_of(client.get("/status/").text) == ["all-up"]
    note = Incident.objects.create(title="Slow", began_at=timezone.now())
    cache.clear()
    assert states_of(client.get("/status/").text) == []
    note.ended_at = timezone.now()
    note.save()
    settings.MODEL_SERVER_URL = "http://127.0.0.1:1"
    type(target).objects.update(url="", source="weights")
    cache.clear()
    assert states_of(client.get("/status/").text) == ["models-down"]
    monkeypatch.setattr(status, "count_facts", away)
    assert states_of(client.get("/status/").text) == ["database-down"]


def test_past_incidents_stay_listed(client, nli):
    for number in range(12):
        note = Incident.objects.create(title=f"Note {number}.", began_at=timezone.now())
        if number:
            Incident.objects.filter(pk=note.pk).update(ended_at=timezone.now())
    found = client.get("/status/")
    assert [note.title for note in found.context["past_incidents"]] == [
        f"Note {number}." for number in range(11, 1, -1)
    ]
    assert found.text.split('id="incidents"')[1].count("<h3") == 10


def test_who_is_signed_in_reads_it_without_a_database(as_alice, nli, monkeypatch):
    facts.count_facts()
    monkeypatch.setattr(status, "count_facts", away)
    monkeypatch.setattr("django.db.models.query.QuerySet._fetch_all", away)
    assert as_alice.get("/status/").status_code == 200


def test_administrators_tell_of_an_incident_until_it_is_over(client, as_alice, alice, bob):
    assert as_alice.get(WRITE).status_code == as_alice.post(WRITE, NOTE).status_code == 404
    alice.is_superuser = True
    alice.save(update_fields=["is_superuser"])
    assert WRITE in as_alice.get("/status/").text
    refused = as_alice.post(WRITE, NOTE | {"title": " "})
    assert refused.status_code == 422
    assert "We &lt;b&gt;mend" in refused.text  # what was typed is kept
    assert as_alice.post(WRITE, NOTE, follow=True).status_code == 200
    told = Incident.objects.get()
    assert told.ended_at is None
    assert NOTE["title"] in as_alice.get(WRITE).text
    assert as_alice.post(WRITE, NOTE | {"text": "Done.", "is_over": "on"}).status_code == 302
    told.refresh_from_db()
    assert (told.text, told.ended_at is None, Incident.objects.count()) == ("Done.", False, 1)
    as_alice.post(WRITE, NOTE | {"title": "Again"})
    assert Incident.objects.count() == 2
    client.logout()
    page = client.get("/status/").text
    assert "Again" in page
    assert "<b>" not in page
    assert WRITE not in page
    assert LogEntry.objects.filter(action="site.incident", actor=alice).count() == 3
