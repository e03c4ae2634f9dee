"""Write, learn the verdict, say why, go on: each task with JavaScript, without it, by keyboard."""

import re

import pytest
from playwright.sync_api import expect

from annotation.models import Assignment, Example
from tests.browser.conftest import (
    ANSWERS,
    FOOLED,
    PASSAGE,
    TEXTS,
    answer_box,
    assign,
    fill,
    make_round,
    next_button,
    submit_button,
    text_box,
    verdict,
)
from tests.support.factories import PASSWORD, scripted_target
from tests.support.programs import press_on, tab_to

TASKS = ["nli", "qa", "sentiment", "hate-speech"]
INPUTS = {
    "nli": {"hypothesis": TEXTS["nli"], "label": "neutral"},
    "qa": {
        "question": TEXTS["qa"],
        "answer": {
            "text": "1850",
            "start": PASSAGE.index("1850"),
            "end": PASSAGE.index("1850") + 4,
        },
    },
    "sentiment": {"text": TEXTS["sentiment"], "label": "negative"},
    "hate-speech": {
        "text": TEXTS["hate-speech"],
        "label": "hate",
        "hate_type": "animosity",
        "hate_target": ["a national group"],
    },
}


@pytest.fixture
def start(alice):
    """An open round with two contexts, and the first of them given to Alice."""

    def start(code: str) -> Assignment:
        round = make_round(code, contexts=2)
        scripted_target(round, **ANSWERS[code])
        return assign(alice, round)

    return start


@pytest.mark.parametrize("javascript", [True, False], ids=["javascript", "plain"])
@pytest.mark.parametrize("code", TASKS)
def test_write_verdict_why_next(open_page, alice, start, code, javascript):
    first = start(code)
    page = open_page(alice, java_script_enabled=javascript)
    page.goto(f"/t/{code}/")
    page.locator("#doors").get_by_role("link", name="Write").click()
    fill(page, code)
    submit_button(page).click()
    expect(verdict(page)).to_have_class(FOOLED)
    expect(next_button(page)).to_be_focused()
    example = Example.objects.get()
    assert (example.outcome, example.inputs) == ("fooled", INPUTS[code])
    page.locator("#say-why").click()
    page.get_by_label("negation").first.check()
    page.get_by_role("button", name="Save reason").click()
    expect(page.locator("#why-saved")).to_be_visible()
    expect(page.get_by_label("negation").first).to_be_checked()
    example.refresh_from_db()
    assert example.metadata == {"why_right": ["negation"]}
    page.locator("#next").click()
    expect(verdict(page)).to_have_count(0)
    now = Assignment.objects.get(left_at__isnull=True)
    assert now.context_id != first.context_id
    expect(page).to_have_url(re.compile(f"/t/{code}/write/$"))


@pytest.mark.parametrize("code", ["nli", "qa", "hate-speech"])  # sentiment's fields are nli's
def test_by_keyboard_alone(page, start, code):
    start(code)
    page.goto(f"/t/{code}/write/")
    if code == "qa":
        tab_to(page, page.locator("#passage"))
        for key in ["ArrowLeft"] + ["ArrowRight"] * 14 + ["Enter"]:
            page.keyboard.press(key)
        expect(answer_box(page)).to_have_value("1850")
    tab_to(page, text_box(page))
    page.keyboard.press("Control+A")
    page.keyboard.type(TEXTS[code])
    if code == "hate-speech":
        press_on(page, page.get_by_label("Threatening"), "ArrowUp")
        expect(page.get_by_label("Animosity")).to_be_checked()
        press_on(page, page.get_by_label("a national group"), "Space")
    press_on(page, submit_button(page), "Enter")
    expect(next_button(page)).to_be_focused()
    assert Example.objects.get().inputs == INPUTS[code]
    press_on(page, page.locator("#why summary"), "Enter")
    press_on(page, page.get_by_label("negation").first, "Space")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#why-saved")).to_be_visible()
    expect(page.get_by_role("button", name="Save reason")).to_be_focused()
    press_on(page, page.locator("#retract"), "Enter")
    expect(page.locator("#retract")).to_have_count(0)
    expect(next_button(page)).to_be_focused()
    expect(page.locator("#withdrawn")).to_be_visible()
    press_on(page, page.locator("#next"), "Enter")
    expect(text_box(page)).to_be_focused()
    example = Example.objects.get()
    assert example.retracted_at
    assert example.metadata == {"why_right": ["negation"]}


def test_without_javascript_errors_and_the_two_places(open_page, alice, start):
    start("qa")
    page = open_page(alice, java_script_enabled=False)
    page.goto("/t/qa/write/")
    submit_button(page).click()
    expect(page.locator("#error-summary")).to_be_focused()
    expect(page).to_have_title(re.compile("^Error:"))
    text_box(page).fill(TEXTS["qa"])
    answer_box(page).fill("Ada")
    submit_button(page).click()
    page.get_by_label("[Ada] left Tarn").check()
    submit_button(page).click()
    expect(verdict(page)).to_be_visible()
    assert Example.objects.get().inputs["answer"]["start"] == PASSAGE.rindex("Ada")


def test_without_javascript_retract_asks_on_a_page(open_page, alice, start):
    start("nli")
    page = open_page(alice, java_script_enabled=False)
    page.goto("/t/nli/write/")
    fill(page, "nli")
    submit_button(page).click()
    page.locator("#retract").click()
    expect(page.locator("#retract-title")).to_be_visible()
    page.locator("#withdraw").click()
    expect(page.locator("#retract")).to_have_count(0)


@pytest.mark.parametrize("javascript", [True, False], ids=["javascript", "plain"])
def test_try_it_then_sign_up_and_go_on(open_page, transactional_db, javascript):
    scripted_target(make_round("nli"), **ANSWERS["nli"])
    page = open_page(java_script_enabled=javascript)
    page.goto("/t/nli/try/")
    fill(page, "nli")
    submit_button(page).click()
    expect(next_button(page)).to_be_focused()
    assert not Example.objects.exists()
    page.locator("#next").click()
    page.get_by_label("Email").fill("new@example.com")
    page.get_by_label("Password", exact=True).fill(f"{PASSWORD} 7")
    page.locator("main form button").first.click()
    expect(page).to_have_url(re.compile("/t/nli/write/$"))
    expect(text_box(page)).to_have_value("")  # practice leads to no text that counts


def test_sign_in_and_out_by_the_form(open_page, alice):
    page = open_page()
    page.goto("/account/")
    expect(page).to_have_url(re.compile(r"/accounts/login/\?next="))
    page.get_by_label("Email").fill("alice@example.com")
    page.get_by_label("Password", exact=True).fill("wrong")
    page.locator("main form button").first.click()
    expect(page.locator(".error-summary")).to_be_focused()
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.locator("main form button").first.click()
    expect(page.locator("#switch-ranking")).to_be_visible()
    page.locator("header .desk summary").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("link", name="Sign in")).to_be_visible()
