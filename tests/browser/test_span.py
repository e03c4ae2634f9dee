"""Choosing the answer in a passage: by mouse, touch, keyboard or typing, with one result."""

import random
import re

import pytest
from playwright.sync_api import Page, expect

from annotation.models import Example
from tasks.models import Context, TargetModel
from tests.browser.conftest import (
    ANSWERS,
    PASSAGE,
    TEXTS,
    answer_box,
    assign,
    make_round,
    submit_button,
    text_box,
)
from tests.conftest import SEED
from tests.support.factories import scripted_target

PLACE = """([from, to]) => {
    const range = document.createRange(), walk = document.createTreeWalker(
        document.getElementById("passage"), NodeFilter.SHOW_TEXT);
    let seen = 0, started = false;
    for (let node; (node = walk.nextNode()); seen += node.length) {
        if (!started && from < seen + node.length) {
            range.setStart(node, from - seen);
            started = true;
        }
        if (to <= seen + node.length) { range.setEnd(node, to - seen); break; }
    }
    const box = range.getBoundingClientRect();
    return [box.left, box.right, box.top + box.height / 2];
}"""
WANTED = "1840. The mill burned"
# Each word beside what is marked, before or behind it, is added.
ADDED = [
    ("The", "The"),
    ("mill burned", "The mill"),
    ("1840", "1840. The mill"),
    ("burned", WANTED),
]


@pytest.fixture
def at_passage(alice, open_page):
    """The write page of the question task, opened in one way or another."""
    round = make_round("qa")
    scripted_target(round, **ANSWERS["qa"])
    assign(alice, round)

    def opened(**options) -> Page:
        page = open_page(alice, **options)
        page.goto("/t/qa/write/")
        text_box(page).fill(TEXTS["qa"])
        return page

    return opened


def place(page: Page, text: str) -> tuple[float, float, float]:
    """Left, right and middle of a stretch of the passage that fits on one line."""
    page.locator("#passage").scroll_into_view_if_needed()
    start = PASSAGE.index(text)
    left, right, middle = page.evaluate(PLACE, [start, start + len(text)])
    return left, right, middle


def by_drag(page: Page) -> None:
    left, _, top = place(page, "1840")
    _, right, bottom = place(page, "burned")
    page.mouse.move(left + 1, top)
    page.mouse.down()
    page.mouse.move(right - 8, bottom, steps=4)
    page.mouse.move(right, bottom)
    page.mouse.up()


def click(page: Page, begins: str) -> None:
    """A click on the word with which this stretch of the passage begins."""
    left, _right, middle = place(page, begins)
    page.mouse.click(left + 4, middle)


def by_click(page: Page) -> None:
    for begins, marked in ADDED:
        click(page, begins)
        expect(page.locator("#passage .mine")).to_have_text(marked)


def by_tap(page: Page) -> None:
    for begins, marked in ADDED:
        left, _right, middle = place(page, begins)
        page.touchscreen.tap(left + 4, middle)
        expect(page.locator("#passage .mine")).to_have_text(marked)


def by_keyboard(page: Page) -> None:
    page.locator("#passage").focus()
    for key in ["ArrowRight"] * 6 + ["Shift+ArrowRight"] * 3 + ["Enter"]:
        page.keyboard.press(key)


def by_typing(page: Page) -> None:
    answer_box(page).fill(WANTED)


WAYS = {
    "drag": by_drag,
    "click": by_click,
    "tap": by_tap,
    "keyboard": by_keyboard,
    "typing": by_typing,
}


@pytest.mark.parametrize("way", WAYS)
def test_all_ways_give_the_same_offsets(at_passage, way):
    page = at_passage(has_touch=way == "tap")
    WAYS[way](page)
    expect(answer_box(page)).to_have_value(WANTED)
    if way != "typing":
        expect(page.locator("#span-line")).to_have_text(f"Answer: “{WANTED}” (words 6 to 9)")
        expect(page.locator("#passage .mine")).to_have_text(WANTED)
    if way == "drag":
        assert page.evaluate("getSelection().toString()") == WANTED  # it can still be copied
    submit_button(page).click()
    expect(page.locator("#verdict")).to_be_visible()
    start = PASSAGE.index(WANTED)
    assert Example.objects.get().inputs["answer"] == {
        "text": WANTED,
        "start": start,
        "end": start + len(WANTED),
    }


def test_a_tap_means_its_word_unless_it_is_beside_the_mark(at_passage):
    page = at_passage()
    click(page, "Tarn")
    click(page, "burned")  # not all from there to here
    at_mark(page, "burned", "word 9")
    click(page, "down")
    at_mark(page, "burned down", "words 9 to 10")
    click(page, "burned")  # within the mark
    at_mark(page, "burned", "word 9")


def at_mark(page, words, number):
    """What is marked, what the line says, and what will be stored are the same."""
    expect(page.locator("#passage .mine")).to_have_text([words] if words else [])
    said = f"Answer: “{words}” ({number})" if words else ""
    expect(page.locator("#span-line")).to_have_text(said)


def test_typing_moves_mark_and_line_and_no_tap_goes_on_from_before(at_passage):
    page = at_passage()
    click(page, "Tarn")
    answer_box(page).fill("built")
    at_mark(page, "built", "word 2")
    expect(page.locator("input[name=answer_start]")).to_have_value("")
    click(page, "the mill")  # beside what was typed, which is no choice
    at_mark(page, "the", "word 3")
    answer_box(page).fill("Aleppo")
    at_mark(page, "", "")
    answer_box(page).fill("Ada")  # twice in the passage: the server asks
    at_mark(page, "", "")
    click(page, "mill burned")
    at_mark(page, "mill", "word 8")
    expect(answer_box(page)).to_have_value("mill")
    submit_button(page).click()
    expect(page.locator("#verdict")).to_be_visible()
    assert Example.objects.get().inputs["answer"]["start"] == PASSAGE.index("mill burned")


def test_after_submitting_and_editing_a_tap_begins_again(at_passage):
    page = at_passage()
    click(page, "built")
    submit_button(page).click()
    expect(page.locator("#verdict")).to_be_visible()
    page.locator("#edit").click()
    expect(page.locator("#verdict")).to_have_count(0)
    at_mark(page, "built", "word 2")
    click(page, "the mill")
    at_mark(page, "the", "word 3")
    expect(answer_box(page)).to_have_value("the")


def test_the_keyboard_may_change_its_mind(at_passage):
    page = at_passage()
    passage, answer = page.locator("#passage"), answer_box(page)
    passage.focus()
    for key in ["End", "ArrowDown", "ArrowDown", "Enter"]:
        page.keyboard.press(key)
    expect(answer).to_have_value("built")
    page.keyboard.press("Escape")
    expect(answer).to_have_value("")
    expect(page.locator("#span-line")).to_have_text("")
    expect(page.locator("#passage .mine")).to_have_count(0)
    for key in ["ArrowRight"] * 4 + ["ArrowLeft", "Enter"]:
        page.keyboard.press(key)
    expect(answer).to_have_value("the")
    expect(passage).to_be_focused()
    expect(passage).to_have_text(PASSAGE)
    page.keyboard.press("Tab")
    expect(passage).not_to_be_focused()


def test_which_of_two_places(at_passage):
    page = at_passage()
    answer_box(page).fill("Ada")
    submit_button(page).click()
    expect(page.locator("#error-summary")).to_be_focused()
    expect(page.locator("#error-summary")).to_contain_text(" 2 ")
    page.get_by_label("[Ada] left Tarn").check()
    submit_button(page).click()
    expect(page.locator("#verdict")).to_be_visible()
    assert Example.objects.get().inputs["answer"]["start"] == PASSAGE.rindex("Ada")


def test_a_choice_after_an_emoji_counts_code_points(at_passage):
    """JavaScript counts 🐀 as two, the server as one."""
    page = at_passage()
    context = Context.objects.get()
    context.fields = {"passage": "🐀🐀 Ada came, and Ada stayed."}
    context.save()
    TargetModel.objects.update(options={"output": {"answer": "Ada", "start": 3, "end": 6}})
    page.reload()
    text_box(page).fill("Who stayed there?")
    page.locator("#passage").focus()
    for key in ["ArrowRight"] * 5 + ["Enter"]:
        page.keyboard.press(key)
    expect(page.locator("input[name=answer_start]")).to_have_value("17")
    submit_button(page).click()
    expect(page.locator("#verdict")).to_be_visible()
    assert Example.objects.get().inputs["answer"] == {"text": "Ada", "start": 17, "end": 20}


LINES = "First line.\n🐀 He left for\nNorth Vale, for\nNorth, said Ada💩end."
OVER = "for\nNorth Vale"


def by_resting_selection(page: Page, start: int, end: int) -> None:
    """As the handles of a selection do after a long press: no page hears of a finger."""
    page.evaluate(SELECT, [start, end])


SELECT = """([from, to]) => {
    const node = document.getElementById("passage").firstChild.firstChild
        ?? document.getElementById("passage").firstChild;
    getSelection().setBaseAndExtent(node, from, node, to);
}"""


@pytest.mark.parametrize("way", ["drag", "selection", "keyboard", "paste", "no script"])
def test_an_answer_over_a_line_break(alice, open_page, way):
    round = make_round("qa")
    round.contexts.update(fields={"passage": LINES})
    scripted_target(round, output={"answer": "He"})
    assign(alice, round)
    page = open_page(alice, java_script_enabled=way != "no script", has_touch=way == "selection")
    page.set_viewport_size({"width": 320, "height": 700})
    page.goto("/t/qa/write/")
    text_box(page).fill(TEXTS["qa"])
    start = len(LINES[: LINES.index(OVER)].encode("utf-16-le")) // 2
    end = start + len(OVER)
    if way == "drag":
        page.locator("#passage").scroll_into_view_if_needed()
        left, _, top = page.evaluate(PLACE, [start, start + 1])
        _, right, bottom = page.evaluate(PLACE, [end - 1, end])
        page.mouse.move(left + 1, top)
        page.mouse.down()
        page.mouse.move(right - 3, bottom, steps=4)
        page.mouse.up()
    elif way == "selection":
        by_resting_selection(page, start + 1, end - 2)
    elif way == "keyboard":
        page.locator("#passage").focus()
        for key in ["ArrowRight"] * 6 + ["Shift+ArrowRight"] * 2 + ["Enter"]:
            page.keyboard.press(key)
    else:
        answer_box(page).fill("for North Vale" if way == "paste" else OVER)
    if way not in ("paste", "no script"):
        expect(answer_box(page)).to_have_value(OVER)
    if way != "no script":
        expect(page.locator("#passage .mine")).to_have_text(OVER)
        assert answer_box(page).evaluate("one => one.scrollHeight <= one.clientHeight")
    submit_button(page).click()
    expect(page.locator("#verdict")).to_be_visible()
    begin = LINES.index(OVER)
    answer = {"text": OVER, "start": begin, "end": begin + len(OVER)}
    assert Example.objects.get().inputs["answer"] == answer


def test_an_emoji_is_a_word_of_its_own(at_passage):
    page = at_passage()
    Context.objects.update(fields={"passage": "Ada💩end, a👩🏽\u200d🚒b 🇩🇪🇫🇷 ok©."})
    page.reload()
    page.locator("#passage").focus()
    for word in ["Ada", "💩", "end", "a", "👩🏽\u200d🚒", "b", "🇩🇪🇫🇷", "ok©"]:
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        expect(answer_box(page)).to_have_value(word)


@pytest.mark.parametrize(
    ("first", "last", "whole"),
    [
        ("a built", "the mi", "Ada built the mill"),  # from within one word into another
        ("uil", "uil", "built"),
        ("(in 18", "(in 18", "in 1850"),
        ("840. ", "The mill bur", "1840. The mill burned"),
        (" (", " (", ""),  # no word at all
    ],
)
def test_a_drag_takes_whole_words(at_passage, first, last, whole):
    page = at_passage()
    start, end = PASSAGE.index(first), PASSAGE.index(last) + len(last)
    left, _, top = page.evaluate(PLACE, [start, start + 1])
    _, right, bottom = page.evaluate(PLACE, [end - 1, end])
    page.mouse.move(left + 1, top)
    page.mouse.down()
    page.mouse.move(right - 3, bottom, steps=4)
    page.mouse.move(right, bottom)
    page.mouse.up()
    expect(page.locator("#passage .mine")).to_have_text([whole] if whole else [])
    expect(answer_box(page)).to_have_value(whole)


def test_a_text_without_spaces_is_chosen_by_word(at_passage):
    page = at_passage()
    Context.objects.update(fields={"passage": "我们喜欢北京。"})
    page.reload()
    page.locator("#passage").focus()
    for key in ("ArrowRight", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    assert len(answer_box(page).input_value()) < len("我们喜欢北京")


@pytest.mark.parametrize("way", ["click", "keyboard", "typing"])
def test_the_marked_answer_outlives_an_outage(at_passage, way):
    page = at_passage()
    page.context.set_offline(True)
    WAYS[way](page)
    page.context.set_offline(False)
    page.reload()
    expect(text_box(page)).to_have_value(TEXTS["qa"])
    expect(answer_box(page)).to_have_value(WANTED)
    if way != "typing":
        expect(page.locator("#passage .mine")).to_have_text(WANTED)
    submit_button(page).click()
    expect(page.locator("#verdict")).to_be_visible()
    assert Example.objects.get().inputs["answer"]["text"] == WANTED


def test_the_server_keeps_the_marked_answer_too(at_passage, alice, open_page):
    """In a browser that never saw it, the second Ada is still the second."""
    page = at_passage()
    page.locator("#passage").focus()
    with page.expect_response(lambda one: "answer=Ada" in (one.request.post_data or "")):
        for key in ["ArrowRight"] * 11 + ["Enter"]:
            page.keyboard.press(key)
    expect(page.locator("#draft-line")).to_contain_text("Draft saved")
    other = open_page(alice)
    other.goto("/t/qa/write/")
    expect(answer_box(other)).to_have_value("Ada")
    start = str(PASSAGE.rindex("Ada"))
    expect(other.locator("input[name=answer_start]")).to_have_value(start)
    expect(other.locator("#passage .mine")).to_have_text("Ada")


WORDS = [(one[0], one.start()) for one in re.finditer(r"\w+", PASSAGE)]
HELD = """async () => {
    await new Promise(done => setTimeout(done));  // a drag is a choice once the mouse is let go
    const pieces = [...document.getElementById("passage").children];
    const mine = pieces.filter(one => one.classList.contains("mine"));
    const joined = some => some.map(one => one.textContent).join("");
    const handles = [...document.querySelectorAll("[data-end]:not([hidden])")];
    return {
        text: joined(pieces), marked: joined(mine),
        before: joined(pieces.slice(0, pieces.indexOf(mine[0]))),
        field: document.getElementById("id_answer").value,
        start: document.querySelector("[name=answer_start]").value,
        line: document.getElementById("span-line").textContent,
        ends: handles.map(one => one.getAttribute("aria-valuetext")),
    };
}"""


def check_is_one_state(page: Page) -> str:
    """Mark, line, field, what is sent and both handles say the same; returns what is marked."""
    held = page.evaluate(HELD)
    marked, start = held["marked"], str(len(held["before"]))
    assert held["text"] == PASSAGE
    if not marked:
        assert not any(held[name] for name in ("line", "start", "ends")), held
        assert PASSAGE.count(held["field"]) != 1 or not held["field"], held
        return ""
    assert held["field"] == marked, held
    assert f"“{marked}”" in held["line"], held
    assert held["start"] == start or (not held["start"] and PASSAGE.count(marked) == 1), held
    begin, end = len(held["before"]), len(held["before"]) + len(marked)
    touched = [text for text, at in WORDS if at < end and at + len(text) > begin]
    assert held["ends"] == [touched[0], touched[-1]], held
    return marked


def pull(page: Page, end: str, chance: random.Random) -> None:
    """Drag one of the handles to somewhere in the passage."""
    box = page.locator(f"[data-end={end}]").bounding_box()
    passage = page.locator("#passage").bounding_box()
    if not box or not passage:
        return
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    x = passage["x"] + chance.random() * passage["width"]
    page.mouse.move(x, passage["y"] + chance.random() * passage["height"], steps=2)
    page.mouse.up()


def at_random(page: Page, chance: random.Random) -> None:
    """One thing that a person may do with a passage and its field."""
    kinds = ["click", "click", "drag", "keys", "keys", "type", "first", "last", "ends"]
    kind = chance.choice(kinds)
    if kind == "click":
        left, _right, middle = page.evaluate(PLACE, [at := chance.choice(WORDS)[1], at + 2])
        page.mouse.click(left + 3, middle)
    elif kind == "drag":
        start, end = sorted(chance.sample(range(len(PASSAGE)), 2))
        left, _right, top = page.evaluate(PLACE, [start, start + 1])
        _left, right, bottom = page.evaluate(PLACE, [end, end + 1])
        page.mouse.move(left + 1, top)
        page.mouse.down()
        page.mouse.move(right - 1, bottom, steps=2)
        page.mouse.up()
    elif kind == "keys":
        page.locator("#passage").focus()
        keys = ["ArrowRight", "ArrowLeft", "Shift+ArrowRight", "Shift+ArrowLeft", "Enter", "Escape"]
        for key in chance.choices(keys, [4, 2, 3, 2, 2, 1], k=3):
            page.keyboard.press(key)
    elif kind == "type":
        answer_box(page).fill(chance.choice(["Ada", "mill", "Tarn", "1850).", "uil", "Aleppo", ""]))
    elif kind == "ends" and page.locator("[data-end]:visible").count():
        page.locator(f"[data-end={chance.choice(['first', 'last'])}]").focus()
        page.keyboard.press(chance.choice(["ArrowLeft", "ArrowRight"]))
    elif kind in ("first", "last") and page.locator("[data-end]:visible").count():
        pull(page, kind, chance)


def test_whatever_one_does_mark_line_field_and_stored_answer_are_one(at_passage):
    page = at_passage(viewport={"width": 390, "height": 1600})
    chance = random.Random(SEED)
    for _round in range(2):
        marked = ""
        for step in range(40):
            at_random(page, chance)
            marked = check_is_one_state(page)
            if step > 20 and marked:
                break
        submit_button(page).click()
        expect(page.locator("#verdict")).to_be_visible()
        stored = Example.objects.latest("pk").inputs["answer"]
        assert stored["text"] == marked
        assert PASSAGE[stored["start"] : stored["end"]] == marked
        page.locator("#edit").click()
        expect(page.locator("#verdict")).to_have_count(0)
        assert check_is_one_state(page) == marked
        text_box(page).fill(f"Where was it that Ada left in {chance.random()}?")


def test_handles_are_large_enough_and_follow_a_text_from_right_to_left(at_passage):
    page = at_passage(has_touch=True, viewport={"width": 320, "height": 1200})
    words = ["ذهب", "أحمد", "إلى", "المدينة", "القديمة"]
    Context.objects.update(fields={"passage": " ".join(words)})
    TargetModel.objects.update(options={"output": {"answer": "أحمد", "start": 4, "end": 8}})
    page.reload()
    text_box(page).fill("إلى أين ذهب؟")
    page.locator("#passage").focus()
    for key in ("ArrowLeft", "ArrowLeft", "Enter"):  # onwards, in this text
        page.keyboard.press(key)
    expect(answer_box(page)).to_have_value(words[1])
    first, last = page.locator("[data-end=first]"), page.locator("[data-end=last]")
    boxes = [one.bounding_box() for one in (first, last)]
    for box in boxes:
        assert min(box["width"], box["height"]) >= 44
        assert 0 <= box["x"] <= 320 - box["width"]
    assert boxes[0]["y"] + boxes[0]["height"] < boxes[1]["y"]  # neither covers the mark
    assert boxes[0]["x"] > boxes[1]["x"]
    last.focus()
    page.keyboard.press("ArrowLeft")
    expect(answer_box(page)).to_have_value(" ".join(words[1:3]))
    first.focus()
    page.keyboard.press("ArrowRight")
    expect(answer_box(page)).to_have_value(" ".join(words[:3]))
    box = last.bounding_box()
    middle = box["x"] + box["width"] / 2
    page.mouse.move(middle, box["y"] + 6)
    page.mouse.down()
    page.mouse.move(middle - 40, box["y"] + 6, steps=3)
    page.mouse.up()
    expect(answer_box(page)).to_have_value(" ".join(words[:4]))
    page.locator("#passage").focus()
    page.keyboard.press("Control+Enter")  # from where a keyboard is after marking
    expect(page.locator("#verdict")).to_be_visible()
    assert Example.objects.get().inputs["answer"]["text"] == " ".join(words[:4])
