"""A task put together at 320 px by keyboard and by dragging; every step under axe."""

import re

import pytest
from playwright.sync_api import expect

from tasks.making.outline import parse_data
from tasks.models import Task, TaskDraft
from tests.browser.conftest import audit
from tests.support.factories import UserFactory


@pytest.fixture
def page(open_page, transactional_db, settings):
    settings.NEW_TASKS, settings.ACCOUNT_EMAIL_VERIFICATION = "everybody", "none"
    page = open_page(UserFactory(), viewport={"width": 320, "height": 800})
    page.goto("/new/")
    return page


def look(page):
    """Light and dark; then narrow again."""
    audit(page, ("light", 320), ("dark", 320))
    page.set_viewport_size({"width": 320, "height": 800})


def press(page, name):
    """A button by the keyboard alone."""
    page.get_by_role("button", name=name, exact=True).focus()
    page.keyboard.press("Enter")


def add(page, label, kind, place):
    page.get_by_label("Label", exact=True).fill(label)
    page.locator("#id_type").select_option(kind)
    page.locator("#id_place").select_option(place)
    page.get_by_label("Label", exact=True).press("Enter")
    expect(page.get_by_role("heading", name=label, exact=True)).to_be_visible()


def order():
    data = parse_data(TaskDraft.objects.get().text)
    return [[one["name"] for one in data.get(place, ())] for place in ("context", "input")]


def test_a_task_by_keyboard_and_by_dragging(page):
    page.locator("#start-scratch").press("Enter")
    page.get_by_label("Name", exact=True).fill("Ferries")
    page.locator("[name=goal_text]").fill("Write of a ferry")
    frame = page.frame_locator("iframe.preview")
    expect(frame.locator("#goal")).to_contain_text("Write of a ferry")  # follows the typing
    look(page)
    page.get_by_label("Name", exact=True).press("Enter")

    add(page, "Mood", "multiclass", "input")
    page.locator("[name=labels-0-value]").fill("glad")
    page.locator("[name=labels-0-colour]").select_option("teal")
    page.locator("[name=labels-1-value]").fill("sad")
    page.locator("[name=is_answer]").check()
    page.locator("#preview-write").press("Enter")
    expect(frame.locator("[class=colour-teal]")).to_be_visible()
    look(page)
    page.locator("#save-field").press("Enter")
    add(page, "Review", "long_text", "input")
    page.locator("#save-field").press("Enter")
    assert order() == [[], ["mood", "review"]]
    press(page, "Move Review up")
    expect(page.get_by_role("button", name="Move Mood up", exact=True)).to_be_enabled()
    assert order() == [[], ["review", "mood"]]
    expect(page.locator(".field-row a").first).to_be_focused()
    add(page, "Topic", "text", "input")
    page.locator("#save-field").press("Enter")
    page.locator("[data-field='input:2']").drag_to(page.locator("[data-place^=context]"))
    expect(page.locator("[data-field='context:0']")).to_be_visible()
    assert order() == [["topic"], ["review", "mood"]]
    look(page)
    for step in ("Winning and ranking", "Instructions", "Judging", "Limits", "Publish"):
        press(page, step)
        expect(page.locator(".stepper [aria-current]")).to_have_text(step)
        look(page)
    page.get_by_label("Code", exact=True).fill("ferries")
    page.get_by_label("Code", exact=True).press("Enter")
    expect(page).to_have_url(re.compile("/own/ferries/$"))
    assert Task.objects.get().config.text_field == "review"


def test_what_is_typed_before_the_script_has_come_is_previewed(page):
    script = []
    page.route("**/js/wizard*.js", lambda route: script.append(route))  # a slow network
    page.locator("#start-scratch").click(no_wait_after=True)
    page.get_by_label("Name", exact=True).fill("Ferries")
    page.locator("[name=goal_text]").fill("Write of a ferry")
    script[0].continue_()
    expect(page.frame_locator("iframe.preview").locator("#goal")).to_contain_text(
        "Write of a ferry"
    )


def test_a_pause_while_typing_makes_nothing(page):
    page.locator("#start-scratch").press("Enter")
    page.get_by_label("Name", exact=True).fill("Ferries")
    page.locator("#save-step").press("Enter")
    add(page, "Review", "text", "input")
    press(page, "Publish")

    def is_preview(response):
        return response.url.endswith("/finish/") and response.request.method == "POST"

    for field in ("name", "code"):
        with page.expect_response(is_preview) as previewed:
            page.locator(f"[name={field}]").fill("ferries")
        assert previewed.value.status == 200
    assert TaskDraft.objects.exists()
    assert not Task.objects.exists()
