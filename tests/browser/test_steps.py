"""Judging a conversation step by step in a browser: read by axe, on a phone, without a script."""

from io import StringIO

import pytest
from django.core.management import call_command
from playwright.sync_api import expect

from tasks.models import Task, TaskMember
from tests.browser.conftest import audit, visit
from tests.support.factories import importing
from tests.support.traces import FIXTURES
from validation.consensus import reading
from validation.models import Validation

URL = "/t/agent/judge/"


@pytest.fixture
def trace(alice, monkeypatch):
    """A trace with three steps that Alice judges."""
    monkeypatch.setattr(reading, "MIN_READING_SECONDS", 0)
    options = ("--from", "opentelemetry", "--task", "agent", "--create", "--judge",
               "--labels", "right,wrong", "--steps", "fine,bad")  # fmt: skip
    call_command(
        "import_examples", str(FIXTURES / "opentelemetry.jsonl"), *importing(options),
        stdout=StringIO(), stderr=StringIO(),
    )  # fmt: skip
    task = Task.objects.get(code="agent")
    TaskMember.objects.create(task=task, user=alice, role="judge")


@pytest.mark.parametrize("width", [320, 1280])
def test_each_step_has_a_choice_that_axe_can_read(page, trace, width):
    page.set_viewport_size({"width": width, "height": 800})
    visit(page, URL)
    audit(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for turn in (3, 4):
        page.locator(f"[name=step-{turn}][value=fine]").check()
    page.locator("#judge-form button").first.click()
    # The browser names the step that is missing.
    assert page.evaluate("document.querySelector('[name=step-5]').validity.valueMissing")
    assert not Validation.objects.exists()
    page.locator("[name=step-5][value=bad]").check()
    page.locator("#judge-form button").first.click()
    expect(page.get_by_role("status")).to_have_text("Saved. 1 judged.")
    assert Validation.objects.get().metadata["steps"] == {"3": "fine", "4": "fine", "5": "bad"}


def test_a_missing_step_is_named_by_the_server_too(open_page, alice, trace):
    page = open_page(alice, java_script_enabled=False)
    visit(page, URL)
    page.locator("[name=step-3][value=fine]").check()
    page.locator("#judge-form").evaluate("form => { form.noValidate = true }")
    page.locator("#judge-form button").first.click()
    expect(page.locator("#error-summary")).to_contain_text("4, 5")
    expect(page.locator("[name=step-3][value=fine]")).to_be_checked()
    audit(page)
    for turn in (4, 5):
        page.locator(f"[name=step-{turn}][value=fine]").check()
    page.locator("#judge-form button").first.click()
    assert Validation.objects.get().metadata["steps"] == {"3": "fine", "4": "fine", "5": "fine"}
