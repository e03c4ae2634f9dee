"""Each way into a campaign at phone size, from the link to the completion code; owners' pages."""

import re
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from dynabench.campaigns.invitations import create_link_key
from dynabench.campaigns.models import Place
from tasks.models import TaskMember
from tests.browser.conftest import NARROW, assign, audit, fill, make_round, submit_button, visit
from tests.support.campaigns import PANEL_IDS, open_campaign, paid_place
from tests.support.factories import UserFactory, scripted_target

ASKED = """\
questions: [{name: care, type: slider, minimum: 0, maximum: 10, required: false}]
about: [{name: gender, type: multiclass, labels: [woman, man]}]
"""
PHONE = {"viewport": {"width": 360, "height": 740}}


@pytest.fixture
def nli(alice):
    round = make_round("nli", contexts=6)
    scripted_target(round, label="entailment")
    TaskMember.objects.create(task=round.task, user=alice, role="owner")
    return round


def agree(page, *, look=lambda page: None):
    """Read the text, say yes, go on to the work."""
    look(page)
    for box in page.get_by_role("checkbox").all():
        box.check()
    page.locator("#take-part").click()


def work(page, round, user):
    """Write one example and hand it in."""
    expect(page.locator("#write-form")).to_be_visible()
    assign(user, round)
    page.reload()
    fill(page, "nli")
    submit_button(page).click()
    expect(page.locator("#verdict-title")).to_be_visible()
    page.locator("#next").click()  # all is written
    expect(page.get_by_text("DONE")).to_be_visible()


@pytest.mark.parametrize("way", ["link", "prolific", "mturk", "account", "invitation"])
def test_from_the_link_to_the_code(open_page, nli, way):
    first = {"tour": "First **this**:\n{item}", "questions": ASKED} if way == "link" else {}
    campaign = open_campaign(nli.task, way=way, **first)
    person = UserFactory() if way == "account" else None
    page = open_page(person, **PHONE)
    query = PANEL_IDS.get(way, {})
    query = {"key": create_link_key(campaign)} if way == "invitation" else query
    visit(page, f"/c/study/?{urlencode(query)}")
    expect(page).to_have_url(re.compile(r"/c/study/\??$"))
    looks = way == "link"
    agree(page, look=lambda page: audit(page, NARROW) if looks else None)
    if way != "account":
        expect(page.get_by_text("/personal/")).to_be_visible()
        page.set_viewport_size(PHONE["viewport"])
        page.locator("#start-study").click()
    if looks:
        audit(page, NARROW)
        page.locator("[type=radio][value='']").check()
        page.locator("#send-answers").click()
        audit(page, NARROW)
        page.locator("#send-test").click()
        page.get_by_role("link", name="Your progress").first.click()
        audit(page, NARROW)
    if looks or way == "account":
        page.get_by_role("link", name="Continue").click()
    work(page, nli, Place.objects.get().annotator.user)
    if looks:
        audit(page, NARROW)


def test_owners_see_it_all(page, nli):
    campaign = open_campaign(nli.task, way="invitation", pay_accepted=20, pay_bonus=100)
    place = paid_place(campaign, 1, state="submitted")
    place.pauses.create(evidence={"accuracy": 0.4, "bound": 0.6}, appeal="Why?")
    place.payments.create(kind="bonus", amount=101, state="unclear")
    for path in (
        "",
        "new/",
        "study/",
        "study/quality/",
        "study/coverage/",
        "study/bonus/",
        f"study/places/{place.pk}/",
    ):
        visit(page, f"/own/nli/campaigns/{path}")
        audit(page)
