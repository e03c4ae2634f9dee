"""Criteria in a browser: written, answered and judged, read by axe, narrow, without a script."""

import pytest
from playwright.sync_api import expect

from annotation.models import Example
from tests.browser.conftest import audit, visit
from tests.support.criteria import CRITERIA, LINES, number, open_task, write
from tests.support.factories import UserFactory
from tests.support.writing import signed_in
from validation.consensus import reading
from validation.models import Validation


@pytest.fixture
def advice(db, monkeypatch):
    monkeypatch.setattr(reading, "MIN_READING_SECONDS", 0)
    return open_task()


def choose(page, *judgements):
    for name, word in number(*judgements).items():
        page.locator(f"[name={name}][value={word}]").check()


@pytest.mark.parametrize("script", [True, False])
def test_an_author_writes_criteria_and_says_which_are_met(open_page, alice, advice, script):
    page = open_page(alice, java_script_enabled=script)
    page.set_viewport_size({"width": 320, "height": 800})
    visit(page, "/t/advice/write/")
    page.get_by_label("Your question").fill("What helps against a cold?")
    page.get_by_label("Your criteria").fill(LINES)
    page.get_by_role("button", name="Submit").click()
    form = page.locator("#criteria-form")
    expect(form).to_be_visible()
    audit(page)
    choose(page, "not_met", "met")
    page.locator("#send-criteria").click()
    expect(page.locator("#id_criterion-3_error")).to_be_visible()
    choose(page, "not_met", "met", "not_met")
    page.locator("#send-criteria").click()
    expect(page.locator("#criteria-said li")).to_have_count(3)
    audit(page)
    assert Example.objects.get().outcome == "fooled"


@pytest.mark.parametrize("script", [True, False])
def test_a_judge_judges_each_criterion(open_page, alice, advice, script):
    author = signed_in(UserFactory())
    write(author)
    example = Example.objects.get()
    author.post(f"/attempt/{example.uuid}/answer/", number("not_met", "met", "not_met"))
    page = open_page(alice, java_script_enabled=script)
    page.set_viewport_size({"width": 320, "height": 800})
    visit(page, "/t/advice/judge/")
    audit(page)
    choose(page, "met", "cannot_tell")
    page.locator("#send-criteria").click()
    expect(page.locator("#id_criterion-3_error")).to_be_visible()
    # Which one is meant is said in the summary, too: on a phone the question is far below.
    expect(page.locator("#error-summary a")).to_contain_text(CRITERIA[2]["text"])
    expect(page.locator("[name=criterion-2][value=cannot_tell]")).to_be_checked()
    audit(page)
    choose(page, "met", "cannot_tell", "not_met")
    page.locator("#send-criteria").click()
    expect(page.locator("#criteria-vote")).to_have_count(0)
    assert Validation.objects.get().judgements == ["met", "cannot_tell", "not_met"]
