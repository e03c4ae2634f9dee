"""What a submit may meet, and that neither the text nor the focus is lost on the way."""

import re

import pytest
from django.contrib.sessions.models import Session
from django.utils import timezone
from playwright.sync_api import Page, expect

from annotation.models import Assignment, Example
from tasks.models import Round, TargetModel, Task
from tests.browser.conftest import (
    ANSWERS,
    TEXTS,
    assign,
    audit,
    fill,
    make_round,
    next_button,
    submit,
    submit_button,
    text_box,
    verdict,
)
from tests.support.factories import PASSWORD, scripted_target

TEXT = TEXTS["nli"]
WRITE = "/t/nli/write/"


@pytest.fixture
def nli(alice):
    round = make_round("nli", contexts=2)
    scripted_target(round, **ANSWERS["nli"])
    assign(alice, round)
    return round


def script(**options) -> None:
    """Change how the target answers."""
    TargetModel.objects.update(options={**ANSWERS["nli"], **options})


def submits(page: Page) -> list[str]:
    """A list that fills with the write page's POSTs."""
    posts: list[str] = []

    def note(request) -> None:
        if request.method == "POST" and request.url.endswith(WRITE):
            posts.append(request.url)

    page.on("request", note)
    return posts


def test_the_verdict_has_the_focus_and_says_itself_once(page, nli):
    html = page.goto(WRITE).text()
    assert html.count('id="status"') == 1
    page.evaluate("""() => {
        window.line = document.getElementById("status");
        window.said = [];
        new MutationObserver(() => window.said.push(window.line.textContent)).observe(
            window.line, {childList: true, characterData: true, subtree: true});
    }""")
    submit(page)
    expect(next_button(page)).to_be_focused()
    expect(page.locator("#progress")).to_contain_text("Tries: 1 of 10")
    *waiting, last = page.evaluate("window.said")
    assert last
    expect(page).to_have_title(re.compile(re.escape(last)))
    assert len(set(waiting)) <= 1  # the machine may be busy
    page.locator("#say-why").click()
    page.get_by_role("button", name="Save reason").click()
    expect(page.locator("#status")).to_have_text("Reason saved.")
    expect(page.get_by_role("button", name="Save reason")).to_be_focused()
    expect(page.locator("#why-saved")).to_be_in_viewport()
    page.locator("#next").click()
    expect(text_box(page)).to_be_focused()
    expect(page).not_to_have_title(re.compile(re.escape(last)))
    assert page.evaluate("window.line === document.getElementById('status')")


def test_the_goal_stays_until_another_is_asked_for(page, nli):
    page.goto(WRITE)
    goal = page.locator("#goal").inner_text()
    submit(page)
    expect(page.locator("#goal")).to_have_text(goal)
    page.locator(".more > summary").click()
    page.locator("#another-goal").click()
    expect(text_box(page)).to_be_focused()
    expect(page.locator("#goal")).not_to_have_text(goal)


def test_errors_are_summed_up_and_lead_to_their_fields(page, alice):
    round = make_round("hate-speech")
    assign(alice, round)
    page.goto("/t/hate-speech/write/")
    text_box(page).fill("Hm")
    submit_button(page).click()
    summary = page.locator("#error-summary")
    expect(summary).to_be_focused()
    expect(page).to_have_title(re.compile("^Error:"))
    links = summary.get_by_role("link")
    said = [
        text.removeprefix("Error:").strip()
        for text in page.locator(".field-error").all_inner_texts()
    ]
    assert links.all_inner_texts() == said
    assert len(said) == 3
    for link, field in zip(
        links.all(), ["textarea", "[type=radio]", "[name=hate_target]"], strict=True
    ):
        link.click()
        expect(page.locator(f"#write-form {field}").first).to_be_focused()
    submit(page, "hate-speech")
    expect(page).not_to_have_title(re.compile("^Error:"))
    expect(
        page.locator("#error-summary, .field-error, .field-invalid, [aria-invalid]")
    ).to_have_count(0)


def leave(page):
    Assignment.objects.update(left_at=timezone.now())


def use_up(page):
    task = Task.objects.get()
    task.config_text = task.config_text.replace("tries_per_context: 10", "tries_per_context: 1")
    task.save()
    submit(page)
    page.locator("#edit").click()
    text_box(page).fill("Jonas rides on Mondays.")


REFUSALS = {
    401: (lambda page: Session.objects.all().delete(), "#signed-out"),
    409: (leave, "#refused"),
    410: (lambda page: Round.objects.update(state="paused"), "#refused"),
    422: (lambda page: text_box(page).fill("Hm"), "#error-summary"),
    429: (use_up, "#refused"),
    503: (lambda page: script(fail="down"), "#failed"),
}


@pytest.mark.parametrize("status", REFUSALS)
def test_the_text_survives(page, nli, status):
    prepare, place = REFUSALS[status]
    page.goto(WRITE)
    text_box(page).fill(TEXT)
    prepare(page)
    text = text_box(page).input_value()
    with page.expect_response(re.compile(WRITE)) as response:
        submit_button(page).click()
    assert response.value.status == status
    expect(page.locator(place)).to_be_visible()
    expect(
        page.locator("#error-summary" if status == 422 else "#result [autofocus]")
    ).to_be_focused()
    expect(text_box(page)).to_have_value(text)
    expect(page.locator("input[type=password]")).to_have_count(0)
    audit(page)
    if status in (422, 429, 503):
        page.reload()
        expect(text_box(page)).to_have_value(text)


def test_waiting_is_said_until_any_answer_comes(page, nli):
    page.goto(WRITE)
    page.route(f"**{WRITE}", lambda route: (page.wait_for_timeout(1500), route.continue_()))
    text_box(page).fill("Hm")
    submit_button(page).click()
    expect(page.locator("#status")).to_have_text(
        page.locator("#write-form").get_attribute("data-waiting")
    )
    expect(page.locator("#error-summary")).to_be_visible()
    expect(page.locator("#status")).to_have_text("")


def test_the_text_survives_an_outage_of_the_network(page, nli):
    page.goto(WRITE)
    text_box(page).fill(TEXT)
    page.context.set_offline(True)
    submit_button(page).click()
    expect(page.get_by_role("alert")).to_be_visible()
    expect(text_box(page)).to_have_value(TEXT)
    page.context.set_offline(False)
    page.reload()
    expect(text_box(page)).to_have_value(TEXT)
    submit_button(page).click()
    expect(next_button(page)).to_be_focused()
    page.reload()
    page.get_by_role("button", name="Another passage").click()
    expect(text_box(page)).to_be_focused()
    expect(text_box(page)).to_have_value("")


def test_signed_out_in_between(page, nli):
    """Signing in again in a new tab is enough: the old page's form still works."""
    page.goto(WRITE)
    text_box(page).fill(TEXT)
    expect(page.locator("#draft-line")).to_contain_text("Draft saved")  # it has been sent
    Session.objects.all().delete()
    submit_button(page).click()
    with page.expect_popup() as popup:
        page.locator("#signed-out a[target]").click()
    tab = popup.value
    tab.get_by_label("Email").fill("alice@example.com")
    tab.get_by_label("Password", exact=True).fill(PASSWORD)
    tab.locator("main form button").first.click()
    expect(tab.locator("header .desk summary")).to_be_visible()
    submit_button(page).click()
    expect(next_button(page)).to_be_focused()
    assert Example.objects.get().inputs["hypothesis"] == TEXT


def test_a_fault_of_ours_gives_its_id(page, nli, monkeypatch, problems):
    monkeypatch.setattr("annotation.writing.views.ask_targets", None)
    page.goto(WRITE)
    fill(page, "nli")
    with page.expect_response(re.compile(WRITE)) as response:
        submit_button(page).click()
    request_id = response.value.header_value("x-request-id")
    expect(page.get_by_role("alert")).to_contain_text(request_id)
    expect(text_box(page)).to_have_value(TEXT)
    expect(submit_button(page)).to_be_focused()
    assert any("status of 500" in problem for problem in problems)
    problems.clear()


def test_from_an_attempts_own_page_one_goes_on_at_the_write_page(page, nli):
    page.goto(WRITE)
    submit(page)
    for button, text in (("#edit", TEXT), ("#next", "")):
        page.goto(f"/attempt/{Example.objects.get().uuid}/")
        expect(next_button(page)).to_be_focused()
        page.locator(button).click()
        expect(page).to_have_url(re.compile(f"{WRITE}$"))
        expect(text_box(page)).to_have_value(text)


@pytest.mark.parametrize("key", ["Enter", "Control+Enter"])
def test_twice_is_once(page, nli, model_calls, key):
    script(delay=1)
    page.goto(WRITE)
    posts = submits(page)
    fill(page, "nli")
    (submit_button(page) if key == "Enter" else text_box(page)).focus()
    page.keyboard.press(key)
    page.keyboard.press(key)
    expect(next_button(page)).to_be_focused()
    assert len(posts) == len(model_calls) == Example.objects.count() == 1


def test_the_button_stays_where_the_focus_is(page, nli):
    """While the target is asked, after the wait of the page, and when it answers at last."""
    script(delay=8)
    page.goto(WRITE)
    fill(page, "nli")
    button = submit_button(page)
    button.click()
    expect(page.locator("#status")).not_to_be_empty()
    expect(button).to_have_attribute("aria-disabled", "true")
    expect(page.locator("#write-form")).to_have_attribute("aria-busy", "true")
    assert not button.evaluate("button => button.disabled")
    expect(button).to_be_focused()
    expect(page.get_by_role("heading", name="Still waiting")).to_be_visible()
    expect(button).to_be_focused()
    expect(button).not_to_have_attribute("aria-disabled", "true")
    expect(page.locator("#status")).to_contain_text("Still waiting")
    expect(next_button(page)).to_be_focused()
    expect(page.get_by_role("heading", name="Still waiting")).to_have_count(0)
    page.reload()
    expect(text_box(page)).to_have_value("")


def test_a_target_that_never_answers(page, nli, settings):
    settings.LIVE_WAIT_SECONDS, settings.LIVE_DEADLINE_SECONDS = 1, 4
    script(delay=60)
    page.goto(WRITE)
    fill(page, "nli")
    submit_button(page).click()
    expect(page.get_by_role("heading", name="Still waiting")).to_be_visible()
    audit(page)
    expect(page.locator("#failed h2")).to_be_focused()
    expect(text_box(page)).to_have_value(TEXT)
    assert not Example.objects.exists()


def test_a_target_that_is_down_costs_no_try(page, nli):
    script(fail="down")
    page.goto(WRITE)
    fill(page, "nli")
    submit_button(page).click()
    expect(page.locator("#failed h2")).to_be_focused()
    expect(page.locator("#progress")).to_contain_text("Try 1 of 10")
    script()
    submit_button(page).click()
    expect(next_button(page)).to_be_focused()
    expect(page.locator("#progress")).to_contain_text("Tries: 1 of 10")


def submit_with_a_draft_on_its_way(page):
    """The drafts that were sent before the verdict came, all held up."""
    held = []
    page.route("**/draft/**", lambda route: held.append(route))
    page.goto(WRITE)
    with page.expect_request("**/draft/**"):
        fill(page, "nli")
    submit_button(page).click()
    expect(next_button(page)).to_be_focused()
    return held


def test_a_draft_on_its_way_does_not_swallow_the_submit(page, nli):
    held = submit_with_a_draft_on_its_way(page)
    assert len(held) == 1
    held[0].continue_()
    expect(page.locator("#draft-line")).to_contain_text("Draft saved")
    assert Example.objects.count() == 1


def test_what_was_submitted_is_no_draft(page, nli):
    page.goto(WRITE)
    submit(page)
    page.wait_for_timeout(2500)  # drafts wait for 1.5 s
    assert Assignment.objects.get().draft == {}


def test_a_draft_may_come_back_to_an_exchanged_form(page, nli):
    held = submit_with_a_draft_on_its_way(page)
    page.locator("#edit").click()
    expect(text_box(page)).to_be_focused()
    with page.expect_response("**/draft/**"):
        held[0].continue_()
    expect(text_box(page)).to_be_focused()


def test_a_draft_that_cannot_be_saved_does_not_disturb(page, nli):
    page.goto(WRITE)
    Session.objects.all().delete()
    with page.expect_response("**/draft/**") as draft:
        text_box(page).fill(TEXT)
    assert draft.value.status == 401
    expect(page.locator("#draft-line")).to_have_text("")
    expect(text_box(page)).to_be_focused()


def test_without_javascript_a_slow_answer_comes_too(open_page, alice, nli, settings):
    settings.LIVE_WAIT_SECONDS = 1
    script(delay=3)
    page = open_page(alice, java_script_enabled=False)
    page.goto(WRITE)
    fill(page, "nli")
    submit_button(page).click()
    expect(page.get_by_role("heading", name="Still waiting")).to_be_visible()
    expect(verdict(page)).to_be_visible()
    expect(page).to_have_url(re.compile("/attempt/"))


def test_signing_out_leaves_no_draft_on_the_machine(page, nli):
    page.goto(WRITE)
    text_box(page).fill(TEXT)
    expect(page.locator("#draft-line")).to_contain_text("Draft saved")
    assert page.evaluate("Object.keys(localStorage)") != []
    page.locator("[data-signs-out] button").first.evaluate("button => button.click()")
    expect(page.get_by_role("link", name="Sign in").first).to_be_attached()
    assert page.evaluate("Object.keys(localStorage)") == []
