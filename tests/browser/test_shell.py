"""What holds for all pages: keys, policy, weight, zoom, motion, colours, the gate."""

import gzip
import re

import pytest
from playwright.sync_api import Page, expect

from tasks.models import TargetModel
from tests.browser.conftest import (
    ANSWERS,
    FOOLED,
    TEXTS,
    assign,
    audit,
    fill,
    make_round,
    submit,
    submit_button,
    text_box,
    verdict,
)
from tests.support.factories import scripted_target

WRITE = "/t/nli/write/"


@pytest.fixture
def nli(alice):
    round = make_round("nli", contexts=2)
    scripted_target(round, **ANSWERS["nli"])
    assign(alice, round)
    return round


def test_single_keys_wait_for_keyboard_mode(page, nli):
    page.goto(WRITE)
    passage = page.locator("section.context").inner_text()
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("n")
    page.keyboard.press("?")
    page.goto("/help/")  # had a key done something, this would not be the next page
    page.locator("#switch-keyboard").click()
    expect(page.locator("#switch-keyboard")).to_be_visible()

    page.goto(WRITE)
    expect(page.locator("section.context")).to_have_text(passage, use_inner_text=True)
    text_box(page).focus()
    page.keyboard.type("n we?")
    expect(text_box(page)).to_have_value("n we?")
    expect(page.locator("section.context")).to_have_text(passage, use_inner_text=True)
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("n")
    expect(text_box(page)).to_be_focused()
    expect(page.locator("section.context")).not_to_have_text(passage, use_inner_text=True)
    submit(page)
    page.keyboard.press("e")
    expect(text_box(page)).to_be_focused()
    expect(text_box(page)).to_have_value(TEXTS["nli"])
    page.evaluate("document.activeElement.blur()")
    text_box(page).fill("Not finished.")
    page.locator("#submit").focus()
    page.keyboard.press("?")
    overlay = page.get_by_role("dialog")
    expect(overlay).to_be_visible()
    page.keyboard.press("n")  # no key of the page below
    page.keyboard.press("Escape")
    expect(overlay).to_have_count(0)
    expect(page.locator("#submit")).to_be_focused()
    expect(text_box(page)).to_have_value("Not finished.")


def test_the_counter_speaks_near_the_limit(page, nli):
    page.goto(WRITE)
    text_box(page).fill("A" * 212)
    expect(page.locator("#counter")).to_have_text("212 of 300 characters")
    expect(page.locator("#status")).to_have_text("")
    text_box(page).fill("🐀" * 270)
    expect(page.locator("#status")).to_have_text("270 of 300 characters")
    text_box(page).fill("A" * 301)
    expect(text_box(page)).to_have_value("A" * 301)


def test_policy_and_weight_of_the_write_page(page, nli):
    """The watch of `open_page` adds: nothing breaks the policy, nothing comes from elsewhere."""
    responses = []
    page.on("response", lambda response: responses.append(response))
    policy = page.goto(WRITE).header_value("content-security-policy")
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    expect(page.locator("#counter")).not_to_be_empty()
    sent = [response.body() for response in responses if "/fonts/" not in response.url]
    weight = sum(len(gzip.compress(body)) for body in sent)
    assert len(responses) >= 5
    assert weight <= 60_000


def test_filters_of_the_task_list(page, nli):
    make_round("hate-speech")
    page.goto("/")
    expect(page.locator("#tasks .task-row")).to_have_count(2)
    page.locator("[name=mild]").check()
    expect(page.locator("#tasks .task-row")).to_have_count(1)
    expect(page.locator("#status")).to_have_text("1 task")
    expect(page).to_have_url(re.compile("mild=1"))
    page.locator("#q").fill("nothing like it")
    expect(page.locator("#tasks .empty")).to_be_visible()
    audit(page)
    page.get_by_role("link", name="Clear filters").click()
    expect(page.locator("#tasks .task-row")).to_have_count(2)


def test_a_sensitive_task_shows_nothing_unasked(page, alice):
    round = make_round("hate-speech")
    shown = [
        case.input["text"]
        for case in (*round.task.config.examples.good, *round.task.config.examples.bad)
        if case.input["label"] == "hate"
    ]
    page.goto("/t/hate-speech/")
    for text in shown:
        expect(page.get_by_text(text)).to_have_count(1)
        expect(page.get_by_text(text)).to_be_hidden()
    page.locator("#doors").get_by_role("link", name="Write").click()
    expect(page).to_have_url(re.compile("/gate/"))
    assert "Zorbians" not in page.locator("main").inner_text()
    for example in round.task.config.content_warning.examples:
        expect(page.get_by_text(example.text)).to_have_count(1)
        expect(page.get_by_text(example.text)).to_be_hidden()
    page.locator("#pass-gate").click()
    expect(text_box(page)).to_have_value(re.compile("Zorbians"))
    assign(alice, round)
    page.reload()
    submit(page, "hate-speech")
    page.reload()
    earlier = page.locator("#history")
    expect(earlier.get_by_text(TEXTS["hate-speech"])).to_be_hidden()
    earlier.locator("> details > summary").click()
    expect(earlier.get_by_text(TEXTS["hate-speech"])).to_be_hidden()
    earlier.locator(".shield summary").click()
    expect(earlier.get_by_text(TEXTS["hate-speech"])).to_be_visible()


MOVING = """[...document.querySelectorAll("*")].flatMap(element =>
    [null, "::before", "::after"].map(part => [element, getComputedStyle(element, part)]))
    .filter(([, style]) => style.animationName !== "none" && parseFloat(style.animationDuration) > 0
        || Math.max(...style.transitionDuration.split(",").map(parseFloat)) > 0)
    .map(([element]) => element.outerHTML.slice(0, 100))"""


def test_the_menu_of_a_phone(open_page, alice, nli):
    page = open_page(alice, viewport={"width": 320, "height": 700})
    page.goto("/")
    page.get_by_text("Menu", exact=True).click()
    # The menu ends somewhere above the filters, and half a box would be a small target.
    page.locator("search").evaluate("one => { one.hidden = true; }")
    audit(page, menus=True)
    page.set_viewport_size({"width": 320, "height": 700})
    page.get_by_role("link", name="My work").click()
    expect(page).to_have_url(re.compile("/me/$"))


def test_reduced_motion_and_forced_colours(open_page, alice, nli):
    page = open_page(alice, reduced_motion="reduce", forced_colors="active")
    TargetModel.objects.update(options={**ANSWERS["nli"], "delay": 2})
    page.goto(WRITE)
    fill(page, "nli")
    submit_button(page).click()
    expect(submit_button(page)).to_have_attribute("aria-disabled", "true")
    assert page.evaluate(MOVING) == []
    expect(verdict(page)).to_have_class(FOOLED)
    assert page.evaluate(MOVING) == []
    border = verdict(page).evaluate("title => getComputedStyle(title).borderInlineStartStyle")
    assert border == "double"  # solid when the model was right


# The distances of WCAG 2.2, 1.4.12.
SPACING = """* { line-height: 1.5 !important; letter-spacing: .12em !important;
    word-spacing: .16em !important; } p { margin-block-end: 2em !important; }"""
CLIPPED = """[...document.querySelectorAll("main *, header *, footer *")].filter(element => {
    const style = getComputedStyle(element), box = element.getBoundingClientRect();
    const rows = ".tabs ul, .tabs ul *, .pills, .pills *";  // they scroll by themselves
    const apart = `.visually-hidden, #status, .table-scroll, .table-scroll *, svg, svg *, ${rows}`;
    if (!box.width || element.matches(apart)) return false;
    const cuts = style.overflowX !== "visible" && element.scrollWidth > element.clientWidth + 1
        || !["visible", "auto"].includes(style.overflowY)
            && element.scrollHeight > element.clientHeight + 1;
    return cuts || box.right > window.innerWidth + 1;
}).map(element => element.outerHTML.slice(0, 120))"""


def check_free_space(page: Page) -> None:
    assert page.evaluate(CLIPPED) == []
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


@pytest.mark.parametrize("code", ["nli", "qa", "hate-speech"])
def test_zoomed_and_spaced_out_nothing_is_clipped(open_page, alice, code):
    """Zoom of 200 % is a page of half the width; 320 px is one of 400 %."""
    round = make_round(code)
    scripted_target(round, **ANSWERS[code])
    assign(alice, round)
    page = open_page(alice, bypass_csp=True, viewport={"width": 640, "height": 400})
    page.goto(f"/t/{code}/write/")
    for width in (640, 320):
        page.set_viewport_size({"width": width, "height": 400})
        check_free_space(page)
    page.add_style_tag(content=SPACING)
    check_free_space(page)
    submit(page, code)
    check_free_space(page)
    page.set_viewport_size({"width": 1280, "height": 800})
    check_free_space(page)


def test_times_are_written_as_days_in_charts_are(page, nli):
    page.goto("/help/")
    page.evaluate("""() => {
        const one = document.createElement("time");
        Object.assign(one, { id: "one", dateTime: "2026-11-23T12:00Z" }).dataset.local = "both";
        document.body.append(one);
        htmx.trigger(document.body, "htmx:afterSettle", { elt: document.body });
    }""")
    expect(page.locator("#one")).to_have_text(re.compile(r"^2[34] Nov 2026, \d\d:00$"))


def test_the_style_guide(open_page, settings):
    settings.DEBUG = True
    page = open_page()
    page.goto("/styleguide/")
    audit(page)
