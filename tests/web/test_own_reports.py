"""Reports reach reviewers: on their page, on the dashboard and by mail."""

from datetime import timedelta

import pytest
from django.core import mail
from django.db import transaction
from django.utils import timezone

from annotation.mails import tell_reports
from annotation.models import Report
from annotation.moderation import report_context
from core.accounts.services import annotator_of
from tasks.models import TaskMember
from tests.support.factories import UserFactory

URL = "/own/nli/reports/"


@pytest.fixture
def reviewer(as_alice, alice, nli):
    TaskMember.objects.create(task=nli.task, user=alice, role="reviewer")
    return as_alice


@pytest.fixture
def report(nli, bob):
    return said(nli, bob, comment="It ends in the middle.")


def said(round, user, **more):
    context = round.contexts.first()
    told = {"reason": "broken", "comment": ""} | more
    return report_context(annotator=annotator_of(user), context=context, **told)


def test_a_moderator_without_the_admin_deals_with_reports(reviewer, nli, report):
    assert URL in reviewer.get("/own/nli/").text
    page = reviewer.get(URL).text
    assert "It ends in the middle." in page
    assert 'name="retire"' not in page
    assert reviewer.post(f"{URL}{report.pk}/", {"retire": "1"}).status_code == 403
    assert reviewer.post(f"{URL}{report.pk}/").status_code == 302
    assert Report.objects.get().resolved_at
    assert "It ends in the middle." not in reviewer.get(URL).text
    assert "It ends in the middle." in reviewer.get(f"{URL}?state=resolved").text


def test_an_editor_retires_the_passage(reviewer, nli, report):
    TaskMember.objects.update(role="editor")
    assert 'name="retire"' in reviewer.get(URL).text
    reviewer.post(f"{URL}{report.pk}/", {"retire": "1"})
    report.refresh_from_db()
    assert (report.context.is_retired, bool(report.resolved_at)) == (True, True)


def test_others_see_no_reports(as_alice, nli, report):
    assert as_alice.get(URL).status_code == 404
    assert as_alice.post(f"{URL}{report.pk}/").status_code == 404


def test_who_reports_again_is_heard_again(nli, bob, report):
    Report.objects.update(resolved_at=timezone.now(), told_at=timezone.now())
    again = said(nli, bob, comment="Still.")
    assert (again.pk, again.resolved_at, again.told_at) == (report.pk, None, None)


def test_moderators_are_mailed_once_an_hour(
    reviewer, nli, report, bob, django_capture_on_commit_callbacks
):
    TaskMember.objects.create(task=nli.task, user=UserFactory(), role="viewer")

    def told():
        mail.outbox.clear()
        with django_capture_on_commit_callbacks(execute=True), transaction.atomic():
            tell_reports()
        return [(one.to, URL in one.body) for one in mail.outbox]

    assert told() == [(["alice@example.com"], True)]
    said(nli, UserFactory())
    assert told() == []
    Report.objects.filter(told_at__isnull=False).update(told_at=timezone.now() - timedelta(hours=2))
    assert told() == [(["alice@example.com"], True)]
    assert told() == []
