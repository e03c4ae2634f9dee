"""Judging in a browser: by mouse, by single keys, without JavaScript; each state read by axe."""

from datetime import timedelta

import pytest
from django.db.models import F
from playwright.sync_api import expect

from annotation import selectors as writing
from annotation.context_picking.services import pass_gate
from core.accounts.models import Annotator
from core.accounts.services import get_annotator
from tests.browser.conftest import assign, audit, make_round, submit, visit
from tests.support.factories import UserFactory
from tests.support.judging import answered, with_reveal, write
from validation.consensus import reading
from validation.models import Gold, GoldAnswer, JudgeLease, Validation


@pytest.fixture
def round(alice):
    made = make_round("nli")
    author = UserFactory()
    for number in range(3):
        write(made, author, number)
    return made


def answer_buttons(page):
    return page.locator("#judge-form button")


def title(page):
    return page.get_by_role("heading", level=1)


def test_the_judge_page_in_all_its_states(page, round):
    with_reveal(round.task)
    for example in round.examples.all():
        answered(example)
    visit(page, "/t/nli/judge/")
    audit(page)
    answer_buttons(page).first.click()
    expect(title(page)).to_have_id("after-title")
    expect(title(page)).to_be_focused()
    audit(page)
    page.locator("#save-after").click()
    expect(page.locator("#error-summary")).to_be_focused()
    audit(page)
    page.locator("[name=reveal][value=keep]").check()
    page.locator("#save-after").click()
    expect(page.get_by_role("status")).to_have_text("Saved. 1 judged.")
    expect(title(page)).to_be_focused()
    page.locator("#flag > summary").click()
    page.locator("#send-flag").click()
    expect(page.locator("#error-summary")).to_be_focused()
    audit(page)
    page.locator("[value=personal]").check()
    page.locator("#send-flag").click()
    expect(page.get_by_role("status")).to_contain_text("Thank you")
    page.get_by_role("button", name="Skip").click()
    expect(title(page)).to_have_id("nothing-to-judge")
    audit(page)
    page.locator("#undo").click()
    expect(title(page)).to_have_id("judge-title")
    assert Validation.objects.count() == 1


def test_what_appears_new_is_deaf_for_a_moment(page, alice, round, monkeypatch):
    """A double tap, and a key pressed twice, are one vote: the second one met an unread example."""
    monkeypatch.setattr(reading, "MIN_READING_SECONDS", 3600)  # a moment that no test outlasts
    sent = []
    page.on("request", lambda request: sent.append(request.url) if request.post_data else None)

    def press_all():
        answer_buttons(page).nth(1).dblclick()
        page.keyboard.press("2")
        page.keyboard.press("s")
        page.get_by_role("button", name="Skip").click()
        page.locator("#flag summary").click()
        page.locator("#judge-form").evaluate("form => form.requestSubmit()")

    Annotator.objects.filter(user=alice).update(keyboard_mode=True)
    visit(page, "/t/nli/judge/")
    press_all()
    assert not sent
    expect(page.locator("#flag")).not_to_have_attribute("open", "")
    first = page.locator("#judge-form [name=example]").input_value()
    JudgeLease.objects.update(leased_at=F("leased_at") - timedelta(hours=2))
    page.locator("#work").evaluate("part => { part.dataset.deaf = 0 }")  # the moment is over
    answer_buttons(page).nth(1).click()
    expect(page.get_by_role("status")).to_have_text("Saved. 1 judged.")
    expect(page.locator("#judge-form [name=example]")).not_to_have_value(first)
    press_all()
    assert len(sent) == 1
    assert Validation.objects.count() == 1


def test_single_keys(page, alice, round):
    visit(page, "/t/nli/judge/")
    page.keyboard.press("2")
    page.locator("#keys-switch").click()  # had the key done something, it would be said
    expect(page.locator("#keys-switch")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#keys-switch")).to_be_focused()
    assert not Validation.objects.exists()
    shown = page.locator("#judge-form [name=example]")
    first = shown.input_value()
    page.keyboard.press("2")
    expect(page.get_by_role("status")).to_have_text("Saved. 1 judged.")
    assert Validation.objects.get().label == "neutral"
    expect(shown).not_to_have_value(first)
    page.keyboard.press("u")
    expect(shown).to_have_value(first)
    page.keyboard.press("2")
    expect(page.get_by_role("status")).to_have_text("Saved. 1 judged.")
    page.keyboard.press("4")
    expect(page.get_by_role("status")).to_have_text("Saved. 2 judged.")
    assert Validation.objects.latest("pk").verdict == "cannot_tell"
    page.keyboard.press("f")
    expect(page.locator("#send-flag")).to_be_visible()
    page.keyboard.press("s")
    expect(title(page)).to_have_id("nothing-to-judge")


def test_without_javascript(open_page, alice, round):
    """Check 11: judge both steps, skip and flag, all by plain forms."""
    with_reveal(round.task)
    page = open_page(alice, java_script_enabled=False)
    page.goto("/t/nli/judge/")
    answer_buttons(page).first.click()
    expect(page.locator("#author-said")).to_contain_text("neither")
    page.locator("[name=reveal][value=change]").check()
    page.locator("[name=reveal_choice]").select_option(index=2)
    page.locator("#save-after").click()
    expect(page.get_by_text("Saved. 1 judged.")).to_be_visible()
    assert Validation.objects.get().reveal == "change"
    page.get_by_role("button", name="Skip").click()
    expect(page.get_by_text("Example skipped")).to_be_visible()
    page.locator("#flag > summary").click()
    page.locator("[value=broken]").check()
    page.locator("#send-flag").click()
    expect(title(page)).to_have_id("nothing-to-judge")
    assert Validation.objects.count() == 2


def test_retract_goes_with_the_first_judgement(open_page, alice, round):
    """Check 27, through both people's pages."""
    round.examples.all().delete()
    bob = UserFactory()
    author = open_page(bob)
    assign(bob, round)
    visit(author, "/t/nli/write/")
    submit(author)
    example = round.examples.get()
    retract = author.locator("#retract")
    expect(retract).to_be_visible()
    page = open_page(alice)
    visit(page, "/t/nli/judge/")
    answer_buttons(page).first.click()
    expect(title(page)).to_have_id("nothing-to-judge")
    visit(author, f"/attempt/{example.uuid}/")
    expect(author.locator("#edit")).to_be_visible()
    expect(retract).to_have_count(0)


def test_a_narrow_screen_and_a_sensitive_task(open_page, alice):
    round = make_round("hate-speech")
    write(round, UserFactory(), text="They moved in.", label="not-hate")
    page = open_page(alice, viewport={"width": 320, "height": 640})
    visit(page, "/t/hate-speech/judge/")
    expect(title(page)).to_have_id("gate-title")
    pass_gate(annotator=get_annotator(alice), task=round.task)
    visit(page, "/t/hate-speech/judge/")
    audit(page)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def missed_gold(user, code):
    """A round in which the person missed eight gold items; one more example is there to judge."""
    round, author = make_round(code), UserFactory()
    text = {"nli": "hypothesis", "hate-speech": "text"}[code]
    right, wrong = {"nli": ("neutral", "entailment"), "hate-speech": ("hate", "not-hate")}[code]
    for number in range(9):
        said = {text: f"Statement {number} that Jonas wrote.", "label": right}
        example = write(round, author, number, **said)
        if number:
            gold = Gold.objects.create(
                example=example, label=right, explanation="No clue is given."
            )
            me = get_annotator(user)
            GoldAnswer.objects.create(gold=gold, validator=me, label=wrong, is_correct=False)
    pass_gate(annotator=get_annotator(user), task=round.task)
    return round


@pytest.mark.parametrize("code", ["nli", "hate-speech"])
def test_the_refresher(page, alice, code):
    missed_gold(alice, code)
    visit(page, f"/t/{code}/judge/")
    expect(title(page)).to_have_id("refresher")
    expect(page.get_by_text("No clue is given.")).to_have_count(8)
    words = page.get_by_text("Statement 3 that Jonas wrote.")
    expect(words).to_be_visible(visible=code == "nli")
    audit(page)  # it opens what is shielded
    expect(words).to_be_visible()
    page.locator("#refresher-read").focus()
    page.keyboard.press("Enter")
    expect(title(page)).to_have_id("judge-title")
    expect(title(page)).to_be_focused()
    expect(page.get_by_role("status")).not_to_be_empty()
    assert not GoldAnswer.objects.filter(counts=True).exists()
    audit(page)


def test_the_refresher_without_javascript(open_page, alice):
    missed_gold(alice, "nli")
    page = open_page(alice, java_script_enabled=False)
    page.goto("/t/nli/judge/")
    page.locator("#refresher-read").click()
    expect(title(page)).to_have_id("judge-title")


def test_who_has_given_their_share_is_thanked(page, round, monkeypatch):
    monkeypatch.setattr(writing, "MIN_LARGE_ROUND_EXAMPLES", 3)
    text = round.task.config_text
    round.task.config_text = text.replace("limits: {", "limits: {share_of_votes: 0.12, ")
    round.task.save()  # one of the nine votes
    visit(page, "/t/nli/judge/")
    answer_buttons(page).first.click()
    expect(title(page)).to_have_id("share-reached")
    expect(title(page)).to_be_focused()
    expect(page.locator("#share-reached ~ p", has_text="12%")).to_be_visible()
    audit(page)
    page.locator("#undo").click()
    expect(title(page)).to_have_id("judge-title")
