"""The guides and the tasks that one runs, read by axe."""

import re

import pytest
from playwright.sync_api import expect

from tasks.models import TaskMember
from tests.browser.conftest import audit, make_round, visit

pytestmark = pytest.mark.nightly("looks")


def test_guides_and_own_tasks_are_readable(page, alice):
    TaskMember.objects.create(task=make_round("nli").task, user=alice, role="owner")
    for path in (
        "/docs/",
        "/docs/?q=retry",
        "/docs/task-config/",
        "/api/v1/docs/",
        "/help/",
        "/status/",
        "/privacy/",
        "/help/numbers/",
        "/account/",
        "/me/news/",
        "/accounts/sessions/",
        "/accounts/2fa/",
        "/accounts/email/",
        "/me/tasks/",
    ):
        visit(page, path)
        audit(page)
    visit(page, "/own/nli/campaigns/new/")
    audit(page)
    page.get_by_label("Name", exact=True).fill("A study")
    page.locator("#id_slug").fill("study")
    page.locator("#missing button[value=panel]").click()  # keeps what was typed
    expect(page.locator("#missing a[href='#field-code_done']")).to_be_visible()
    page.locator(".stepper button[value=pay]").click()
    page.locator("#id_pay_task").fill("10")
    page.locator("#id_pay_task").press("Tab")  # the cost follows what is typed
    expect(page.locator("#planned-cost strong")).to_have_text(re.compile("200"))
    audit(page)
