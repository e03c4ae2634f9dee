"""Every page, and what each swap brings, read by axe in light and dark, wide and narrow."""

import pytest
from django.core.cache import cache
from playwright.sync_api import expect

from annotation.models import Example
from core.accounts.models import confirm_address
from dynabench.communities.models import Community, CommunityTask
from evaluation.jobs import build_dataset
from evaluation.models import Dataset
from tasks.contexts import uploads
from tasks.models import Round, TaskMember
from tests.browser.conftest import (
    ANSWERS,
    FOOLED,
    answer_box,
    assign,
    audit,
    fill,
    make_round,
    next_button,
    submit,
    submit_button,
    text_box,
    verdict,
    visit,
)
from tests.support.arenas import compare, make_arena
from tests.support.boards import measured
from tests.support.evaluations import accepted_model, set_version
from tests.support.factories import UserFactory, scripted_target

pytestmark = pytest.mark.nightly("looks")

TASKS = ["nli", "qa", "hate-speech"]  # the fields of sentiment are of the types of nli's


@pytest.mark.parametrize("code", TASKS)
def test_the_write_page_in_all_its_states(page, alice, code):
    round = make_round(code, contexts=2)
    scripted_target(round, **ANSWERS[code])
    assign(alice, round)
    visit(page, f"/t/{code}/write/")
    audit(page)
    text_box(page).fill("Hm")
    submit_button(page).click()
    expect(page.locator("#error-summary")).to_be_focused()
    audit(page)
    fill(page, code)
    submit_button(page).click()
    expect(verdict(page)).to_have_class(FOOLED)
    audit(page)
    reason = page.locator("textarea[name^=why_]").first
    reason.fill("A" * 501)
    page.get_by_role("button", name="Save reason").click()
    expect(page.locator("#why .error-summary")).to_be_focused()
    audit(page)
    reason.fill("")
    page.get_by_label("negation").first.check()
    page.get_by_role("button", name="Save reason").click()
    expect(page.locator("#why-saved")).to_be_visible()
    if code != "qa":
        page.locator("#words").click()
        expect(page.locator("#words-title")).to_be_focused()
    audit(page)
    page.locator("#next").click()
    expect(text_box(page)).to_be_focused()
    expect(verdict(page)).to_have_count(0)
    audit(page)


def test_other_answers_to_a_submit(page, alice):
    round = make_round("qa", contexts=2)
    target = scripted_target(round, fail="down", **ANSWERS["qa"])
    assign(alice, round)
    visit(page, "/t/qa/write/")
    fill(page, "qa")
    submit_button(page).click()
    expect(page.locator("#failed h2")).to_be_focused()
    audit(page)
    target.options = ANSWERS["qa"]
    target.save()
    answer_box(page).fill("Ada")
    submit_button(page).click()
    expect(page.get_by_text("Which occurrence?")).to_be_visible()
    audit(page)
    answer_box(page).fill("mill in 1840")
    submit_button(page).click()
    expect(verdict(page)).to_be_focused()
    page.locator("#edit").click()
    expect(text_box(page)).to_be_focused()
    answer_box(page).fill("in 1840. The mill")
    text_box(page).fill("What stood there in which year?")
    submit_button(page).click()
    expect(verdict(page)).to_have_class("verdict undecided")
    audit(page)
    page.locator("[name=model_right][value=no]").click()
    expect(verdict(page)).to_have_class(FOOLED)
    expect(next_button(page)).to_be_focused()
    audit(page)


PAGES = {
    "home": "/?open=1",
    "practice": "/t/nli/try/",
    "task": "/t/nli/",
    "catches": "/t/nli/catches/",
    "sensitive task": "/t/hate-speech/",
    "gate": "/t/hate-speech/gate/",
    "help": "/help/",
    "status": "/status/",
    "numbers": "/help/numbers/",
    "account": "/account/",
    "report": "/context/{context}/report/",
    "result": "/attempt/{example}/",
    "retract": "/attempt/{example}/retract/",
}


def test_pages_of_a_signed_in_person(page, alice):
    make_round("hate-speech")
    round = make_round("nli")
    scripted_target(round, **ANSWERS["nli"])
    context = assign(alice, round).context
    visit(page, "/t/nli/write/")
    submit(page)
    example = Example.objects.get()
    for path in PAGES.values():
        visit(page, path.format(context=context.pk, example=example.uuid))
        audit(page)
    visit(page, PAGES["report"].format(context=context.pk))
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".error-summary")).to_be_focused()
    audit(page)
    page.get_by_role("radio").first.check()
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("heading", name="Report sent")).to_be_focused()
    audit(page)


ENTRANCES = {
    "/accounts/login/": ["nobody@example.com", "a wrong password"],
    "/accounts/signup/": ["nobody@example.com", "123"],
    "/accounts/password/reset/": ["nobody@nowhere"],
}
OWN_PAGES = [f"/accounts/{name}/" for name in ("password/change", "email", "2fa", "sessions")]


@pytest.mark.parametrize("path", ENTRANCES)
def test_entrances(open_page, transactional_db, path):
    page = open_page()
    visit(page, path)
    audit(page)
    boxes = page.locator("main form [type=email], main form [type=password]")
    for box, text in zip(boxes.all(), ENTRANCES[path], strict=True):
        box.fill(text)
    page.locator("main form button").first.click()
    expect(page.locator(".error-summary")).to_be_focused()
    audit(page)


def test_pages_about_ones_account(page):
    for path in OWN_PAGES:
        visit(page, path)
        audit(page)


def test_the_board_of_an_arena(page, transactional_db):
    task = make_arena("duel")
    visit(page, "/t/duel/arena/")
    audit(page)
    compare(task, "w1 a b left", "w2 b c tie", "w3 c a left", "w1 x y left")
    cache.clear()
    for path in ("/t/duel/arena/", "/t/duel/data/", "/leaderboards/"):
        visit(page, path)
        audit(page)


def test_pages_of_a_community(page, alice):
    made = Community.objects.create(slug="words", name="Words", text="# Aims", tracks=["small"])
    made.owners.add(alice)
    round = make_round("nli")
    CommunityTask.objects.create(community=made, task=round.task, state="in")
    model = accepted_model(round.task, alice, is_published=True)
    measured(model, set_version(round.task, may_leave=True), 0.8)
    made.posts.create(title="Hello", text="We *begin*.")
    for path in ("", "words/", "words/board/?w_nli=x", "words/submit/", "words/manage/"):
        visit(page, f"/communities/{path}")
        audit(page)
    page.get_by_role("button", name="Post news", exact=True).click()
    expect(page.locator(".error-summary")).to_be_focused()
    audit(page)


def test_pages_of_a_new_study(page, alice, settings):
    settings.NEW_TASKS = "everybody"
    confirm_address(alice)
    visit(page, "/new/study/")
    audit(page)
    page.locator("main form button").first.click()
    audit(page)
    page.locator("#create-study").click()
    expect(page.locator(".error-summary")).to_be_focused()
    audit(page)


def test_pages_of_a_new_task(page, alice, settings, monkeypatch, tmp_path):
    monkeypatch.setattr(uploads, "UPLOADS_FOLDER", tmp_path)
    settings.NEW_TASKS = "everybody"
    confirm_address(alice)
    for path in ("/new/", "/new/template/toxicity/"):
        visit(page, path)
        audit(page)
    page.get_by_role("button", name="Create task").click()
    expect(page.locator(".error-summary")).to_be_focused()
    audit(page)
    page.get_by_label("Name", exact=True).fill("Mine")
    page.get_by_label("Code", exact=True).fill("mine")
    page.get_by_role("button", name="Create task").click()
    audit(page)
    for path in ("/own/mine/delete/", "/own/mine/access/", "/own/mine/targets/new/"):
        visit(page, path)
        audit(page)
    visit(page, "/own/mine/access/invitations/")
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#error-summary")).to_be_focused()
    audit(page)
    page.locator("button[name=link]").click()
    expect(page.locator("#new-link")).to_be_focused()
    audit(page)
    key = page.locator("#key").inner_text().split("/")[-2]
    visit(page, f"/join/{key}/")
    audit(page)
    visit(page, "/own/mine/access/assignments/")
    page.get_by_role("button", name="Assign").click()
    expect(page.locator("#error-summary")).to_be_focused()
    audit(page)
    page.locator("[name$=everybody]").check()
    page.locator("[name$=amount]").fill("20")
    page.get_by_role("button", name="Assign").click()
    audit(page)
    visit(page, "/me/assignments/")
    audit(page)
    target = scripted_target(Round.objects.get(), label="toxic")
    for path in ("", f"{target.pk}/test/"):
        visit(page, f"/own/mine/targets/{path}")
        audit(page)
    visit(page, "/own/mine/rounds/1/contexts/")
    audit(page)
    rows = b"Comment,Topic,id\nThe shop opens at nine.,trade,1\n,none,2\n"
    file = {"name": "rows.csv", "mimeType": "text/csv", "buffer": rows}
    page.locator("[type=file]").set_input_files(file)
    page.locator("#look-through").click()
    expect(page.locator("#preview-title")).to_be_focused()
    audit(page)
    page.get_by_role("button", name="Import 1 new text").click()
    for desk in ("contexts", "rows"):
        visit(page, f"/own/mine/rounds/1/{desk}/")
        audit(page)


def test_pages_of_a_proposed_task(open_page, alice, settings):
    settings.NEW_TASKS = "approval"
    confirm_address(alice)
    page = open_page(alice)
    visit(page, "/new/template/toxicity/")
    page.get_by_role("button", name="Create task").click()
    expect(page.locator(".error-summary")).to_be_focused()
    audit(page)
    for label, text in {"Name": "Mine", "Code": "mine"}.items():
        page.get_by_label(label, exact=True).fill(text)
    page.get_by_role("button", name="Create task").click()
    audit(page)
    visit(page, "/own/mine/access/")
    audit(page)
    for label, text in {"Goal": "To learn.", "People": "My class."}.items():
        page.get_by_label(label, exact=True).fill(text)
    page.get_by_role("button", name="Request approval").click()
    audit(page)
    page = open_page(UserFactory(is_superuser=True))
    visit(page, "/new/proposals/")
    audit(page)
    page.get_by_role("link", name="Mine").click()
    audit(page)
    page.locator("#decide").click()
    expect(page.locator(".error-summary")).to_be_focused()
    audit(page)


def test_release_pages(page, alice, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    round = make_round("nli")
    TaskMember.objects.create(task=round.task, user=alice, role="owner")
    for number in range(6):
        Example.objects.create(
            round=round,
            context=round.contexts.first(),
            inputs={"hypothesis": f"It rains {number}.", "label": "neutral"},
            digest=str(number),
            outcome="not_fooled",
        )
    Round.objects.update(state="closed")
    visit(page, "/own/nli/rounds/1/release/")
    audit(page)
    page.get_by_label("Test", exact=True).fill("5")
    page.get_by_role("button", name="Release").click()
    expect(page.locator(".error-summary")).to_be_focused()
    audit(page)
    page.get_by_label("Test", exact=True).fill("0")
    page.get_by_role("button", name="Release").click()
    expect(page.get_by_role("heading", name="Version 1 is waiting")).to_be_focused()
    audit(page)
    build_dataset(Dataset.objects.get().pk)
    expect(page.get_by_role("heading", name="Released")).to_be_focused()
    audit(page)
    visit(page, "/t/nli/rounds/1/data/")
    audit(page)
