"""What a phone shows: no words in single letters, nothing out of shape or out of sight."""

import pytest
from playwright.sync_api import Locator, expect

from tasks.models import TaskMember
from tests.browser.conftest import (
    ANSWERS,
    answer_box,
    assign,
    fill,
    make_round,
    next_button,
    submit_button,
    text_box,
    verdict,
    visit,
)
from tests.support.factories import scripted_target

pytestmark = pytest.mark.nightly("looks")

WIDTHS = [320, 390]
LIES_ON_TOP = """one => {
  const { x, width, bottom } = one.getBoundingClientRect();
  return document.elementFromPoint(x + width / 2, Math.min(bottom, innerHeight) - 8) === one;
}"""


def box(found: Locator) -> dict[str, float]:
    """Where it is on the screen."""
    size = found.bounding_box()
    assert size is not None
    return {**size, "bottom": size["y"] + size["height"]}


@pytest.fixture(params=WIDTHS)
def phone(page, request):
    page.set_viewport_size({"width": request.param, "height": 700})
    return page


@pytest.fixture
def qa(alice):
    round = make_round("qa")
    scripted_target(round)
    TaskMember.objects.create(task=round.task, user=alice, role="owner")
    return round


@pytest.mark.parametrize("path", ["", "rounds/", "review/", "annotators/", "config/"])
def test_the_owners_links_stand_in_lines(phone, qa, path):
    visit(phone, f"/own/qa/{path}")
    phone.locator(".side-menu > summary").click()
    for link in phone.get_by_role("navigation", name="Owner pages").get_by_role("link").all():
        words = box(link)
        assert 24 <= words["height"] < 60, link.inner_text()  # one line, wide enough to touch
        assert words["x"] + words["width"] <= phone.viewport_size["width"]


def test_the_filter_of_the_task_list_is_in_shape(phone, qa):
    visit(phone, "/?open=1")
    for name in ("open", "mild"):
        tick = box(phone.locator(f"[name={name}]"))
        assert tick["width"] == tick["height"]
        assert phone.locator(f"[name={name}]").evaluate(
            "one => parseFloat(getComputedStyle(one).borderTopLeftRadius) < one.offsetWidth / 2"
        )  # else it looks like a radio button
        assert box(phone.locator("label", has=phone.locator(f"[name={name}]")))["height"] < 60
    assert box(phone.locator("#q"))["width"] > 250
    assert box(phone.locator("search button"))["height"] < 60
    assert box(phone.locator("label[for=q]"))["height"] < 40


def test_that_there_is_no_connection_is_told_in_sight(phone, qa, alice):
    assign(alice, qa)
    visit(phone, "/t/qa/write/")
    text_box(phone).fill("When did Ada leave?")
    phone.context.set_offline(True)
    submit_button(phone).scroll_into_view_if_needed()
    submit_button(phone).click()
    alert = phone.get_by_role("alert")
    expect(alert).to_contain_text("No connection")
    assert phone.evaluate("scrollY") > 100
    assert box(alert)["y"] >= 0
    assert box(alert)["bottom"] <= phone.viewport_size["height"]
    phone.context.set_offline(False)
    submit_button(phone).click()
    expect(phone.locator("#error-summary, #failed").first).to_be_visible()
    expect(alert).to_have_text("")


def test_on_a_touch_screen_a_page_opens_at_the_top_with_nothing_over_its_field(open_page, alice):
    round = make_round("nli", contexts=2)
    scripted_target(round, label="neutral", prob={"neutral": 1.0})
    assign(alice, round)
    phone = {"width": 390, "height": 664}
    page = open_page(alice, has_touch=True, is_mobile=True, viewport=phone)
    visit(page, "/t/nli/write/")
    assert page.evaluate("[scrollY, document.activeElement.tagName]") == [0, "BODY"]
    passage = page.locator(".context .text").first
    assert passage.evaluate("one => one.scrollHeight <= one.clientHeight + 1")  # whole
    field = text_box(page)
    field.evaluate("one => one.scrollIntoView({block: 'end'})")
    assert field.evaluate(LIES_ON_TOP)
    field.fill("Something is written here.")
    assert box(submit_button(page))["bottom"] <= phone["height"]  # in sight once there is a text
    page.get_by_role("button", name="Another passage").tap()
    expect(page.locator("#goal")).to_be_focused()
    expect(text_box(page)).to_have_value("")


def test_a_verdict_and_another_text_begin_at_their_top(open_page, alice):
    round = make_round("qa", contexts=2)
    scripted_target(round, **ANSWERS["qa"])
    tall = {"width": 320, "height": 920}
    page = open_page(alice, has_touch=True, is_mobile=True, viewport=tall)
    assign(alice, round)
    visit(page, "/t/qa/write/")
    fill(page, "qa")
    answer_box(page).blur()
    page.set_viewport_size({"width": 320, "height": 420})
    submit_button(page).tap()
    expect(next_button(page)).to_be_focused()
    assert box(verdict(page))["y"] >= box(page.locator("header.site"))["bottom"]
    page.locator("#edit").tap()
    expect(text_box(page)).to_be_focused()
    expect(text_box(page)).to_be_in_viewport()
    text_box(page).fill("When did Ada leave Tarn for good?")
    submit_button(page).tap()
    expect(next_button(page)).to_be_focused()
    next_button(page).tap()
    expect(page.locator("#goal")).to_be_focused()
    assert page.evaluate("scrollY") == 0


def test_what_one_reads_comes_first_and_unfolds(open_page, alice):
    """Six lines of it, then the goal; a script-less page and a short text show all."""
    made = make_round("qa")
    passage = "Ada built the mill in 1840. The mill burned down. " * 20
    made.contexts.update(fields={"passage": passage.strip()})
    scripted_target(made)
    assign(alice, made)
    phone = {"width": 390, "height": 844}
    page = open_page(alice, has_touch=True, is_mobile=True, viewport=phone)
    visit(page, "/t/qa/write/")
    assert page.evaluate("[scrollY, document.activeElement.tagName]") == [0, "BODY"]
    text, goal = page.locator(".read .text"), page.locator("#goal")
    lines = "one => one.clientHeight / parseFloat(getComputedStyle(one).lineHeight)"
    assert count_lines(text, lines) == 6
    assert box(text)["bottom"] < box(goal)["y"]
    assert box(goal)["bottom"] < phone["height"]  # in sight without a scroll
    page.locator("[data-unfold]").tap()
    assert count_lines(text, lines) > 12
    expect(page.locator("[data-unfold]")).to_be_hidden()
    plain = open_page(alice, java_script_enabled=False, viewport=phone)
    visit(plain, "/t/qa/write/")
    assert count_lines(plain.locator(".read .text"), lines) > 12


def count_lines(text: Locator, script: str) -> int:
    return round(text.evaluate(script))
