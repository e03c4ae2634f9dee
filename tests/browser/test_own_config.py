"""The owner's editor and rounds in a browser."""

import re

import pytest
from playwright.sync_api import expect

from core.accounts.models import LogEntry
from tasks.models import Round, Task, TaskMember
from tests.browser.conftest import assign, audit, make_round, visit
from tests.support.factories import RoundFactory
from tests.support.owner_pages import BROKEN, SHORT

URL = "/own/nli/config/"
SELECTION = "box => box.value.slice(box.selectionStart, box.selectionEnd)"


@pytest.fixture
def round(alice):
    made = make_round("nli")
    Task.objects.update(config_text=SHORT)
    TaskMember.objects.create(task=made.task, user=alice, role="owner")
    return made


def editor(page):
    return page.get_by_label("Configuration", exact=True)


def test_an_error_is_found_selected_and_never_saved_and_the_preview_follows(page, round):
    """Check 38 of the acceptance checks."""
    visit(page, URL)
    preview = page.frame_locator("iframe[title=Preview]")
    expect(preview.locator("#write-form")).to_be_visible()
    audit(page)
    editor(page).fill(BROKEN)
    expect(page.locator("#status")).to_have_text("1 error")
    expect(editor(page)).to_be_focused()
    link = page.locator("#problems").get_by_role("link", name="line 14")
    expect(link).to_have_text(re.compile("^line 14:"))
    audit(page)
    link.click()
    expect(editor(page)).to_be_focused()
    assert editor(page).evaluate(SELECTION) == "    labels: [neutral, neutral]"
    page.locator("#review-changes").click()
    expect(page.get_by_role("heading", name="1 error")).to_be_visible()
    expect(editor(page)).to_have_value(BROKEN)
    assert Task.objects.get().config_text == SHORT
    audit(page)

    changed = SHORT.replace("Write a statement", "Think of another")
    editor(page).fill(changed)
    expect(preview.locator("#goal")).to_have_text(re.compile("Think of another"))
    expect(editor(page)).to_be_focused()
    page.locator("#preview-judge").click()
    expect(preview.locator("#judge-form")).to_be_visible()
    editor(page).fill(changed.replace("A short one.", "Shorter."))
    expect(preview.locator("#judge-form")).to_be_visible()
    page.locator("#review-changes").click()
    expect(page.locator("h1")).to_be_focused()
    audit(page)
    page.locator("[name=step][value=save]").click()
    expect(page.locator(".messages")).to_be_visible()
    assert Task.objects.get().config_text == changed.replace("A short one.", "Shorter.")
    audit(page)


def test_the_editor_without_javascript(open_page, alice, round):
    page = open_page(alice, java_script_enabled=False)
    visit(page, URL)
    editor(page).fill(BROKEN)
    page.get_by_role("button", name="Check").click()
    page.locator("#problems").get_by_role("link", name="line 14").click()
    expect(page).to_have_url(re.compile("#L14$"))
    expect(page.locator("#L14")).to_have_text("    labels: [neutral, neutral]\n    ^")
    expect(editor(page)).to_have_value(BROKEN)
    page.locator("#preview-judge").click()
    frame = page.frame_locator("iframe[title=Preview]")
    expect(frame.locator("#no-preview")).to_be_visible()
    editor(page).fill(SHORT + "\n# A remark.\n")
    page.locator("#preview-judge").click()
    expect(frame.locator("#judge-form")).to_be_visible()
    page.locator("#review-changes").click()
    page.locator("[name=step][value=save]").click()
    expect(page.locator(".messages")).to_be_visible()


def test_a_round_is_closed_and_planned(page, open_page, alice, round):
    Round.objects.update(max_collected=40)
    assign(alice, round)
    RoundFactory(task=round.task, number=2, state="draft").parents.add(round)
    visit(page, "/own/nli/rounds/")
    audit(page)
    page.locator("#round-1").get_by_role("link", name="Close round 1…").click()
    ask = page.get_by_role("heading", name="Close round 1?")
    expect(ask).to_be_focused()
    expect(page.locator("#round-1")).to_contain_text("15")  # minutes in which people finish
    audit(page)
    page.get_by_role("button", name="Close round 1").click()
    expect(page.locator("#status")).not_to_be_empty()
    expect(page.locator("#title-1")).to_be_focused()
    assert LogEntry.objects.get(action="round.closed").actor == alice
    audit(page)
    visit(page, "/t/nli/write/")
    expect(page.locator("#closing")).to_be_visible()
    audit(page)
    visit(page, "/own/nli/rounds/2/open/")
    audit(page)
    page.get_by_role("button", name="Open round 2").click()
    expect(page.locator("#error-summary")).to_be_visible()
    audit(page)
    visit(page, "/own/nli/targets/choose/?kind=described")
    expect(page.locator("#source-form")).to_be_visible()
    audit(page)
    visit(page, "/own/nli/rounds/new/")
    audit(page)
    page.locator("[name=max_collected]").fill("-1")
    page.locator("#save").click()
    expect(page.locator("#error-summary")).to_be_focused()
    audit(page)
    page.locator("[name=max_collected]").fill("10")
    page.locator("[name=contexts_of]").select_option("Round 1")
    page.locator("#save").click()
    expect(page.locator("#round-3")).to_contain_text("0 of 10")
