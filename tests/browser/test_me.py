"""One's own work, goals, ranking and data in a browser."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from core.accounts.models import Annotator, User
from core.accounts.services import get_annotator
from tests.browser.conftest import audit, make_round, visit
from tests.support.factories import PASSWORD, UserFactory
from tests.support.judging import answered, write
from validation.consensus.consensus import Vote
from validation.decisions.services import override_consensus
from validation.models import Validation


@pytest.fixture
def work(alice):
    """A valid example, one that waits, and a sensitive one; two people in the ranking."""
    round, owner = make_round("nli"), UserFactory()
    for number in range(2):
        answered(write(round, alice, number))
    first = round.examples.earliest("pk")
    for number, label in enumerate(("neutral", "neutral", "entailment")):
        Validation.objects.create(
            example=first,
            validator=get_annotator(UserFactory()),
            author=first.annotator,
            label=label,
            comment=f"Comment {number}.",
        )
    decision = {"choice": Vote(label="neutral"), "reason": "Well done."}
    override_consensus(example=first, owner=owner, **decision)
    write(make_round("hate-speech"), alice, text="They moved in.", label="not-hate")
    write(round, owner, 9)
    Annotator.objects.filter(user__in=[alice, owner]).update(in_ranking=True)
    return round


def test_my_work_in_its_states(page, alice, work):
    visit(page, "/me/")
    audit(page)
    shielded = page.get_by_text("They moved in.")
    visit(page, "/me/")
    expect(shielded).to_be_hidden()
    listed = page.locator("#mine")
    listed.get_by_text("Statement 0.").click()
    expect(listed.get_by_text("2 of 3")).to_be_visible()
    expect(page.get_by_text("Well done.")).to_be_visible()
    page.get_by_role("link", name="Confirmed 1").click()
    expect(page.get_by_role("status")).to_have_text("1 example")
    expect(page.get_by_text("Statement 1.")).to_have_count(0)
    expect(page).to_have_url(re.compile("status=valid$"))
    audit(page)
    visit(page, "/me/")
    page.locator("#set-goal").click()
    page.locator("[name=amount]").fill("501")
    page.locator("#save-goal").click()
    expect(page.locator("#error-summary")).to_be_focused()
    audit(page)
    page.locator("[name=amount]").fill("5")
    page.locator("#save-goal").click()
    expect(page.get_by_text("2 of 5 this week")).to_be_visible()


def test_my_work_without_javascript(open_page, alice, work):
    page = open_page(alice, java_script_enabled=False)
    page.goto("/me/")
    page.locator("a[href$='status=waiting#examples']").click()
    expect(page.get_by_text("Statement 1.")).to_be_visible()
    expect(page.locator("#mine").get_by_text("Statement 0.")).to_have_count(0)


def test_the_ranking_and_its_switch(page, alice, work):
    visit(page, "/t/nli/people/")
    expect(page.get_by_role("row")).to_have_count(3)
    expect(page.get_by_text("(you)")).to_be_visible()
    audit(page)
    page.locator("a[href$='#ranking']").click()
    page.locator("#switch-ranking").click()
    expect(page.locator("[name=on]")).to_have_value("1")
    audit(page)
    visit(page, "/t/nli/people/")
    expect(page.get_by_role("row")).to_have_count(0)
    audit(page)
    page.locator("#join-ranking").click()
    expect(page.get_by_role("row")).to_have_count(3)


def test_check_39_download_and_delete(page, alice, work):
    """Check 39: the file holds my items; deleting asks for the password and takes all along."""
    visit(page, "/me/data/")
    audit(page)
    with page.expect_download() as waiting:
        page.locator("a[download]").click()
    found = json.loads(Path(waiting.value.path()).read_text())
    assert len(found["examples"]) == 3
    page.locator("a[href$='/me/data/delete/']").click()
    page.get_by_label("Password").fill(PASSWORD)
    page.locator("main form button").first.click()
    expect(page.locator("[name=sure]")).to_be_visible()
    audit(page)
    page.locator("[name=sure]").click()
    expect(page.locator(".messages")).to_be_visible()
    assert not User.objects.filter(pk=alice.pk).exists()
