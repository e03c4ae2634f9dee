"""A battle in the browser: by keyboard, without JavaScript, every state under axe."""

import pytest
from playwright.sync_api import expect

from core.accounts.services import annotator_of
from leaderboard.arena.battles import services
from leaderboard.models import Battle, Comparison, GoldPair
from tasks.models import TargetModel, TaskMember
from tests.browser.conftest import audit, text_box, visit
from tests.support.battles import battle_arena, fight
from tests.support.factories import UserFactory
from tests.support.streaming_server import ChatServer

URL = "/t/duel/battle/"
LONG = (
    "# A title\n\nSome **bold** words.\n\n- one\n- two\n\n|a|b|\n|-|-|\n|1|2|\n\n```\n"
    + "x" * 200
    + "\n```\n"
)


@pytest.fixture
def task():
    return battle_arena(models={"m1": {"label": LONG}, "m2": {"label": "Short."}})


def test_a_battle_by_keyboard(page, alice, task):
    annotator_of(alice)
    type(alice.annotator).objects.update(keyboard_mode=True)
    visit(page, URL)
    audit(page)
    page.locator("[name=agrees][value=yes]").press("Enter")
    expect(text_box(page)).to_be_focused()
    audit(page)
    page.keyboard.press("Control+Enter")
    expect(page.locator("#error-summary")).to_be_focused()
    audit(page)
    text_box(page).fill("What is rain?")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#vote legend")).to_be_focused()
    expect(page.get_by_text("m1")).to_have_count(0)
    audit(page)
    text_box(page).fill("And snow?")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("And snow?")).to_be_visible()
    expect(page.locator("#vote legend")).to_be_focused()
    page.keyboard.press("t")
    expect(page.locator("#next")).to_be_focused()
    expect(page.locator("#names")).to_contain_text("m1")
    audit(page)
    assert Comparison.objects.get().winner == "tie"
    page.locator("#next").press("Enter")
    expect(text_box(page)).to_be_focused()


def test_on_a_touch_screen_no_keyboard_covers_a_new_battle(open_page, alice, task):
    services.give_consent(voter=annotator_of(alice), task=task, agrees=False)
    page = open_page(alice, has_touch=True, is_mobile=True)
    visit(page, URL)
    expect(text_box(page)).not_to_be_focused()


def test_what_may_go_wrong_is_told(page, alice, task, settings):
    settings.LIVE_WAIT_SECONDS = 0.1
    services.give_consent(voter=annotator_of(alice), task=task, agrees=False)
    TargetModel.objects.filter(name="m2").update(options={"fail": "down"})
    visit(page, URL)
    text_box(page).fill("Keep me")
    page.locator("#send-both").click()
    expect(page.locator("#error-summary")).to_be_focused()
    expect(text_box(page)).to_have_value("Keep me")
    audit(page)
    TargetModel.objects.filter(name="m2").update(options={"label": "Here.", "delay": 1})
    page.locator("#send-both").click()
    expect(page.locator("#answering")).to_be_visible()
    expect(page.locator("#vote")).to_be_visible()  # the page asked again by itself


def test_both_answers_stream_side_by_side(page, alice, task, settings):
    settings.TARGET_PRIVATE_HOSTS = ["127.0.0.1"]
    services.give_consent(voter=annotator_of(alice), task=task, agrees=False)
    with ChatServer().running() as server:
        server.say = ["Water ", "that falls."]
        server.go_on.clear()
        TargetModel.objects.update(adapter="openai_chat", url=server.url, options={"model": "m"})
        visit(page, URL)
        text_box(page).fill("What is rain?")
        page.locator("#send-both").click()
        expect(page.locator("#answering .text")).to_have_text(["Water", "Water"])
        audit(page)
        server.go_on.set()
        expect(page.locator("#vote legend")).to_be_focused()
    expect(page.locator(".said")).to_have_text(["Water that falls.", "Water that falls."])
    expect(page.get_by_text("m1")).to_have_count(0)


def test_a_battle_without_javascript(open_page, alice, task):
    page = open_page(alice, java_script_enabled=False)
    visit(page, URL)
    page.locator("[name=agrees][value=no]").click()
    text_box(page).fill("What is rain?")
    page.locator("#send-both").click()
    expect(page.get_by_role("heading", name="Model A")).to_be_visible()
    page.locator("[name=winner][value=right]").click()
    expect(page.locator("#names")).to_contain_text("m2")
    assert Comparison.objects.get().winner == "right"
    page.get_by_role("link", name="New battle").click()
    expect(page.locator("#send-both")).to_be_visible()


def test_the_owners_page(page, alice, task):
    TaskMember.objects.create(task=task, user=alice, role="owner")
    voter = annotator_of(UserFactory())
    services.give_consent(voter=voter, task=task, agrees=True)
    fight(task, voter, "left", prompt="mail jo@example.org")
    GoldPair.objects.create(task=task, prompt="2 + 2?", good="4", broken="Fish")
    visit(page, "/own/duel/arena/")
    audit(page)
    page.get_by_role("button", name="Add model").first.click()
    expect(page.locator("#error-summary")).to_be_focused()
    audit(page)
    visit(page, "/own/duel/arena/voters/")
    audit(page)
    visit(page, "/own/duel/arena/conversations/")
    audit(page)
    page.get_by_role("button", name="Publish it").click()
    expect(page.get_by_role("button", name="Publish it")).to_have_count(0)
    assert Battle.objects.get().release == "released"
    visit(page, URL)
    audit(page)
