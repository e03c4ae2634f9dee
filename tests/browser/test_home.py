"""The first page: a try-out without an account, and for others what comes next."""

import re

import pytest
from playwright.sync_api import expect

from annotation.models import Example
from tests.browser.conftest import (
    ANSWERS,
    TEXTS,
    assign,
    audit,
    make_round,
    submit_button,
    text_box,
    verdict,
    visit,
)
from tests.support.factories import PASSWORD, scripted_target


@pytest.fixture
def tasks(transactional_db):
    for code in ("nli", "sentiment", "hate-speech"):
        scripted_target(make_round(code), name=code, **ANSWERS[code])


def test_strangers_try_out_and_sign_up(open_page, tasks):
    page = open_page()
    visit(page, "/")
    expect(page.locator(".task-row h3 a").last).to_have_text("hate-speech")
    audit(page)
    page.locator("#write-form [name=goal]").evaluate("one => { one.value = 'negative'; }")
    text_box(page).click()
    page.keyboard.press("Control+A")
    page.keyboard.type(TEXTS["sentiment"])
    submit_button(page).click()
    expect(verdict(page)).to_be_visible()
    assert not Example.objects.exists()
    audit(page)
    page.locator("form button#next").click()
    expect(page).to_have_url(re.compile("/accounts/signup/.*next=.*sentiment"))
    page.get_by_label("Email").fill("new@example.com")
    page.get_by_label("Password", exact=True).fill(f"{PASSWORD} 7")
    page.locator("#sign-up").click()
    expect(text_box(page)).to_have_value(TEXTS["sentiment"])
    expect(page.locator("#goal .goal")).to_contain_text("negative")
    submit_button(page).click()
    expect(verdict(page)).to_be_visible()
    assert Example.objects.get().goal == "negative"


def test_from_home_to_a_counted_example_in_six_taps(open_page, tasks):
    page = open_page()
    page.goto("/")
    taps = [
        page.get_by_role("link", name="Write for Sentiment"),
        page.get_by_label("Email"),
        page.get_by_label("Password", exact=True),
        page.locator("main form button").first,
        page.locator("[name^=text--]"),
        submit_button(page),
    ]
    typed = ["", "new@example.com", f"{PASSWORD} 7", "", TEXTS["sentiment"], ""]
    for tap, text in zip(taps, typed, strict=True):
        tap.click()
        if text:
            page.keyboard.press("Control+A")
            page.keyboard.type(text)
    expect(verdict(page)).to_be_visible()
    assert Example.objects.count() == 1


def test_others_go_on_where_they_were(page, alice):
    round = make_round("nli")
    scripted_target(round, **ANSWERS["nli"])
    assign(alice, round)
    visit(page, "/")
    audit(page)
    page.locator("#go-on-writing").click()
    expect(page).to_have_url(re.compile("/t/nli/write/$"))
