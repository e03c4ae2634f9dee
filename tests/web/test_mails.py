"""The mail at the end of a submission: one, to its owner, after the commit, and never too early."""

from smtplib import SMTPRecipientsRefused

import pytest
from django.core import mail

from evaluation.models import EvaluationRun, Submission
from evaluation.submissions import emails
from evaluation.submissions.emails import send_end_emails
from evaluation.submissions.progress import describe_progress
from evaluation.submissions.selectors import list_runs
from tests.support.factories import TaskFactory
from tests.support.submissions import make_set, submission_of

pytestmark = pytest.mark.django_db
State = Submission.State


@pytest.fixture
def task(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    settings.SITE_URL = "https://site.example"
    return TaskFactory(code="nli", name="NLI")


def tell(callbacks):
    with callbacks(execute=True):
        return send_end_emails()


def test_a_scored_model_is_told_once(task, alice, django_capture_on_commit_callbacks):
    submission = submission_of(task, alice, state=State.DONE, outcome="ok")
    assert tell(django_capture_on_commit_callbacks) == 0  # no run has been asked for yet
    version = make_set(task, "open")
    for suite, state in (("plain", State.DONE), ("robustness", State.RUNNING)):
        EvaluationRun.objects.create(
            submission=submission, version=version, suite=suite, outcome="ok",
            state=state, lease_token="0" * 32,
        )  # fmt: skip
    assert tell(django_capture_on_commit_callbacks) == 0
    EvaluationRun.objects.update(state=State.DONE)
    assert tell(django_capture_on_commit_callbacks) == 1
    assert tell(django_capture_on_commit_callbacks) == 0
    (sent,) = mail.outbox
    assert sent.to == ["alice@example.com"]
    assert (
        sent.subject
        == f"MiniLM seed 1: {describe_progress(submission, list_runs(submission)).sentence}"
    )
    assert f"https://site.example/m/{submission.pk}/" in sent.body


def test_a_refusal_says_what_is_wrong(task, alice, django_capture_on_commit_callbacks):
    submission_of(task, alice, state=State.FAILED, outcome="rejected", error="Line 2: <b> & so")
    tell(django_capture_on_commit_callbacks)
    assert "Line 2: <b> & so" in mail.outbox[0].body


@pytest.mark.parametrize(
    "columns", [{"state": "cancelled"}, {"state": "queued"}, {"state": "done", "owner": None}]
)
def test_nobody_is_told_of_what_they_ended_or_what_goes_on(
    task, alice, columns, django_capture_on_commit_callbacks
):
    submission = submission_of(task, alice)
    Submission.objects.filter(pk=submission.pk).update(**columns)
    assert tell(django_capture_on_commit_callbacks) == 0
    assert mail.outbox == []


def test_an_address_that_is_refused_fails_nothing_else(
    task, alice, django_capture_on_commit_callbacks, monkeypatch
):
    def refuse(*_):
        raise SMTPRecipientsRefused({})

    monkeypatch.setattr(emails, "send_mail", refuse)
    submission_of(task, alice, state=State.FAILED, error="Wrong.")
    assert tell(django_capture_on_commit_callbacks) == 1
