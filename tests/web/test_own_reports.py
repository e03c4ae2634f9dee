"""Reports reach reviewers: on their page, on the dashboard and by mail."""

from datetime import timedelta

import pytest
from django.core import mail
from django.db import transaction
from django.utils import timezone

from annotation.mails import mail_reports
from annotation.models import Report
from annotation.moderation import report_context
from core.accounts.services import get_annotator
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
    return report_context(annotator=get_annotator(user), context=context, **told)


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


def test_a_reported_text_has_titles_and_no_names_of_fields(reviewer, nli, report):
    page = reviewer.get(URL)
    [(_report, _who, fields)] = page.context["reports"]
    config, context = nli.task.config, report.context
    names = [component.name for component in config.context if context.fields.get(component.name)]
    assert [title for title, _value in fields] == [
        config.get_component(name).title for name in names
    ]
    assert all(value in page.text for _title, value in fields)


def test_clearing_is_offered_where_a_filter_is_set(reviewer, nli, report):
    clear = f'<a href="{URL}">'
    assert clear not in reviewer.get(URL).text.split('class="filters"')[1].split("</form>")[0]
    assert clear in reviewer.get(f"{URL}?state=resolved").text.split('class="filters"')[1]


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
            mail_reports()
        return [(one.to, URL in one.body) for one in mail.outbox]

    assert told() == [(["alice@example.com"], True)]
    said(nli, UserFactory())
    assert told() == []
    Report.objects.filter(told_at__isnull=False).update(told_at=timezone.now() - timedelta(hours=2))
    assert told() == [(["alice@example.com"], True)]
    assert told() == []
