"""The owner's pages of evaluation sets in a browser: axe, focus, without JavaScript."""

import json

import pytest
from playwright.sync_api import expect

from evaluation.test_sets.services import create_set_with_version
from tasks.models import TaskMember
from tests.browser.conftest import audit, make_round, visit
from tests.support.sets import ROWS

URL = "/own/{}/evaluation-sets/"
GOOD = {"text": "The soup was warm.", "label": "{}", "tag": "food"}


@pytest.fixture(autouse=True)
def _own_storage(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path


def owned(code, user):
    task = make_round(code).task
    TaskMember.objects.create(task=task, user=user, role="owner")
    return task


def file_of(*rows, name="rows.jsonl"):
    data = "\n".join(map(json.dumps, rows)).encode()
    return {"name": name, "mimeType": "application/jsonl", "buffer": data}


@pytest.mark.parametrize("javascript", [True, False])
def test_a_set_from_its_file_to_its_page(javascript, open_page, alice):
    owned("sentiment", alice)
    page = open_page(alice, java_script_enabled=javascript)
    look = audit if javascript else lambda page: None
    visit(page, URL.format("sentiment"))
    look(page)
    page.locator("a.button[href$='/new/']").click()
    page.get_by_label("Name").fill("reviews-2024")
    page.get_by_label("Description").fill("From a *paper*.")
    page.get_by_label("standard").check()
    page.locator("#look-through").click()
    if javascript:
        expect(page.locator(".error-summary")).to_be_focused()
    wrong = {"text": "x", "label": "good"}
    page.get_by_label("File").set_input_files(file_of(GOOD | {"label": "positive"}, wrong))
    page.locator("#look-through").click()
    expect(page.get_by_text("Line 2:")).to_be_visible()
    look(page)
    rows = [{**GOOD, "label": label} for label in ("positive", "negative")]
    rows[1]["text"] = "The soup was cold."
    page.get_by_label("File").set_input_files(file_of(*rows))
    page.locator("#look-through").click()
    heading = page.get_by_role("heading", name="2 examples in rows.jsonl")
    expect(heading).to_be_visible()
    if javascript:
        expect(heading).to_be_focused()
    look(page)
    page.locator("button[name=add]").click()
    expect(page.get_by_text("sentiment/reviews-2024 v1: 2 examples.")).to_be_visible()
    expect(page.get_by_label("standard")).to_be_checked()
    look(page)
    page.locator("a.button[href$='/new/']").click()
    expect(page.get_by_label("File")).to_be_visible()
    look(page)
    visit(page, URL.format("sentiment"))
    look(page)


def test_a_sensitive_task(page, alice):
    task = owned("hate-speech", alice)
    create_set_with_version(ROWS, task=task, name="mine", actor=None, may_leave=True)
    visit(page, f"{URL.format('hate-speech')}mine/")
    audit(page)
    page.get_by_label("hidden").check()
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".messages")).to_contain_text("hate-speech/mine")
    visit(page, f"{URL.format('hate-speech')}new/")
    page.get_by_label("File").set_input_files(file_of(GOOD | {"label": "hate"}))
    page.locator("#look-through").click()
    expect(page.get_by_text("The soup was warm.")).to_be_hidden()
    page.locator("details.shield summary").click()
    expect(page.get_by_text("The soup was warm.")).to_be_visible()
    audit(page)
