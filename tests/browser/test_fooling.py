"""“Try to fool it”: targets and submitted endpoints, pictures too, with and without a script."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections
from playwright.sync_api import expect

from evaluation.jobs import serve_practice
from evaluation.models import PracticeRun
from evaluation.runs.services import ensure_target_submissions
from evaluation.submissions.practice.services import record_host
from tasks.models import Round, Task
from tests.browser.conftest import (
    ANSWERS,
    audit,
    make_round,
    submit_button,
    text_box,
    verdict,
    visit,
)
from tests.support import media
from tests.support.evaluations import accepted_model
from tests.support.factories import scripted_target
from tests.support.practice import scripted_engine
from tests.support.submissions import url_of
from tests.support.talks import CONFIG, SCRIPT

PICTURES = {
    "version": 1,
    "name": "Pictures",
    "goal": {"text": "Ask what the model answers wrongly"},
    "context": [{"name": "scene", "type": "image", "label": "Scene"}],
    "input": [
        {"name": "question", "type": "long_text", "label": "Question"},
        {"name": "answer", "type": "text", "label": "Right answer"},
    ],
    "output": [{"name": "answer"}],
    "verdict": {"type": "string_f1", "field": "answer"},
    "metrics": {"main": "squad_f1"},
}


def shown(context, written):
    """The example of a configuration whose passage is practised on."""
    return {"examples": {"good": [{"context": context, "input": written, "reason": "Good."}]}}


def free_task(code, config, **script):
    """A task whose one target answers by script; that target's page."""
    task = Task.objects.create(code=code, name=code, config_text=json.dumps(config))
    scripted_target(Round.objects.create(task=task, number=1, state="open"), "alone", **script)
    (model,) = ensure_target_submissions(task)
    return task, model


@pytest.fixture(params=["js", "no js"])
def anybody(open_page, request, transactional_db, settings, tmp_path):
    """Somebody without an account."""
    settings.MEDIA_ROOT = tmp_path
    page = open_page(java_script_enabled=request.param == "js")
    page.has_script = request.param == "js"
    return page


def looked_at(page):
    if page.has_script:
        audit(page)


def test_a_target_of_texts_and_one_of_pictures(anybody):
    round = make_round("nli")
    scripted_target(round, **ANSWERS["nli"])
    (texts,) = ensure_target_submissions(round.task)
    task, pictures = free_task("pictures", PICTURES, output={"answer": "blue"})
    written = {"question": "Which colour is it?", "answer": "red"}
    task.config_text = json.dumps(PICTURES | shown({"scene": media.stored(task, "image")}, written))
    task.save()
    visit(anybody, url_of(texts))
    anybody.locator("#try-to-fool").click()
    text_box(anybody).fill("Jonas has never been on the ferry.")
    looked_at(anybody)
    submit_button(anybody).click()
    expect(verdict(anybody)).to_be_visible()
    looked_at(anybody)
    visit(anybody, url_of(pictures, "try/"))
    expect(anybody.get_by_role("img", name="A red stripe").first).to_be_visible()
    text_box(anybody).fill("Which colour is the stripe?")
    anybody.get_by_label("Right answer").fill("red")
    looked_at(anybody)
    submit_button(anybody).click()
    expect(verdict(anybody)).to_be_visible()
    expect(anybody.get_by_text("blue").first).to_be_visible()
    looked_at(anybody)


def test_a_conversation_and_an_endpoint_that_is_down(anybody):
    talk = {"talk": [{"role": "user", "text": "When?"}], "how": "wrong"}
    example = shown({"passage": "The mill closed in 1931."}, talk)
    _, talks = free_task("talks", CONFIG | example, **SCRIPT)
    visit(anybody, url_of(talks, "try/"))
    anybody.get_by_label("Your turn").fill("When did it close?")
    anybody.get_by_role("button", name="Send").click()
    expect(anybody.locator(".turns .text").last).to_have_text("It closed in 1931.")
    looked_at(anybody)
    task = make_round("nli").task
    down = accepted_model(
        task, kind="endpoint", adapter="jsonl", source="http://127.0.0.1:1/", is_published=True
    )
    visit(anybody, url_of(down, "try/"))
    text_box(anybody).fill("Keep this text.")
    submit_button(anybody).click()
    expect(anybody.locator("#failed")).to_be_visible()
    expect(text_box(anybody)).to_have_value("Keep this text.")
    looked_at(anybody)


def test_a_model_of_the_sandbox_is_started_and_tried(anybody, monkeypatch):
    model = accepted_model(make_round("nli").task, is_published=True)
    visit(anybody, url_of(model))
    expect(anybody.locator("#not-tried")).to_be_visible()
    looked_at(anybody)
    record_host("here")
    visit(anybody, url_of(model))
    anybody.locator("#try-to-fool").click()
    expect(anybody.locator("#starting")).to_be_visible()
    looked_at(anybody)
    scripted_engine(monkeypatch).pause = 0.1
    with ThreadPoolExecutor(1) as pool:
        served = pool.submit(serve_to_the_end, PracticeRun.objects.get().pk)
        text_box(anybody).fill("The shop was open.")  # the page goes on by itself
        submit_button(anybody).click()
        expect(verdict(anybody)).to_be_visible()
        looked_at(anybody)
        PracticeRun.objects.update(state="failed", error="Its weights are broken.")
        served.result()
    visit(anybody, url_of(model, "try/"))
    expect(anybody.locator("#broke-off")).to_be_visible()
    looked_at(anybody)


def serve_to_the_end(pk):
    try:
        serve_practice(pk)
    finally:
        connections.close_all()
