"""An attempt whose process was killed is noticed within seconds; one that is asked is kept."""

import threading
from datetime import timedelta

import pytest
from django.utils import timezone

from annotation import selectors
from annotation.attempts import heartbeats, services
from annotation.attempts.heartbeats import LeaseRenewer
from annotation.models import Assignment, Attempt
from tests.support.factories import scripted_target
from tests.support.writing import open_form

URL = "/t/nli/write/"
HTMX = {"HTTP_HX_REQUEST": "true"}


@pytest.fixture
def asking(as_alice, nli):
    """An attempt as a killed process leaves it."""
    scripted_target(nli, label="neutral")
    open_form(as_alice)
    assignment = Assignment.objects.get()
    inputs = {"hypothesis": "Nobody answers.", "label": assignment.goal}
    return services.begin_attempt(
        annotator=assignment.annotator, assignment=assignment, key="c" * 32, inputs=inputs
    )[0]


def passed(seconds):
    """So much time goes by for what is stored."""
    for attempt in Attempt.objects.all():
        attempt.held_until -= timedelta(seconds=seconds)
        attempt.asked_at -= timedelta(seconds=seconds)
        attempt.save()


def test_a_killed_process_is_noticed_in_seconds(as_alice, asking):
    url = f"/attempt/{asking.uuid}/"
    passed(14)
    assert as_alice.get(url).status_code == 202
    passed(2)
    assert selectors.count_usage(asking.assignment).asking_count == 0
    assert (
        selectors.add_submitting_texts(asking.assignment, selectors.count_usage(asking.assignment))[
            1
        ]
        == []
    )
    assert as_alice.get(url).status_code == 503
    assert Attempt.objects.get().failure == "lost"


def test_the_same_key_asks_anew(asking):
    passed(16)
    again, is_mine = services.begin_attempt(
        annotator=asking.annotator,
        assignment=asking.assignment,
        key="c" * 32,
        inputs=asking.inputs,
    )
    assert is_mine
    assert not again.is_lost


def test_what_is_held_is_waited_for_until_the_deadline(as_alice, asking):
    url = f"/attempt/{asking.uuid}/"
    for _ in range(10):
        passed(8)
        heartbeats.renew_attempts([asking.pk])
        assert as_alice.get(url).status_code == 202
    passed(11)
    heartbeats.renew_attempts([asking.pk])
    assert as_alice.get(url).status_code == 503  # 91 seconds


def test_nothing_is_held_that_has_ended(asking):
    services.fail_attempt(attempt=asking, reason="slow")
    before = Attempt.objects.get().held_until
    heartbeats.renew_attempts([asking.pk])
    assert Attempt.objects.get().held_until == before


class Pauses:
    """Each pause of the thread ends when the test says so."""

    def __init__(self):
        self.began, self.go = threading.Semaphore(0), threading.Semaphore(0)

    def __call__(self):
        self.began.release()
        assert self.go.acquire(timeout=60)

    def end(self):
        assert self.began.acquire(timeout=60)
        self.go.release()


def ended(held):
    for thread in threading.enumerate():
        if thread.name == "attempts":
            thread.join(60)
    return not held._is_running


def test_the_thread_renews_what_is_held_and_ends_with_it():
    pauses, renewed = Pauses(), []
    held = LeaseRenewer(lambda pks: renewed.append(sorted(pks)), pauses)
    held.start_renewing(1)
    held.start_renewing(2)
    pauses.end()
    assert pauses.began.acquire(timeout=60)
    held.stop_renewing(1)
    pauses.go.release()
    assert pauses.began.acquire(timeout=60)
    held.stop_renewing(2)
    pauses.go.release()
    assert ended(held)
    assert renewed == [[1, 2], [2]]
    held.start_renewing(3)  # another thread
    pauses.end()
    assert pauses.began.acquire(timeout=60)
    held.stop_renewing(3)
    pauses.go.release()
    assert ended(held)
    assert renewed[2:] == [[3]]


def test_a_database_that_is_away_ends_nothing():
    pauses, tried = Pauses(), []

    def away(pks):
        tried.append(pks)
        raise RuntimeError("as scripted")

    held = LeaseRenewer(away, pauses)
    held.start_renewing(1)
    pauses.end()
    pauses.end()
    assert pauses.began.acquire(timeout=60)
    held.stop_renewing(1)
    pauses.go.release()
    assert ended(held)
    assert len(tried) == 2


def test_who_answers_late_is_held_meanwhile(as_alice, nli, settings, monkeypatch):
    told = []
    held = LeaseRenewer(lambda pks: None, lambda: None)
    monkeypatch.setattr(held, "start_renewing", lambda pk: told.append(("hold", pk)))
    monkeypatch.setattr(held, "stop_renewing", lambda pk: told.append(("let go", pk)))
    monkeypatch.setattr("annotation.attempts.services.get_lease_renewer", lambda: held)
    monkeypatch.setattr(
        "annotation.attempts.services.wait_for_answers", lambda asked: asked.exception() and False
    )
    scripted_target(nli, label="neutral")
    as_alice.post(URL, open_form(as_alice), **HTMX)
    pk = Attempt.objects.get().pk
    assert told == [("hold", pk), ("let go", pk)]


def test_renewing_gives_its_connection_back(asking, monkeypatch):
    closed = []
    monkeypatch.setattr(heartbeats.connection, "close", lambda: closed.append(1))
    passed(5)
    heartbeats._renew_and_disconnect([asking.pk])
    assert closed == [1]
    assert Attempt.objects.get().held_until > timezone.now() + timedelta(seconds=8)
