"""The page of all tasks that somebody runs, and its entry in the header."""

import re
from datetime import timedelta

import pytest
import time_machine
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotation.models import Report
from core.accounts.models import User
from core.accounts.services import get_annotator
from dynabench.manage import my_tasks
from tasks.models import TaskMember, TaskProposal
from tests.support.arenas import make_arena
from tests.support.factories import PASSWORD, RoundFactory, TaskFactory, UserFactory
from tests.support.judging import write
from tests.support.query_counts import check
from tests.support.submissions import submission_of
from validation.judging.blind_services import begin_blind_judging
from validation.models import Consensus

URL = "/manage/"
UNDECIDED = {"state": "no_consensus", "votes": 3, "still_needed": 0}


def give_role(task, user, role="owner"):
    return TaskMember.objects.create(task=task, user=user, role=role)


def make_waiting(round, author, number=0):
    """An example that has all its votes and no consensus, and an open report."""
    example = write(round, author, number)
    Consensus.objects.update_or_create(example=example, defaults={"round": round, **UNDECIDED})
    Report.objects.create(
        annotator=get_annotator(UserFactory()), context=round.contexts.first(), reason="broken"
    )
    return example


def row_of(page, code="nli"):
    return next(row for row in page.context["rows"] if row.task.code == code)


def entry_of(page):
    """The number at Manage in the header; None where there is no such entry."""
    found = re.search(r'<a href="/manage/"[^>]*>Manage\s*(?:<span class="count">(\d+))?', page.text)
    return found and int(found[1] or 0)


@pytest.fixture
def busy(nli, bob):
    nli.max_collected = 10
    nli.save()
    make_waiting(nli, bob)
    submission_of(nli.task, bob)
    return nli


def test_an_owner_sees_what_waits_in_each_task(as_alice, alice, busy):
    give_role(busy.task, alice)
    make_arena("duel")
    give_role(make_arena("mine"), alice)
    page = as_alice.get(URL)
    assert {row.task.code for row in page.context["rows"]} == {"mine", "nli"}
    row = row_of(page)
    assert (row.round, row.review, row.reports, row.models) == (busy, 1, 1, 1)
    assert (row.progress.used, row.progress.limit) == (1, 10)
    assert row.last_at is not None
    assert row_of(page, "mine").round is None
    for link in ("/own/nli/", "/own/nli/review/?kind=no-consensus", "/own/nli/reports/"):
        assert f'href="{link}"' in page.text
    assert 'id="administration"' not in page.text


def test_the_open_round_is_shown_before_a_newer_one(as_alice, alice, nli):
    give_role(nli.task, alice)
    RoundFactory(task=nli.task, number=2, state="draft")
    assert row_of(as_alice.get(URL)).round == nli
    nli.state = "closed"
    nli.save()
    assert row_of(as_alice.get(URL)).round.number == 2


def test_a_viewer_sees_no_number_of_what_they_may_not_do(as_alice, alice, busy):
    give_role(busy.task, alice, "viewer")
    row = row_of(as_alice.get(URL))
    assert (row.tries, row.review, row.reports, row.models) == (1, None, None, None)


def test_who_judges_blind_learns_nothing_that_votes_have_decided(as_alice, alice, busy):
    give_role(busy.task, alice)
    busy.max_collected, busy.max_fooling = None, 5
    busy.save()
    row = row_of(as_alice.get(URL))
    assert (row.review, row.progress.name) == (1, "fooling")
    begin_blind_judging(task=busy.task, owner=alice)
    page = as_alice.get(URL)
    row = row_of(page)
    assert (row.review, row.reports, row.progress, row.models) == (None, None, None, 1)
    assert "/own/nli/review/" not in page.text
    assert entry_of(page) == 0


@pytest.mark.parametrize("role", ["annotator", "writer", "judge", None])
def test_who_runs_no_task_has_no_entry_and_an_empty_page(as_alice, alice, nli, role):
    if role:
        give_role(nli.task, alice, role)
    page = as_alice.get(URL)
    assert not page.context["rows"]
    assert page.status_code == 200
    assert entry_of(page) is None


def test_a_role_that_waits_for_its_address_shows_nothing(as_alice, alice, nli):
    member = give_role(nli.task, alice)
    TaskMember.objects.filter(pk=member.pk).update(address=alice.email)
    page = as_alice.get(URL)
    assert not page.context["rows"]
    assert entry_of(page) is None


def test_strangers_sign_in_first(client, db):
    assert client.get(URL).status_code == 302
    assert entry_of(client.get("/")) is None


def test_administrators_find_what_waits_for_them(client, busy, bob):
    root = User.objects.create_superuser("root@example.com", PASSWORD)
    client.force_login(root)
    TaskProposal.objects.create(proposer=bob, kind="publish", task=busy.task, name="Mine")
    page = client.get(URL)
    assert (page.context["proposals"], page.context["metrics"]) == (1, 0)
    assert entry_of(page) == 1
    assert [row.task.code for row in page.context["rows"]] == ["nli"]
    assert not client.get(f"{URL}?scope=mine").context["rows"]
    for link in ("open-proposals", "open-metrics", "open-incidents", "open-database"):
        address = re.search(rf'id="{link}" class="[^"]*" href="([^"]*)"', page.text)[1]
        assert client.get(address).status_code == 200, address


def test_only_administrators_filter(as_alice, alice, nli):
    give_role(nli.task, alice)
    TaskFactory(code="qa")
    page = as_alice.get(f"{URL}?scope=")
    assert [row.task.code for row in page.context["rows"]] == ["nli"]


def test_the_header_counts_all_tasks_and_counts_anew(as_alice, alice, bob, busy):
    card = 'id="waits-in-manage"'
    assert entry_of(as_alice.get("/help/")) is None
    assert card not in as_alice.get("/").text
    give_role(busy.task, alice)
    assert entry_of(as_alice.get("/own/nli/log/")) == 2  # without waiting
    assert card in as_alice.get("/").text
    make_waiting(busy, bob, 1)
    assert entry_of(as_alice.get("/help/")) == 2
    with time_machine.travel(timezone.now() + timedelta(minutes=6)):
        assert entry_of(as_alice.get("/help/")) == 4
    Report.objects.all().delete()
    assert entry_of(as_alice.get("/help/")) == 4
    assert entry_of(as_alice.get(URL)) == 2
    assert entry_of(as_alice.get("/help/")) == 2


def test_signing_in_counts(client, alice, busy):
    give_role(busy.task, alice)
    client.post("/accounts/login/", {"login": alice.email, "password": PASSWORD})
    with CaptureQueriesContext(connection) as queries:
        page = client.get("/help/")
    assert entry_of(page) == 2
    assert not [query for query in queries if "tasks_taskmember" in query["sql"]]


def test_many_tasks_have_pages(as_alice, alice, nli, monkeypatch):
    monkeypatch.setattr(my_tasks, "PAGE_SIZE", 1)
    give_role(nli.task, alice)
    give_role(TaskFactory(code="qa"), alice)
    assert [row.task.code for row in as_alice.get(URL).context["rows"]] == ["nli"]
    assert [row.task.code for row in as_alice.get(f"{URL}?page=2").context["rows"]] == ["qa"]
    assert as_alice.get(f"{URL}?page=3").status_code == 404


def test_query_count(alice, bob, busy, nli):
    client = Client()
    client.force_login(alice)
    give_role(busy.task, alice)
    counts = []
    for number in range(2):
        client.get(URL)  # the session is settled
        with CaptureQueriesContext(connection) as queries:
            assert len(client.get(URL).context["rows"]) == 1 + 5 * number
        counts.append(len(queries))
        for copy in range(5):
            text = nli.task.config_text
            task = TaskFactory(code=f"copy-{number}-{copy}", config_text=text)
            give_role(task, alice)
            round = RoundFactory(task=task)
            round.contexts.create(fields={"premise": "A shop."}, digest="1")
            make_waiting(round, bob)
            submission_of(task, bob)
    assert counts[0] == counts[1]
    check("manage", counts[0])
