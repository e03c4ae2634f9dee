"""The guides and the tasks that one runs, read by axe."""

import pytest
from playwright.sync_api import expect

from tasks.models import TaskMember
from tests.browser.conftest import audit, make_round, visit

pytestmark = pytest.mark.nightly("looks")


def test_guides_and_own_tasks_are_readable(page, alice):
    TaskMember.objects.create(task=make_round("nli").task, user=alice, role="owner")
    for path in ("/help/docs/", "/help/docs/task-config/", "/help/numbers/", "/me/tasks/"):
        visit(page, path)
        audit(page)
    visit(page, "/own/nli/campaigns/new/")
    expect(page.locator("#id_code_done")).to_be_hidden()
    page.get_by_role("heading", name="The panel").click()
    expect(page.locator("#id_code_done")).to_be_visible()
    audit(page)
