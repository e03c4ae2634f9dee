"""Reports in the API: annotators say what is wrong with a context, reviewers deal with it."""

import pytest
from django.utils import timezone

from annotation.context_picking.services import assign
from annotation.models import Assignment, Report
from core.accounts.models import LogEntry
from core.accounts.services import get_annotator
from tasks.models import TaskMember
from tests.support.api_writing import error
from tests.support.factories import ContextFactory, RoundFactory, TaskFactory, UserFactory
from tests.support.query_counts import check, count
from tests.support.roles import refused

URL = "/api/v1/tasks/nli/reports/"
BROKEN = {"reason": "broken", "comment": "It ends in the middle."}


def report_url(context):
    return f"/api/v1/contexts/{context.pk}/report/"


def resolve_url(report):
    return f"/api/v1/reports/{report.pk}/resolve/"


@pytest.fixture
def given(nli, alice):
    """The context that Alice writes about."""
    return assign(annotator=get_annotator(alice), round=nli).context


def reported(context, by, reason="broken"):
    return Report.objects.create(annotator=get_annotator(by), context=context, reason=reason)


def join(user, task, role):
    TaskMember.objects.create(task=task, user=user, role=role)


def test_what_is_wrong_is_told(api, alice, given):
    reply = api.post(report_url(given), BROKEN)
    assert reply.status_code == 201
    told = reply.json()
    made = Report.objects.get()
    assert (made.annotator.user, made.context) == (alice, given)
    assert (told["id"], told["task"], told["round"]) == (made.pk, "nli", 1)
    assert told["context"] == {"id": given.pk, "fields": given.fields}
    assert {name: told[name] for name in BROKEN} == BROKEN
    assert (told["reporter"], told["resolved_at"]) == (get_annotator(alice).pseudonym, None)
    assert alice.email not in reply.text


def test_a_later_report_takes_the_place_of_the_first(api, given):
    api.post(report_url(given), BROKEN)
    told = api.post(report_url(given), {"reason": "personal"}).json()
    assert (told["reason"], told["comment"]) == ("personal", "")
    assert Report.objects.get().reason == "personal"


def test_only_what_one_was_given_is_reported(api, bobs, anybody, given, nli):
    other = nli.contexts.exclude(pk=given.pk).first()
    assert api.post(report_url(other), BROKEN).status_code == 404
    assert bobs.post(report_url(given), BROKEN).status_code == 404
    assert anybody.post(report_url(given), BROKEN).status_code == 401
    assert api.post(f"/api/v1/contexts/{2**70}/report/", BROKEN).status_code == 404
    assert not Report.objects.exists()


def test_a_token_needs_the_scope(api_of, alice, given, nli):
    join(alice, nli.task, "owner")
    error(api_of(alice, "read", "own").post(report_url(given), BROKEN), 403, "scope")
    report = reported(given, alice)
    client = api_of(alice, "read", "annotate", "submit")
    error(client.post(resolve_url(report)), 403, "scope")
    error(api_of(alice, "own").get(URL), 403, "scope")
    assert Report.objects.get().resolved_at is None


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({}, "reason"),
        ({"reason": "boring"}, "reason"),
        ({**BROKEN, "comment": "x" * 501}, "comment"),
        ({**BROKEN, "comment": "a\0"}, "comment"),
        ([], ""),
    ],
)
def test_what_no_report_can_be(api, given, asked, field):
    found = error(api.post(report_url(given), asked), 422, "invalid")
    assert set(found["fields"]) == {field}
    assert not Report.objects.exists()


@pytest.mark.parametrize("role", [None, "viewer", "reviewer"])
def test_who_reads_and_resolves(bobs, alice, bob, given, role):
    report = reported(given, alice)
    if role:
        join(bob, given.round.task, role)
    may = role not in (None, "viewer")
    assert bobs.get(URL).status_code == (200 if may else refused(role))
    assert bobs.post(resolve_url(report)).status_code == (200 if may else refused(role))
    assert bool(Report.objects.get().resolved_at) == may


def test_without_an_account_nothing_is_read(anybody, alice, given):
    report = reported(given, alice)
    assert anybody.get(URL).status_code == anybody.post(resolve_url(report)).status_code == 401


def test_the_list_is_of_the_task_and_filtered(bobs, alice, bob, given, nli):
    join(bob, nli.task, "reviewer")
    foreign = RoundFactory(task=TaskFactory(code="other", config_text=nli.task.config_text))
    reported(ContextFactory(round=foreign), alice)
    first, second = reported(given, alice), reported(given, UserFactory(), "other")

    def found(**query):
        return [one["id"] for one in bobs.get(URL, query).json()["results"]]

    assert found() == found(open=1) == [second.pk, first.pk]
    told = bobs.post(resolve_url(first)).json()
    assert (told["id"], told["resolved_at"] is None) == (first.pk, False)
    assert (found(open=1), found(open=0)) == ([second.pk], [first.pk])
    text = bobs.get(URL).text
    assert get_annotator(alice).pseudonym in text
    assert alice.email not in text
    assert set(error(bobs.get(URL, {"open": "x"}), 422, "invalid")["fields"]) == {"open"}


def test_resolving_twice_is_once(bobs, alice, bob, given):
    join(bob, given.round.task, "reviewer")
    report = reported(given, alice)
    first, second = (bobs.post(resolve_url(report)).json() for _ in range(2))
    assert first == second
    assert LogEntry.objects.get(action="reports.resolved").actor == bob


def test_a_report_of_another_task_is_not_there(bobs, alice, bob, given, sentiment):
    join(bob, given.round.task, "owner")
    report = reported(sentiment.contexts.first(), alice)
    assert bobs.post(resolve_url(report)).status_code == 404


def test_what_one_was_given_before_is_reported_too(api, alice, given):
    Assignment.objects.update(left_at=timezone.now())
    given.round.state = "closed"
    given.round.save(update_fields=["state"])
    assert api.post(report_url(given), BROKEN).status_code == 201


def test_query_count(as_alice, alice, nli):
    join(alice, nli.task, "reviewer")
    reported(nli.contexts.first(), UserFactory())
    few = count(as_alice, URL)
    for context in ContextFactory.create_batch(4, round=nli):
        reported(context, UserFactory())
    assert count(as_alice, URL) == few
    check("API reports", few)
