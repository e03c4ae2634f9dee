"""Inputs of every type from the form to the release, on a phone, with and without a script."""

import pytest
from playwright.sync_api import expect

from annotation.models import Example
from tasks.models import Round, TaskMember
from tests.browser.conftest import audit, submit_button, verdict, visit
from tests.support import media
from tests.support.factories import UserFactory, scripted_target
from tests.support.field_walk import MEDIA, TEXT, Walk, kinds_in, opened, released


def without_returns(sent):
    """Carriage returns are added when the browser sends the form."""
    if isinstance(sent, list):
        return [without_returns(one) for one in sent]
    return sent.replace("\r", "")


def fill(page, walk):
    """Fill in all fields of the form as the form would send them."""
    page.locator("#id_text").fill(TEXT)
    page.locator("[name=label][value=yes]").check()
    for kind in walk.kinds:
        name = f"a_{kind}"
        if kind in MEDIA:
            file = {"name": f"mine.{kind}", "mimeType": "text/html", "buffer": media.FILES[kind]}
            page.locator(f"[name={name}_file]").set_input_files(file)
            page.locator(f"[name={name}_alt]").fill(media.WORDS[kind])
            continue
        sent = without_returns(walk.sent[name])
        fields = page.locator(f"[name={name}]")
        kind_of_control = fields.first.evaluate("one => one.type")
        if kind_of_control in ("radio", "checkbox"):
            for value in sent if isinstance(sent, list) else [sent]:
                next(one for one in fields.all() if one.input_value() == value).check()
        elif kind_of_control == "select-one":
            for place, value in enumerate(sent):
                fields.nth(place).select_option(value)
        else:
            fields.first.fill(sent)


@pytest.mark.parametrize("javascript", [True, False], ids=["script", "no-script"])
def test_inputs_of_every_type_from_the_form_to_the_release(
    javascript, alice, open_page, settings, tmp_path
):
    settings.MEDIA_ROOT = tmp_path
    walk = Walk("input", kinds_in("input"), None, None)
    round, _ = opened(walk.text)
    scripted_target(round, label="no")

    def go(user, path):
        page = open_page(user, java_script_enabled=javascript)
        page.set_viewport_size({"width": 320, "height": 640})
        visit(page, path)
        return page

    def check(page):
        if javascript:
            audit(page)

    page = go(alice, "/t/walk/write/")
    fill(page, walk)
    check(page)
    submit_button(page).click()
    expect(verdict(page)).to_be_visible()
    check(page)
    example = Example.objects.get()
    assert walk.written.items() <= example.inputs.items()

    judge = go(UserFactory(), "/t/walk/judge/")
    expect(judge.locator("#work")).to_contain_text(TEXT)
    check(judge)
    judge.locator('[name=answer][value="verdict:correct"]').click()
    expect(judge.locator("#work")).not_to_contain_text(TEXT)

    visit(page, "/me/")
    page.locator("main summary", has_text=TEXT).click()
    check(page)

    owner = go(TaskMember.objects.get(task=round.task).user, f"/own/walk/review/{example.uuid}/")
    expect(owner.locator("main")).to_contain_text(TEXT)
    check(owner)
    Round.objects.update(state="closed")
    released(round)
    visit(owner, "/t/walk/data/")
    expect(owner.get_by_role("link", name="train.jsonl")).to_be_visible()
    check(owner)
