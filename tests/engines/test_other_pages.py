"""Judging, battles and the owner's pages in Firefox and WebKit, with reloads and Back."""

from core.accounts.models import Annotator
from tasks.models import Task, TaskDraft, TaskMember
from tests.browser.conftest import assign, make_round
from tests.support.battles import battle_arena
from tests.support.engines import CONTROL, ENTER
from tests.support.factories import UserFactory
from tests.support.judging import write
from tests.support.owner_pages import SHORT
from validation.models import JudgeLease, Validation

PREVIEWED = """(() => {
    const page = document.querySelector('iframe.preview')?.contentDocument;
    return page?.querySelector(arguments[0])?.textContent.includes(arguments[1]);
})()"""
EDITOR = "#config-form textarea"


def type_first(page, text):
    page.run("document.querySelector(arguments[0]).setSelectionRange(0, 0)", EDITOR)
    page.run("document.querySelector(arguments[0]).focus()", EDITOR)
    page.write(text)


def test_judge_by_keys_flag_and_undo(page, alice):
    round, author = make_round("nli"), UserFactory()
    for number in range(3):
        write(round, author, number)
    page.visit("/t/nli/judge/")
    page.click("#flag summary")
    page.click("#flag [value=other]")
    page.type("[name=flag_comment]", "Two sentences.")
    first = page.value("#judge-form [name=example]")
    JudgeLease.objects.all().delete()
    page.reload()
    page.until("document.readyState === 'complete'")
    page.click("#flag summary")
    assert page.value("[name=flag_comment]") == ""
    assert not page.run("return !!document.querySelector('#flag :checked')")
    page.click("#keys-switch")
    page.until_seen("#keys-switch[aria-pressed=true]")
    shown = page.value("#judge-form [name=example]")
    page.write("2")
    page.until("document.querySelector('#judge-form [name=example]').value !== arguments[0]", shown)
    page.until_focused("#judge-title")
    page.reload()
    page.write("u")
    page.until("document.querySelector('#judge-form [name=example]').value === arguments[0]", shown)
    assert first
    assert not Validation.objects.exists()
    assert Annotator.objects.get(user=alice).keyboard_mode


def test_a_battle(page, alice):
    battle_arena(models={"m1": {"label": "Rain."}, "m2": {"label": "Snow."}})
    page.visit("/t/duel/battle/")
    page.click("[name=agrees][value=no]")
    page.until_focused("#write-form textarea")
    page.write("What is rain?")
    page.press(CONTROL, ENTER)
    page.until_focused("#vote legend")
    page.reload()
    page.until_seen("#vote")
    assert page.value("#write-form textarea") == ""
    page.click("#vote button")
    page.until_focused("#next")
    page.visit("/privacy/")
    page.back()
    page.until_seen("#write-form textarea, #next")
    page.visit("/t/duel/battle/")
    page.until_focused("#write-form textarea")
    assert page.value("#write-form textarea") == ""


def test_the_editor_keeps_what_was_typed_with_what_it_was_made_from(page, alice):
    round = make_round("nli")
    Task.objects.update(config_text=SHORT)
    TaskMember.objects.create(task=round.task, user=alice, role="owner")
    page.visit("/own/nli/")
    page.visit("/own/nli/config/")
    page.until(PREVIEWED, "#goal", "")
    type_first(page, "# Mine.\n")
    theirs = f"{SHORT}\n# Theirs.\n"
    Task.objects.update(config_text=theirs)
    page.reload()
    page.until("document.querySelector(arguments[0]).value.startsWith('# Mine.')", EDITOR)
    page.click("#config-form .actions button")
    page.until_focused("#said")
    assert Task.objects.get().config_text == theirs
    assert page.value(EDITOR).startswith("# Mine.")
    page.visit("/own/nli/config/")
    page.click("#discard")
    page.until("document.querySelector(arguments[0])?.value === arguments[1]", EDITOR, theirs)
    page.reload()
    page.until("document.querySelector('#discard')?.hidden")
    assert page.value(EDITOR) == theirs
    type_first(page, "# Again.\n")
    page.click("#config-form .actions button")
    page.until_seen("[name=step][value=save]")
    page.back()
    page.until("document.querySelector(arguments[0])?.value.startsWith('# Again.')", EDITOR)
    page.click("#config-form .actions button")
    page.click("[name=step][value=save]")
    page.until("document.querySelector('#discard')?.hidden")
    assert page.value(EDITOR) == Task.objects.get().config_text == f"# Again.\n{theirs}"


def test_previews_are_no_steps_of_the_history(page, alice, settings):
    settings.NEW_TASKS, settings.ACCOUNT_EMAIL_VERIFICATION = "everybody", "none"
    page.visit("/new/")
    page.click("form[action*=draft] button")
    page.until_seen("#step-form")
    length = page.run("return history.length")
    page.type("[name=name]", "Ferries")
    for word in ("Write", "Describe"):
        page.run("document.querySelector('[name=goal_text]').value = ''")
        page.type("[name=goal_text]", f"{word} a ferry")
        page.until(PREVIEWED, "#goal", f"{word} a ferry")
        page.click("#preview-judge")
        page.until(PREVIEWED, "#judge-title", "")
        page.click("#preview-write")
        page.until(PREVIEWED, "#goal", f"{word} a ferry")
    assert page.run("return history.length") == length
    frame = (
        "getComputedStyle(document.querySelector('iframe').contentDocument.querySelector('.ask'))"
    )
    assert page.run(f"return {frame}.position") == "static"  # it would cover the passage
    page.reload()  # nothing is asked, as nothing would be sent again
    page.until_seen("#step-form")
    page.back()
    page.until("location.pathname === '/new/'")
    assert TaskDraft.objects.get().owner == alice


COVERED = """(() => {
    const bar = document.querySelector('#write-form .submit').getBoundingClientRect();
    return [...document.querySelectorAll('#write-form :is(.field, .hint)')].some(one => {
        const box = one.getBoundingClientRect();
        return box.height && Math.min(box.bottom, bar.bottom) - Math.max(box.top, bar.top) > 1;
    });
})()"""
MARKERS = """return [...document.querySelectorAll('.menu > summary')].map(
    one => getComputedStyle(one, '::marker').content)"""
"""What stands before the words of each menu."""


def test_a_narrow_page_to_write_opens_at_its_top_and_covers_nothing(page, alice):
    assign(alice, make_round("qa"))
    page.resize(500, 702)
    page.visit("/t/qa/write/")
    assert page.run("return scrollY") == 0
    page.type("#write-form textarea", "When did Ada leave Tarn?")
    page.run("document.querySelector('#write-form .field:last-of-type').scrollIntoView(false)")
    page.until(f"!{COVERED}")
    for language in ("en", "ar"):
        page.run("document.cookie = `django_language=${arguments[0]}; path=/`", language)
        page.visit("/t/qa/write/")
        page.run("document.querySelector('.more').open = true")
        assert {*page.run(MARKERS)} == {'""'}, language
        page.run("document.querySelector('.more').open = false")
        assert {*page.run(MARKERS)} == {'""'}, language
