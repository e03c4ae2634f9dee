"""A target that fails while people write: what is kept, who is told, what writers read."""

from datetime import timedelta

import pytest
from django.core import mail
from django.db import transaction
from django.utils import timezone

from tasks.models import TargetFailure, TargetModel, TaskMember
from tasks.targets.circuit_breaker import breaker
from tasks.targets.endpoints.base import EndpointError
from tasks.targets.failures import find_failures, mail_failures, note_failure
from tests.support.factories import scripted_target
from tests.support.writing import open_form

URL = "/t/nli/write/"
HTMX = {"HTTP_HX_REQUEST": "true"}


@pytest.fixture
def target(nli):
    return scripted_target(nli, label="neutral")


@pytest.fixture
def owner(alice, nli):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    return alice


def fail(target, reason="down", words="as told"):
    note_failure(target, EndpointError(words, reason=reason))


def told(capture):
    mail.outbox.clear()
    with capture(execute=True), transaction.atomic():
        mail_failures()
    return [one.to for one in mail.outbox]


@pytest.mark.parametrize("reason", ["down", "refused", "rubbish", "misconfigured"])
def test_what_a_target_does_to_a_writer_is_kept_and_shown(as_alice, owner, nli, target, reason):
    TargetModel.objects.update(options={"fail": reason})
    page = as_alice.post(URL, open_form(as_alice), **HTMX)
    assert page.status_code == 503
    assert ('data-again="same"' in page.text) == (reason == "down")
    kept = TargetFailure.objects.get()
    assert (kept.target, kept.count, kept.reason) == (target, 1, reason)
    for url in ("/own/nli/", "/own/nli/rounds/", "/t/nli/"):
        assert f"<code>{reason}</code> {kept.detail}" in as_alice.get(url).text
    TaskMember.objects.all().delete()
    assert f"<code>{reason}</code>" not in as_alice.get("/t/nli/").text


@pytest.mark.parametrize("reason", ["busy"])
def test_a_busy_target_is_no_fault(as_alice, nli, target, reason):
    TargetModel.objects.update(options={"fail": reason})
    page = as_alice.post(URL, open_form(as_alice), **HTMX)
    assert "Many people" not in page.text
    assert not TargetFailure.objects.exists()


def test_a_target_that_is_left_alone_keeps_what_it_said(as_alice, nli, target, monkeypatch):
    monkeypatch.setattr(breaker, "FIRST_PAUSE_SECONDS", 60)
    TargetModel.objects.update(options={"fail": "down"})
    for number in range(5):
        as_alice.post(
            URL, open_form(as_alice, text=f"Somebody wrote statement {number} here."), **HTMX
        )
    kept = TargetFailure.objects.get()
    assert kept.count == 3
    assert "paused" not in kept.detail


def test_failures_are_forgotten_after_a_day(target):
    fail(target)
    fail(target, words="the last")
    assert [(one.count, one.detail) for one in find_failures(target.task)] == [(2, "the last")]
    TargetFailure.objects.update(last_at=timezone.now() - timedelta(hours=25))
    assert find_failures(target.task) == []
    fail(target)
    assert [one.count for one in find_failures(target.task)] == [1]


def test_a_secret_is_not_kept(target, monkeypatch):
    monkeypatch.setenv("TARGET_X_SECRET", "s3cret")
    TargetModel.objects.update(secret_env="TARGET_X_SECRET")
    target.refresh_from_db()
    fail(target, words="Bearer s3cret was refused")
    assert TargetFailure.objects.get().detail == "Bearer [secret] was refused"


def test_owners_are_told_after_three_and_once_a_day(
    owner, target, django_capture_on_commit_callbacks
):
    capture = django_capture_on_commit_callbacks
    for _ in range(2):
        fail(target)
    assert told(capture) == []
    fail(target)
    assert told(capture) == [["alice@example.com"]]
    fail(target)
    assert told(capture) == []
    TargetFailure.objects.update(told_at=timezone.now() - timedelta(hours=25))
    assert told(capture) == [["alice@example.com"]]


def test_what_only_owners_can_mend_is_told_at_once(
    owner, target, django_capture_on_commit_callbacks
):
    fail(target, "misconfigured")
    assert told(django_capture_on_commit_callbacks) == [["alice@example.com"]]
