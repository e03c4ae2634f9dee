"""Fields beyond text and choices, by mouse, by keyboard and without a script."""

import re

import pytest
from playwright.sync_api import expect

from annotation.models import Example
from tasks.models import Round, Task
from tests.browser.conftest import audit, submit_button, text_box, verdict, visit
from tests.support.factories import ContextFactory, scripted_target

TASK = """
version: 1
name: How sure
instructions: Write.
goal: {text: Write something}
input:
  - {name: text, type: long_text, label: Your text}
  - {name: sure, type: slider, label: "How sure are you?", minimum: 0, maximum: 5, step: 0.5}
  - {name: label, type: multiclass, label: Your label, labels: ["yes", "no"]}
output: [label]
verdict: {type: exact_match, fields: [label]}
metrics: {main: accuracy}
"""


@pytest.fixture
def sure(alice):
    task = Task.objects.create(code="sure", name="How sure", config_text=TASK)
    round = Round.objects.create(task=task, number=1, state="open")
    ContextFactory(round=round, fields={})
    scripted_target(round, label="no")


def test_a_slider_and_its_number_say_the_same(sure, page):
    visit(page, "/t/sure/write/")
    slider, number = page.get_by_role("slider"), page.get_by_role("spinbutton")
    expect(slider).to_have_attribute("aria-label", re.compile("^How sure"))
    number.fill("4")
    expect(slider).to_have_value("4")
    slider.focus()
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    expect(number).to_have_value("2.5")
    audit(page)
    text_box(page).fill("Something.")
    page.get_by_label("yes").check()
    submit_button(page).click()
    expect(verdict(page)).to_be_visible()
    assert Example.objects.get().inputs["sure"] == 2.5


def test_without_a_script_a_slider_is_a_number(sure, alice, open_page):
    page = open_page(alice, java_script_enabled=False)
    visit(page, "/t/sure/write/")
    expect(page.locator("[type=range]")).to_be_hidden()
    page.get_by_role("spinbutton").fill("9")
    text_box(page).fill("Something.")
    page.get_by_label("yes").check()
    submit_button(page).click()
    expect(page.locator("#error-summary")).to_contain_text("at most 5")
    page.get_by_role("spinbutton").fill("0.5")
    submit_button(page).click()
    expect(verdict(page)).to_be_visible()
    assert Example.objects.get().inputs["sure"] == 0.5


OFFERS = ["By bus,\nat six.", "On foot."]
CANDIDATES = """
version: 1
name: Which way
instructions: Write.
goal: {text: Write something}
context:
  - {name: offers, type: candidates, label: Offers}
input:
  - {name: text, type: long_text, label: Your text}
  - {name: best, type: candidates, label: The best, reference: offers}
  - {name: order, type: candidates, label: Your order, reference: offers, rank: true}
output: [best]
verdict: {type: exact_match, fields: [best]}
metrics: {main: accuracy}
"""


@pytest.mark.parametrize("javascript", [True, False], ids=["script", "no-script"])
def test_candidates_are_chosen_and_ranked(javascript, alice, open_page):
    task = Task.objects.create(code="way", name="Which way", config_text=CANDIDATES)
    round = Round.objects.create(task=task, number=1, state="open")
    ContextFactory(round=round, fields={"offers": OFFERS})
    scripted_target(round, output={"best": OFFERS[1]})
    page = open_page(alice, java_script_enabled=javascript)
    page.set_viewport_size({"width": 320, "height": 640})
    visit(page, "/t/way/write/")
    if javascript:
        audit(page)
    text_box(page).fill("Something.")
    page.get_by_role("group", name="The best").get_by_label("By bus").check()
    ranking = page.get_by_role("group", name="Your order")
    ranking.get_by_label("By bus").select_option("2")
    ranking.get_by_label("On foot").select_option("1")
    submit_button(page).click()
    expect(verdict(page)).to_be_visible()
    inputs = Example.objects.get().inputs
    assert (inputs["best"], inputs["order"]) == (OFFERS[0], OFFERS[::-1])
