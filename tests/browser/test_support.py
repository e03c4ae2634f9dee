"""Help with writing: with JavaScript, without it, by keyboard; what was typed stays."""

import re

import pytest
from playwright.sync_api import expect

from annotation.models import Assignment, Example
from tests.browser.conftest import (
    ANSWERS,
    FOOLED,
    TEXTS,
    assign,
    audit,
    fill,
    make_round,
    next_button,
    open_ideas,
    submit_button,
    text_box,
    verdict,
    visit,
)
from tests.support.factories import scripted_target
from tests.support.programs import press_on
from tests.support.writing_aids import (
    MUSE,
    allow,
    earlier_round,
    generator,
    publish,
    worked_example,
)

BUTTON = "[name=want][value=examples]"


@pytest.fixture
def start(alice):
    """A task of which Alice has the first context, and others have fooled the model on the rest."""

    def start(code: str, **inputs) -> Assignment:
        round = make_round(code, contexts=4)
        scripted_target(round, **ANSWERS[code])
        earlier = earlier_round(round)
        for number, context in enumerate(earlier.contexts.order_by("pk")[1:]):
            example = worked_example(earlier, context=context)
            publish(example)
            written = {name: f"{text} {number}" for name, text in inputs.items()}
            Example.objects.filter(pk=example.pk).update(inputs=written)
        return assign(alice, round)

    return start


@pytest.mark.parametrize("javascript", [True, False], ids=["javascript", "plain"])
def test_examples_and_a_challenge_beside_what_was_typed(open_page, alice, start, javascript):
    assignment = start("nli", hypothesis="An idea of others")
    page = open_page(alice, java_script_enabled=javascript)
    page.goto("/t/nli/write/")
    text_box(page).fill(TEXTS["nli"])
    open_ideas(page)
    page.locator(BUTTON).click()
    heading = page.locator("#ideas h2")
    expect(heading).to_be_focused()
    expect(page.get_by_text(re.compile("An idea of others"))).to_have_count(3)
    expect(text_box(page)).to_have_value(TEXTS["nli"])
    page.get_by_label(re.compile("Challenge: ")).check()
    submit_button(page).click()
    expect(verdict(page)).to_have_class(FOOLED)
    example = Example.objects.latest("pk")
    assert example.challenge == assignment.challenge
    assert example.support == {"challenge": assignment.challenge, "examples": 3}


def test_by_keyboard_enter_in_the_answer_still_submits(page, start):
    start("qa", question="When was it?")
    visit(page, "/t/qa/write/")
    fill(page, "qa")
    open_ideas(page)
    press_on(page, page.locator(BUTTON), "Enter")
    expect(page.locator("#ideas h2")).to_be_focused()
    page.get_by_label("The answer", exact=True).press("Enter")
    expect(next_button(page)).to_be_focused()


def test_who_goes_on_at_once_keeps_the_focus(page, start):
    start("nli", hypothesis="An idea of others")
    visit(page, "/t/nli/write/")
    page.evaluate("""() => {
        const box = document.querySelector("#write-form textarea"), told = document.body.dataset;
        const goOn = () => Promise.resolve().then(() => box.focus());
        document.addEventListener("htmx:afterSwap", goOn);
        document.addEventListener("htmx:afterSettle", () => { told.settled = "yes"; });
    }""")
    open_ideas(page)
    page.locator(BUTTON).click()
    expect(page.locator("body[data-settled]")).to_be_visible()
    expect(text_box(page)).to_be_focused()


@pytest.mark.parametrize("code", ["nli", "hate-speech"])
def test_the_examples_are_accessible(page, start, code):
    field = {"nli": "hypothesis", "hate-speech": "text"}[code]
    start(code, **{field: "An idea of others"})
    visit(page, f"/t/{code}/write/")
    open_ideas(page)
    page.locator(BUTTON).click()
    expect(page.locator("#ideas h2")).to_be_focused()
    if code == "hate-speech":
        expect(page.get_by_text("An idea of others").first).to_be_hidden()
    audit(page)


@pytest.mark.parametrize("javascript", [True, False], ids=["javascript", "plain"])
def test_a_suggestion_is_edited(open_page, alice, start, javascript):
    assignment = start("nli", hypothesis="An idea of others")
    allow(assignment.round.task)
    generator(assignment.round.task)
    page = open_page(alice, java_script_enabled=javascript)
    page.goto("/t/nli/write/")
    text_box(page).fill("My own.")
    open_ideas(page)
    page.locator("[name=want][value=suggestion]").click()
    expect(page.locator("#suggestion h2")).to_be_focused()
    expect(text_box(page)).to_have_value("My own.")
    if javascript:
        audit(page)
    page.locator("#suggestion [value=edit]").click()
    expect(text_box(page)).to_be_focused()
    expect(text_box(page)).to_have_value(MUSE)
    page.reload()
    expect(text_box(page)).to_have_value(MUSE)
    text_box(page).fill(TEXTS["nli"])
    submit_button(page).click()
    expect(verdict(page)).to_have_class(FOOLED)
    assert Example.objects.latest("pk").support["suggestion"] == "edit"


def test_a_suggestion_is_used_or_ignored_and_one_that_fails_is_told(page, start):
    assignment = start("nli", hypothesis="An idea of others")
    allow(assignment.round.task)
    muse = generator(assignment.round.task)
    visit(page, "/t/nli/write/")
    open_ideas(page)
    ask = page.locator("[name=want][value=suggestion]")
    ask.click()
    page.locator("#suggestion [value=ignore]").click()
    expect(page.locator("#suggestion-ignored")).to_be_focused()
    audit(page)
    muse.options = {"fail": "refused"}
    muse.save()
    ask.click()
    expect(page.get_by_role("heading", name="No suggestion")).to_be_focused()
    audit(page)
    muse.options = {"output": {"hypothesis": MUSE}}
    muse.save()
    ask.click()
    page.locator("#suggestion [value=use]").click()
    expect(submit_button(page)).to_be_focused()
    page.keyboard.press("Enter")
    expect(verdict(page)).to_have_class(FOOLED)
    assert Example.objects.latest("pk").support["suggestion"] == "use"
