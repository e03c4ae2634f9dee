"""A battle in the browser: by keyboard, without JavaScript, every state under axe."""

import pytest
from playwright.sync_api import Locator, expect

from core.accounts.services import get_annotator
from leaderboard.arena.battles import services
from leaderboard.models import Battle, Comparison, GoldPair
from tasks.models import TargetModel, TaskMember
from tests.browser.conftest import audit, text_box, visit
from tests.support.battles import battle_arena, fight, send
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
    get_annotator(alice)
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
    services.give_consent(voter=get_annotator(alice), task=task, agrees=False)
    page = open_page(alice, has_touch=True, is_mobile=True)
    visit(page, URL)
    expect(text_box(page)).not_to_be_focused()


def test_what_may_go_wrong_is_told(page, alice, task, settings):
    settings.LIVE_WAIT_SECONDS = 0.1
    services.give_consent(voter=get_annotator(alice), task=task, agrees=False)
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
    services.give_consent(voter=get_annotator(alice), task=task, agrees=False)
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
    expect(page.locator(".reply")).to_have_text(["Water that falls.", "Water that falls."])
    expect(page.get_by_text("m1")).to_have_count(0)


PARAGRAPHS = "Rain is water.\n\n- It falls.\n- It flows.\n\nThen it rises again."
BOXES = """all => all.map(reply => [...reply.children].map(part => {
    const outer = reply.getBoundingClientRect(), inner = part.getBoundingClientRect();
    return { start: inner.x - outer.x, width: inner.width, top: inner.y - outer.y };
}))"""


@pytest.mark.parametrize("width", [1440, 390])
def test_answers_stand_as_they_were_written(page, alice, width):
    """One paragraph below the other, over the width of a card; both cards are equally high."""
    task = battle_arena(models={"m1": {"label": PARAGRAPHS}, "m2": {"label": "Short."}})
    voter = get_annotator(alice)
    services.give_consent(voter=voter, task=task, agrees=False)
    send(task, voter)
    page.set_viewport_size({"width": width, "height": 900})
    visit(page, URL)
    replies = page.locator(".reply").evaluate_all(BOXES)
    assert sorted(len(parts) for parts in replies) == [1, 3]
    for parts in replies:
        assert {part["start"] for part in parts} == {0}
        tops = [part["top"] for part in parts]
        assert tops == sorted(set(tops))
        assert min(part["width"] for part in parts) > (400 if width > 1000 else 250)
    heights = page.locator(".sides > section").evaluate_all(
        "all => all.map(card => card.offsetHeight)"
    )
    assert (heights[0] == heights[1]) == (width > 1000)


def test_the_votes_stay_in_sight_and_cover_no_field(page, alice):
    task = battle_arena(models={"m1": {"label": PARAGRAPHS * 20}, "m2": {"label": "Short."}})
    voter = get_annotator(alice)
    services.give_consent(voter=voter, task=task, agrees=False)
    send(task, voter)
    visit(page, URL)
    votes = page.locator("#vote button")
    for button in votes.all():
        expect(button).to_be_in_viewport(ratio=1)
    assert len({button["height"] for button in map(Locator.bounding_box, votes.all())}) == 1
    text_box(page).scroll_into_view_if_needed()
    text_box(page).click()  # nothing lies over it
    expect(text_box(page)).to_be_focused()


def test_turning_keys_on_keeps_the_message(page, alice, task):
    services.give_consent(voter=get_annotator(alice), task=task, agrees=False)
    visit(page, URL)
    text_box(page).fill("Keep me")
    page.locator("#keys-switch").click()
    expect(page.locator("#keys-switch")).to_have_attribute("aria-pressed", "true")
    expect(text_box(page)).to_have_value("Keep me")


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
    voter = get_annotator(UserFactory())
    services.give_consent(voter=voter, task=task, agrees=True)
    fight(task, voter, "left", prompt="mail jo@example.org")
    GoldPair.objects.create(task=task, prompt="2 + 2?", good="4", broken="Fish")
    visit(page, "/own/duel/arena/?add=1")
    audit(page)
    page.get_by_role("button", name="Add model").first.click()
    expect(page.locator("#error-summary")).to_be_focused()
    audit(page)
    visit(page, "/own/duel/arena/voters/")
    audit(page)
    visit(page, "/own/duel/arena/conversations/")
    audit(page)
    page.get_by_role("button", name="Publish").click()
    expect(page.get_by_role("button", name="Publish")).to_have_count(0)
    assert Battle.objects.get().release == "released"
    visit(page, URL)
    audit(page)


@pytest.fixture
def ranked_task():
    models = {f"m{number}": {"label": LONG} for number in range(1, 4)}
    return battle_arena(models=models, answers=3)


@pytest.mark.parametrize("width", [1440, 320])
def test_a_ranking_by_keyboard(page, alice, ranked_task, width):
    services.give_consent(voter=get_annotator(alice), task=ranked_task, agrees=False)
    page.set_viewport_size({"width": width, "height": 800})
    visit(page, URL)
    text_box(page).fill("What is rain?")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#rank h2")).to_be_focused()
    audit(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    for moves in (1, 2):
        page.keyboard.press("Tab")
        page.keyboard.press("Space")
        for _ in range(moves):
            page.keyboard.press("ArrowRight")
    page.keyboard.press("Tab")
    expect(page.locator("#send-ranking")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#next")).to_be_focused()
    expect(page.locator("#names")).to_contain_text("m1")
    audit(page)
    battle = Battle.objects.get()
    assert battle.ranking == {"left": 1, "right": 2, "s3": 3}
    assert Comparison.objects.count() == 3


def test_a_missing_place_is_named_at_its_field(page, alice, ranked_task):
    voter = get_annotator(alice)
    services.give_consent(voter=voter, task=ranked_task, agrees=False)
    send(ranked_task, voter)
    visit(page, URL)
    page.locator("[name=place_left][value='2']").check()
    page.locator("#send-ranking").click()
    expect(page.locator("#error-summary")).to_be_focused()
    expect(page.locator("[name=place_left][value='2']")).to_be_checked()
    expect(page.locator("#field-place_s3")).to_contain_text("Model C")
    audit(page)


def test_rankings_need_no_script(open_page, alice, ranked_task):
    voter = get_annotator(alice)
    services.give_consent(voter=voter, task=ranked_task, agrees=False)
    send(ranked_task, voter)
    page = open_page(alice, java_script_enabled=False)
    page.goto(URL)
    for side in ("left", "right", "s3"):
        page.locator(f"[name=place_{side}][value='1']").check()
    page.locator("#send-ranking").click()
    expect(page.locator("#names")).to_contain_text("m1")
    assert {one.winner for one in Comparison.objects.all()} == {"tie"}
