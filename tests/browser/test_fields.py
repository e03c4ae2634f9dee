"""Fields beyond text and choices, by mouse, by keyboard and without a script."""

import re
from io import BytesIO

import pytest
from PIL import Image
from playwright.sync_api import expect

from annotation.models import Example
from tasks.models import Round, Task
from tests.browser.conftest import audit, submit_button, text_box, verdict, visit
from tests.support import media
from tests.support.factories import ContextFactory, UserFactory, scripted_target

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


def open_round(code, text, fields, **answer):
    """An open round of a task of that configuration, and a target that gives the answer."""
    task = Task.objects.create(code=code, name=code, config_text=text)
    round = Round.objects.create(task=task, number=1, state="open")
    ContextFactory(round=round, fields=fields)
    scripted_target(round, **answer)


@pytest.fixture
def sure(alice):
    open_round("sure", TASK, {}, label="no")


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


def test_a_probability_is_set_by_keyboard_and_shows_its_number(alice, page):
    slider = 'slider, label: "How sure are you?", minimum: 0, maximum: 5, step: 0.5'
    text = TASK.replace(slider, 'prob, label: "How sure are you?", single: true')
    open_round("sure", text, {}, label="no")
    visit(page, "/t/sure/write/")
    number = page.get_by_role("spinbutton")
    number.fill("0.3")
    page.get_by_role("slider").press("ArrowRight")
    expect(number).to_have_value("0.31")
    audit(page)
    text_box(page).fill("Something.")
    page.get_by_label("yes").check()
    submit_button(page).click()
    expect(verdict(page)).to_be_visible()
    assert Example.objects.get().inputs["sure"] == 0.31


PLACES = "Ada met Bo in Tarn. Ada left Tarn."
MARKS = """
version: 1
name: Names
instructions: Write.
goal: {text: Mark the names}
context:
  - {name: passage, type: long_text, label: Passage}
input:
  - {name: names, type: spans, label: The names, reference: passage, tags: [person, place]}
output: [names]
verdict: {type: spans_f1, field: names}
metrics: {main: spans_f1, also: [spans_overlap_f1]}
"""


def mark(text, start, tag):
    return {"text": text, "start": start, "end": start + len(text), "tag": tag}


@pytest.fixture
def names(alice):
    open_round("names", MARKS, {"passage": PLACES}, output={"names": [mark("Ada", 0, "person")]})


def test_stretches_are_marked_by_keyboard_and_by_mouse(names, page):
    visit(page, "/t/names/write/")
    passage = page.locator("#passage")
    passage.focus()
    for key in ("ArrowRight", "Enter"):
        page.keyboard.press(key)
    page.get_by_role("button", name="person").press("Enter")
    box = page.get_by_label("The names")
    expect(box).to_have_value("Ada @0 = person")
    expect(passage.locator("[data-tag=person]")).to_have_text("Ada")
    audit(page)
    passage.focus()
    for key in (*["ArrowRight"] * 4, "Enter"):
        page.keyboard.press(key)
    place = page.get_by_role("button", name="place")
    for _ in range(3):  # marked, taken away, marked
        place.click()
    expect(box).to_have_value("Ada @0 = person\nTarn @14 = place")
    submit_button(page).click()
    expect(verdict(page)).to_be_visible()
    example = Example.objects.get()
    assert example.inputs["names"] == [mark("Ada", 0, "person"), mark("Tarn", 14, "place")]
    assert example.outcome == "fooled"


def test_a_stretch_over_a_line_break_is_one_line(alice, page):
    passage = "First.\nHe left for\nNorth\u2028Vale, for\nNorth."
    output = {"names": [mark("First", 0, "person")]}
    open_round("names", MARKS, {"passage": passage}, output=output)
    visit(page, "/t/names/write/")
    page.locator("#passage").focus()
    for key in (*["ArrowRight"] * 4, "Shift+ArrowRight", "Shift+ArrowRight", "Enter"):
        page.keyboard.press(key)
    page.get_by_role("button", name="place").click()
    words = "for\nNorth\u2028Vale"
    start = passage.index(words)
    expect(page.get_by_label("The names")).to_have_value(f"for⏎North\u2028Vale @{start} = place")
    marked = page.locator("#passage .marked")
    assert "".join(marked.all_text_contents()) == words
    submit_button(page).click()
    expect(verdict(page)).to_be_visible()
    assert Example.objects.get().inputs["names"] == [mark(words, start, "place")]
    page.locator("#edit").click()
    expect(page.locator("#verdict")).to_have_count(0)
    expect(page.get_by_label("The names")).to_have_value(f"for⏎North\u2028Vale @{start} = place")


def test_without_a_script_stretches_are_lines(names, alice, open_page):
    page = open_page(alice, java_script_enabled=False)
    visit(page, "/t/names/write/")
    box = page.get_by_label("The names")
    box.fill("Bo = person\nTarn = place")
    submit_button(page).click()
    expect(page.locator("#error-summary")).to_contain_text("Tarn @14 or Tarn @29")
    expect(box).to_have_value("Bo = person\nTarn = place")
    box.fill("Bo = person\nTarn @29 = place")
    submit_button(page).click()
    expect(verdict(page)).to_be_visible()
    marks = Example.objects.get().inputs["names"]
    assert marks == [mark("Bo", 8, "person"), mark("Tarn", 29, "place")]


PICTURES = """
version: 1
name: Pictures
instructions: Ask.
goal: {text: Ask what the model answers wrongly}
context:
  - {name: scene, type: image, label: Scene}
input:
  - {name: question, type: text, label: Your question}
  - {name: photo, type: image, label: Your photo}
  - {name: noise, type: audio, label: A noise, required: false}
  - {name: answer, type: multiclass, label: Right answer, labels: ["red", "blue"]}
output: [answer]
verdict: {type: exact_match, fields: [answer]}
metrics: {main: accuracy}
validation: {votes: {needed: 1}}
"""


def files(kind, data):
    return {"name": f"mine.{kind}", "mimeType": "application/octet-stream", "buffer": data}


def width_of(picture):
    """Of the pixels that the browser has decoded; 0 while there are none."""
    expect(picture).to_be_visible()
    return picture.evaluate("one => one.decode().then(() => one.naturalWidth)")


@pytest.mark.parametrize("javascript", [True, False], ids=["script", "no-script"])
def test_a_picture_is_seen_sent_and_judged(javascript, alice, open_page, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    open_round("pics", PICTURES, {"scene": media.value("image")}, label="blue")
    media.stored(Task.objects.get(), "image")
    page = open_page(alice, java_script_enabled=javascript)
    page.set_viewport_size({"width": 320, "height": 640})
    visit(page, "/t/pics/write/")
    shown = page.get_by_role("img", name="A red stripe")
    if javascript:
        assert width_of(shown) == 8
        audit(page)
    page.get_by_label("Your question").fill("Which colour?")
    page.get_by_label("red").check()
    page.get_by_label("Your photo").set_input_files(files("gif", animated()))
    submit_button(page).click()
    errors = page.locator("#field-photo .field-error")
    expect(errors).to_contain_text("animated")
    page.get_by_label("Your photo").set_input_files(files("png", media.png("blue")))
    page.get_by_label("A noise").set_input_files(files("wav", media.FILES["audio"]))
    submit_button(page).click()
    expect(errors).to_contain_text("in words")
    expect(page.get_by_label("Your question")).to_have_value("Which colour?")
    if javascript:
        audit(page)
    page.locator("#id_photo_alt").fill("A blue wall")  # the file itself was kept
    submit_button(page).click()
    expect(verdict(page)).to_be_visible()
    inputs = Example.objects.get().inputs
    assert inputs["photo"]["alt"] == "A blue wall"
    assert inputs["noise"]["mime"] == "audio/wav"
    judge = open_page(UserFactory(), java_script_enabled=javascript)
    visit(judge, "/t/pics/judge/")
    for words in ("A red stripe", "A blue wall"):
        picture = judge.get_by_role("img", name=words)
        expect(picture).to_be_visible()
        if javascript:
            assert width_of(picture) == 8
    expect(judge.locator("audio")).to_have_count(1)
    if javascript:
        audit(judge)


def animated():
    """A picture of two frames."""
    file = BytesIO()
    frames = [Image.new("RGB", (9, 9), colour) for colour in ("red", "blue")]
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:])
    return file.getvalue()
