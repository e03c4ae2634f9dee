"""The admin. Reports, and how many queries the pages need."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotation.models import Report
from core.accounts.models import LogEntry
from tasks.admin.roles import REVIEWERS
from tasks.models import TaskMember
from tests.support.factories import (
    RoundFactory,
    TaskFactory,
    UserFactory,
    scripted_target,
)
from tests.web.admin.conftest import (
    MODELS,
    ROLES,
    Role,
    change_url,
    fill,
    list_url,
    sign_in,
)


@pytest.mark.parametrize("role", ROLES)
def test_moderators_resolve_reports(people, own, foreign, role):
    rows = [own["annotation_report"], foreign["annotation_report"]]
    chosen = {"action": "resolve", "_selected_action": [row.pk for row in rows]}
    sign_in(people[role]).post(list_url("annotation_report"), chosen)
    resolved = set(Report.objects.filter(resolved_at__isnull=False))
    assert resolved == ({rows[0]} if role in REVIEWERS else set())
    assert LogEntry.objects.filter(action="reports.resolved").exists() == (role in REVIEWERS)


@pytest.mark.parametrize("model", MODELS)
def test_pages_ask_the_same_number_of_queries_for_more_rows(owner, own, people, alice, model):
    def count(url):
        with CaptureQueriesContext(connection) as queries:
            assert owner.get(url).status_code == 200
        return len(queries)

    urls = [list_url(model), change_url(model, own[model])]
    before = [count(url) for url in urls * 2][2:]  # content types are read once a process
    for number in range(2, 6):
        task = TaskFactory(code=f"more-{number}", config_text=own["tasks_task"].config_text)
        TaskMember.objects.create(task=task, user=people[Role.OWNER], role="owner")
        TaskMember.objects.create(task=own["tasks_task"], user=UserFactory(), role="viewer")
        fill(RoundFactory(task=task), alice)
        fill(RoundFactory(task=own["tasks_task"], number=number, state="draft"), alice)
        scripted_target(own["tasks_round"], name=f"more-{number}", label="neutral")
    assert [count(url) for url in urls] == before
