"""Writing in Firefox and WebKit: what was typed stays with what it was written for."""

from annotation.context_picking.services import assign_next
from annotation.models import Assignment, Example
from core.accounts.services import get_annotator
from tests.browser.conftest import ANSWERS, PASSAGE, assign, make_round
from tests.support.engines import CONTROL, ENTER, LEFT, RIGHT
from tests.support.factories import scripted_target

BOX = "#write-form textarea:not(.short)"
# That the model is being asked is said after a second, which nobody here waits for.
AT_ONCE = """
    const later = window.setTimeout;
    window.setTimeout = (todo, wait) => later(todo, wait === 1000 ? 0 : wait);
"""
SAID = "document.getElementById('status').textContent.trim()"


def begin(alice, code):
    round = make_round(code, contexts=3)
    scripted_target(round, **ANSWERS[code])
    return assign(alice, round)


def another_passage(alice):
    """What a second window does."""
    now = Assignment.objects.get(left_at__isnull=True)
    return assign_next(annotator=get_annotator(alice), round=now.round, requested_kind="context")


def test_write_read_the_verdict_edit_and_go_on(page, alice):
    begin(alice, "nli")
    page.visit("/t/nli/write/")
    page.run(AT_ONCE)
    page.click("#submit")
    page.until_focused("#error-summary")
    page.until(f"{SAID} === ''")
    page.click(BOX)
    page.write("Jonas swims.")
    page.press(CONTROL, ENTER)
    page.until_focused("#next")
    page.click("#edit")
    page.until_focused(BOX)
    page.write(" Daily.")
    assert page.value(BOX) == "Jonas swims. Daily."
    assert page.run(f"return {SAID}") == ""
    assert "disagrees" not in page.run("return document.title")
    page.press(CONTROL, ENTER)
    page.until_focused("#next")
    assert sorted(one.inputs["hypothesis"] for one in Example.objects.all()) == [
        "Jonas swims.",
        "Jonas swims. Daily.",
    ]
    page.reload()
    page.until_seen(BOX)
    assert page.value(BOX) == ""
    page.visit("/privacy/")
    page.back()
    page.until_seen(BOX)
    assert page.value(BOX) == ""


def test_a_text_stays_with_its_passage(page, alice):
    mine = begin(alice, "nli")
    page.visit("/t/nli/write/")
    page.click(BOX)
    page.write("Jonas swims.")
    other = another_passage(alice)
    page.reload()
    page.until("document.querySelector('[name=assignment]').value === arguments[0]", str(other.pk))
    assert page.value(BOX) == ""
    page.click(BOX)
    page.write("Jonas rows.")
    page.reload()
    page.until("document.querySelector(arguments[0])?.value === 'Jonas rows.'", BOX)
    assert page.run(f"return {SAID}") != ""  # that it was restored
    page.visit("/privacy/")
    page.back()
    page.until("document.querySelector(arguments[0])?.value === 'Jonas rows.'", BOX)
    page.click(BOX)
    page.write("!")
    assert page.run(f"return {SAID}") == ""
    # A page of the old passage, brought back by a browser, is told apart.
    page.run("document.querySelector('[name=assignment]').value = arguments[0]", str(mine.pk))
    page.click("#submit")
    page.until_seen("#refused[data-code=stale]")
    assert "Jonas rows." in page.value(BOX)
    assert not Example.objects.exists()


def test_a_text_that_was_tried_out_is_not_put_under_another_passage(page, alice):
    """Strangers' pages may be stored, so that Firefox restores their fields."""
    begin(alice, "nli")
    page.sign_out()
    page.visit("/t/nli/try/")
    page.click(BOX)
    page.write("Jonas swims.")
    page.reload()
    page.until("document.querySelector(arguments[0])", BOX)
    assert page.value(BOX) == ""
    page.click(BOX)
    page.write("Jonas swims.")
    page.click("#submit")
    page.until_focused("#next")
    page.reload()
    page.until("!document.querySelector('#verdict')")
    assert page.value(BOX) == ""


def test_an_answer_is_marked_and_its_place_goes_with_the_passage(page, alice):
    begin(alice, "qa")
    page.visit("/t/qa/write/")
    page.run("document.querySelector('#passage').focus()")
    for key in [LEFT] + [RIGHT] * 14 + [ENTER]:
        page.press(key)
    page.until("document.querySelector('[name=answer]').value === '1850'")
    start = str(PASSAGE.index("1850"))
    assert page.value("[name=answer_start]") == start
    page.reload()
    page.until("document.querySelector('[name=answer]').value === '1850'")
    assert page.value("[name=answer_start]") == start
    another_passage(alice)
    page.reload()
    page.until("document.readyState === 'complete'")
    assert page.value("[name=answer]") == page.value("[name=answer_start]") == ""
    page.type("[name=answer]", "1850")
    page.click(BOX)
    page.write("When did Ada leave Tarn?")
    page.click("#submit")
    page.until_focused("#next")
    assert Example.objects.get().inputs["answer"]["start"] == int(start)
