"""Submitting a model in a browser, from the file to its scores; and all of its pages under axe."""

import re
import zipfile

import pytest
from playwright.sync_api import Page, expect

from evaluation.api import uploads
from evaluation.models import NearCopy, Submission, Upload
from evaluation.submissions import intake
from evaluation.submissions.teams.services import invite_member, make_team
from tests.browser.conftest import audit, make_round, visit
from tests.support.evaluations import ScriptedRunner, run_with, without_deltas
from tests.support.factories import UserFactory
from tests.support.serving_models import tiny_model
from tests.support.submissions import (
    answered,
    make_set,
    release_of,
    scored,
    submission_of,
    work_off,
)

PIECE = 256 * 1024


@pytest.fixture
def task(alice, settings, tmp_path):
    settings.MEDIA_ROOT, settings.MODEL_CACHE = tmp_path / "media", tmp_path / "cache"
    return make_round("nli").task


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """A model of random weights as people pack it."""
    folder = tiny_model(tmp_path_factory.mktemp("tiny"), "pair-classification")
    path = folder.parent / "tiny.zip"
    with zipfile.ZipFile(path, "w") as file:
        for each in folder.iterdir():
            file.write(each, each.name)
    return path


def fill(page: Page, archive) -> None:
    visit(page, "/t/nli/submit/")
    page.locator("a[href$='kind=directory']").click()
    page.locator("[name=name]").fill("Tiny, seed 0")
    page.get_by_label("File").set_input_files(archive)


def hand_in(page: Page) -> None:
    page.get_by_role("button", name="Submit model", exact=True).click()


def test_from_the_file_to_the_scores(page, task, archive, monkeypatch):
    """A real model in a process goes the same way in tests/integration/test_client.py."""
    scripted = ScriptedRunner()
    monkeypatch.setattr(intake, "_choose_runner", lambda *_: scripted)
    run_with(monkeypatch, scripted)
    monkeypatch.setattr(uploads, "PIECE_BYTES", PIECE)
    without_deltas(task, "robustness")
    make_set(task, "open", may_leave=True)
    fill(page, archive)
    hand_in(page)
    expect(page.get_by_role("heading", name="Tiny, seed 0")).to_be_focused()
    expect(page.locator("#job[data-state=received]")).to_be_visible()
    work_off()
    assert Submission.objects.get().error == ""
    expect(page.locator("#publish")).to_be_visible()
    expect(page.locator("#job")).not_to_have_attribute("hx-trigger", re.compile("."))
    page.locator(".set-results > summary").first.click()
    expect(page.get_by_role("region", name="Scores on open v1")).to_contain_text("95% CI")
    page.locator("summary", has_text="Perturbed: robustness").last.click()
    audit(page)
    page.get_by_role("button", name="Publish").click()
    expect(page.locator(".messages")).to_be_visible()
    visit(page, "/t/nli/models/")
    expect(page.get_by_role("link", name="Tiny, seed 0")).to_be_visible()


def test_an_upload_goes_on_where_it_was(page, task, archive, monkeypatch, problems):
    monkeypatch.setattr(uploads, "PIECE_BYTES", PIECE)
    fill(page, archive)
    held = re.compile(rf"offset={2 * PIECE}$")
    page.route(held, lambda route: route.abort())  # the third piece never gets through
    with page.expect_event("requestfailed"):
        hand_in(page)
    again = page.context.new_page()
    page.close()
    problems.clear()
    assert Upload.objects.get().pieces.count() == 2
    sent: list[str] = []
    again.on("request", lambda one: sent.append(one.url) if one.method == "PUT" else None)
    fill(again, archive)
    hand_in(again)
    expect(again.get_by_role("heading", name="Tiny, seed 0")).to_be_focused()
    assert sent[0].endswith(f"offset={2 * PIECE}")
    upload = Submission.objects.get().upload
    assert sum(piece.size for piece in upload.pieces.all()) == archive.stat().st_size
    assert Upload.objects.count() == 1


def test_without_javascript(open_page, alice, task, archive):
    page = open_page(alice, java_script_enabled=False)
    fill(page, archive)
    hand_in(page)
    expect(page.get_by_role("heading", name="Tiny, seed 0", level=1)).to_be_visible()
    assert Submission.objects.get().upload.size == archive.stat().st_size
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#job[data-state=cancelled]")).to_be_visible()


def test_a_file_that_is_not_taken_says_why(page, task, archive, settings):
    settings.LARGEST_UPLOAD_BYTES = 1000
    fill(page, archive)
    hand_in(page)
    expect(page.locator("#upload-state")).not_to_be_empty()
    assert not Submission.objects.exists()


KINDS = ("directory", "image", "hub", "llm", "predictions", "endpoint")


def test_pages_of_submissions(page, alice, task):
    version = make_set(task, "open", may_leave=True)
    visit(page, "/t/nli/models/")
    audit(page)
    visit(page, "/t/nli/submit/")
    audit(page)
    for kind in KINDS:
        visit(page, f"/t/nli/submit/?kind={kind}")
        hand_in(page)
        expect(page.locator(".error-summary")).to_be_focused()
        audit(page)
    model = submission_of(task, alice, state="done", outcome="ok", is_published=True)
    run = scored(model, version)
    answered(run, *["neutral"] * 6)
    release_of(version)
    scored(model, version, "robustness", accuracy_before=0.5, drop=0.25, consistency=0.5)
    refused = submission_of(task, alice, state="failed", error="Line 2: wrong.", log="Loading")
    like = scored(submission_of(task, UserFactory(), state="done", is_published=True), version)
    counts = {"n": 6, "equal": 6, "expected": 2, "both_wrong": 6, "equal_wrong": 6}
    NearCopy.objects.create(run=run, other=like, **counts)
    team = make_team(actor=alice, name="Lab")
    invite_member(team=team, actor=alice, email="mate@example.com")
    for path in (
        "/me/teams/", f"/me/teams/{team.pk}/",
        f"/m/{model.pk}/", f"/m/{model.pk}/card/", f"/m/{model.pk}/withdraw/",
        f"/m/{model.pk}/runs/{run.pk}/", f"/m/{model.pk}/runs/{run.pk}/wrong/",
        f"/m/{refused.pk}/", "/t/nli/models/", "/me/models/",
    ):  # fmt: skip
        visit(page, path)
        audit(page)
    visit(page, f"/m/{model.pk}/withdraw/")
    page.get_by_role("button", name="Withdraw").click()
    expect(page.get_by_role("heading", name="withdrawn", level=1)).to_be_focused()
    audit(page)


def test_what_has_the_focus_is_not_swapped_away(page, alice, task):
    waiting = submission_of(task, alice)
    asked: list[str] = []
    page.on("request", lambda one: asked.append(one.url) if "seen=" in one.url else None)
    page.clock.install()
    visit(page, f"/m/{waiting.pk}/")
    look_again = page.get_by_role("link", name="Refresh")
    look_again.focus()
    page.clock.run_for(11_000)
    expect(look_again).to_be_focused()
    assert asked == []
    look_again.blur()
    with page.expect_request(re.compile("seen=")):
        page.clock.run_for(6_000)
