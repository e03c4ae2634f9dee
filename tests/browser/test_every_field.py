"""Fields of every type in every place from the form to the release, with and without a script."""

import json

import pytest
from playwright.sync_api import expect

from annotation.models import Example
from tasks.models import Round, TaskMember
from tests.browser.conftest import audit, submit_button, verdict, visit
from tests.support import media
from tests.support.factories import UserFactory, scripted_target
from tests.support.field_walk import MEDIA, TASKS, TEXT, TURNS, Walk, opened, released
from validation.models import Validation

pytestmark = pytest.mark.nightly("fields")


def without_returns(sent):
    """Carriage returns are added when the browser sends the form."""
    if isinstance(sent, list):
        return [without_returns(one) for one in sent]
    return sent.replace("\r", "")


def fill(page, walk, prefix="a"):
    """Fill in the fields of the walk as the form would send them."""
    for kind in walk.kinds:
        name = f"{prefix}_{kind}"
        if kind in MEDIA:
            file = {"name": f"mine.{kind}", "mimeType": "text/html", "buffer": media.FILES[kind]}
            page.locator(f"[name={name}_file]").set_input_files(file)
            page.locator(f"[name={name}_alt]").fill(media.WORDS[kind])
            continue
        sent = without_returns(walk.sent[f"a_{kind}"])
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


def shows(page, walk, values):
    """The page shows the values of these fields: words, pictures that are decoded, recordings."""
    for name, value in values.items():
        if name not in walk.config.media_fields:
            words = walk.config.display(name, value)
            expect(page.locator("main")).to_contain_text(words)
            continue
        file = page.locator(f"main [src='/media/{value['digest']}/']").first
        expect(file).to_be_visible()
        if walk.config.get_component(name).type == "image":
            assert file.evaluate("one => one.decode().then(() => one.naturalWidth)") == 8


def write(page, walk, check):
    """Write an example that fools the model, and say why."""
    visit(page, f"/t/{walk.code}/write/")
    shows(page, walk, walk.given)
    if walk.is_talk:
        page.get_by_label("Your turn").fill(TURNS[0]["text"])
        page.locator("#send").click()
        page.locator("[name=a_chat]").check()
    else:
        page.locator("[id^=id_text--]").fill(TEXT)
        if not walk.is_target:
            page.locator("[name=label][value=yes]").check()
    if walk.written and not walk.is_talk:
        fill(page, walk)
    if walk.place != "output":  # of which only the verdict differs
        check(page)
    submit_button(page).click()
    expect(verdict(page)).to_be_visible()
    shows(page, walk, walk.wrong)
    if walk.is_target:
        shows(page, walk, walk.written)
    if walk.place == "metadata":
        page.locator("#why summary").click()
        fill(page, walk)
    check(page)
    if walk.is_talk:
        page.locator("[name=model_right][value=no]").click()
        expect(page.locator("[name=model_right]")).to_have_count(0)
    if walk.place == "metadata":
        page.locator("#why button:not([value])").click()
        expect(page.locator("#why details > .hint")).to_be_visible()
    example = Example.objects.get(round=walk.round)
    assert walk.written.items() <= example.inputs.items()
    assert example.outcome == "fooled"
    assert example.metadata == (walk.stored if walk.place == "metadata" else {})
    return example


def judge(page, walk, check):
    """Say that it is right, and answer what is asked then."""
    visit(page, f"/t/{walk.code}/judge/")
    shows(page, walk, walk.given | walk.written)
    if walk.place != "output":
        check(page)
    said = "incorrect" if walk.is_talk else "correct"  # of the model's answer, or the author's
    page.locator(f'[name=answer][value="verdict:{said}"]').click()
    given = {}
    if walk.place == "metadata":
        expect(page.locator("#after-title")).to_be_visible()
        fill(page, walk, "after")
        check(page)
        page.locator("#save-after").click()
        given = {name.replace("a_", "after_", 1): value for name, value in walk.stored.items()}
    expect(page.locator("#nothing-to-judge")).to_be_visible()
    assert Validation.objects.get(example__round=walk.round).metadata == given


def review(page, walk, example, check):
    """The owner reads everything."""
    visit(page, f"/own/{walk.code}/review/{example.uuid}/")
    shows(page, walk, walk.stored | walk.wrong)
    if walk.place != "output":
        check(page)


def release(page, walk, example, check):
    """The release holds it, and its page is there; of all others: tests/web/test_field_types.py."""
    Round.objects.filter(pk=walk.round.pk).update(state="closed")
    walk.round.refresh_from_db()
    row, _ = released(walk.round)
    assert json.loads(row["input_json"]) == example.inputs
    visit(page, f"/t/{walk.code}/rounds/1/data/")
    expect(page.get_by_role("link", name="train.jsonl")).to_be_visible()
    check(page)


@pytest.mark.parametrize("javascript", [True, False], ids=["script", "no-script"])
@pytest.mark.parametrize("place", TASKS)
def test_from_the_form_to_the_release(place, javascript, alice, open_page, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    walks = [Walk(place, kinds) for kinds in TASKS[place]]
    for number, walk in enumerate(walks):
        walk.code = f"walk{number}"
        walk.round, _ = opened(walk.text, code=walk.code, **walk.given)
        walk.config = walk.round.task.config
        scripted_target(walk.round, walk.code, output=walk.wrong)

    look = ("light", 320) if javascript else ("dark", 320)

    def check(page):
        audit(page, look)

    owner = TaskMember.objects.filter(role="owner").first().user
    mine, theirs, owners = (
        open_page(user, java_script_enabled=javascript) for user in (alice, UserFactory(), owner)
    )
    examples = [write(mine, walk, check) for walk in walks]
    # Who judges or reviews gets no field of the answer to fill in, so no script either.
    looked_at = walks[:1] if place == "output" and not javascript else walks
    for walk in looked_at:
        judge(theirs, walk, check)
    visit(mine, "/me/")
    for row in mine.locator("main li summary").all():
        row.click()
    for walk in walks:
        files = {name: walk.written[name] for name in {*walk.written} & {*walk.config.media_fields}}
        shows(mine, walk, walk.wrong | files)
        expect(mine.locator("main")).to_contain_text(walk.words)
    check(mine)
    for walk, example in zip(looked_at, examples, strict=False):
        review(owners, walk, example, check)
    release(owners, walks[0], examples[0], check)
