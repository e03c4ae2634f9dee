"""From sign-up to the public board of one's own task, by three accounts and no administrator."""

import json
import re

from django.core import mail
from playwright.sync_api import expect

from core.accounts.models import User
from evaluation.jobs import build_dataset
from evaluation.models import Dataset, EvaluationSetVersion
from evaluation.test_sets.selectors import read_input_rows
from evaluation.test_sets.source_services import make_missing_versions
from tasks.contexts import uploads
from tasks.models import Round
from tests.browser.conftest import (
    FOOLED,
    TEXTS,
    assign,
    sign_in,
    submit_button,
    text_box,
    verdict,
)
from tests.support.factories import UserFactory
from tests.support.submissions import work_off
from validation.models import Validation

CONTEXTS = {
    "name": "news.csv",
    "mimeType": "text/csv",
    "buffer": b"Sentence,Topic\nEvery Tuesday the ferry leaves at nine.,travel\n",
}
ANSWER = '{"label": "entailment", "prob": {"entailment": 0.9, "neutral": 0.1, "contradiction": 0}}'


def press(page, name):
    page.get_by_role("button", name=name, exact=True).first.click()


def invited(open_page, link):
    """The page of a new account that has followed the link; and its person."""
    person = UserFactory()
    page = open_page(person)
    page.goto(link)
    press(page, "Join task")
    return page, person


def write_and_judge(open_page, link):
    """A second account writes an example, and a third judges it; both are invited."""
    page, writer = invited(open_page, link)
    assign(writer, Round.objects.get(), goal="neutral")
    page.goto("/t/ferries/write/")
    text_box(page).fill(TEXTS["nli"])
    submit_button(page).click()
    expect(verdict(page)).to_have_class(FOOLED)

    page, _ = invited(open_page, link)
    page.goto("/t/ferries/judge/")
    page.locator("#judge-form button").first.click()
    expect(page.get_by_role("status")).to_have_text("Saved. 1 judged.")
    assert Validation.objects.get().example.annotator.user == writer
    return page


def upload_contexts(page, file):
    page.locator("[type=file]").set_input_files(file)
    page.locator("#look-through").click()
    page.get_by_label("premise").select_option("Sentence")
    page.locator("#match-columns").click()
    press(page, "Import 1 new text")


def set_up_target(page, name):
    """A target that is tested; a planned round without one takes it."""
    page.locator("a.button[href$='/targets/choose/']").click()
    page.locator("a[href$='/targets/new/']").click()
    page.get_by_label("Name").fill(name)
    page.get_by_label("Protocol", exact=True).select_option("scripted")
    page.locator("#expert-options > summary").click()
    page.get_by_label("Protocol options").fill(ANSWER)
    page.locator("#save-model").click()
    page.locator("#send-test").click()
    expect(page.locator("#answer-title")).to_be_focused()


def release(page):
    """The owner decides what has too few votes, closes the round and releases it."""
    page.goto("/own/ferries/review/examples/")
    page.locator("#act tbody [type=checkbox]").check()
    page.locator("#act [value=accept]").click()
    page.goto("/own/ferries/rounds/")
    page.locator("#round-1").get_by_role("link", name="Close round 1").click()
    press(page, "Close round 1")
    expect(page.locator("#round-1")).to_contain_text("closed")
    Round.objects.update(writing_until=None)  # who was writing has had the 15 minutes
    make_missing_versions()
    page.goto("/own/ferries/rounds/")
    page.locator("#round-1").get_by_role("link", name="Release round 1").click()
    press(page, "Release 1 row")
    expect(page.get_by_role("progressbar")).to_be_visible()
    build_dataset(Dataset.objects.get().pk)
    make_missing_versions()


def go_on(page):
    """The next round has the next target and the contexts of the last one, and opens."""
    page.goto("/own/ferries/targets/")
    set_up_target(page, "ferry-model-2")
    page.goto("/own/ferries/rounds/new/")
    expect(page.get_by_label("ferry-model", exact=True)).to_be_checked()  # as in round 1
    page.get_by_label("ferry-model", exact=True).uncheck()
    page.get_by_label("ferry-model-2").check()
    page.locator("#save").click()
    page.locator("#round-2").get_by_role("link", name="Open round 2").click()
    press(page, "Open round 2")
    expect(page.locator("#round-2")).to_contain_text("open")


def on_the_board(page, visitor):
    """The one who judged submits predictions, and everybody sees them on the board."""
    (row,) = read_input_rows(EvaluationSetVersion.objects.get())
    line = {"id": row["uid"], "output": {"label": "neutral"}}
    file = {"name": "a.jsonl", "mimeType": "text/plain", "buffer": json.dumps(line).encode()}
    page.goto("/t/ferries/submit/")
    page.locator("a[href$='kind=predictions']").click()
    page.locator("[name=name]").fill("By hand")
    page.locator("[name=evaluation_set]").select_option(index=1)
    page.locator("[type=file]").set_input_files(file)
    press(page, "Submit model")
    expect(page.get_by_role("heading", name="By hand")).to_be_visible()
    work_off()
    page.reload()
    press(page, "Publish")
    expect(page.locator("#unpublish")).to_be_visible()
    visitor.goto("/t/ferries/leaderboard/")
    expect(visitor.locator("main")).to_contain_text("By hand")
    visitor.locator("a[href$='/leaderboard/rounds/']").click()
    expect(visitor.get_by_role("row", name="By hand")).to_contain_text("100")


def test_a_task_of_ones_own(
    open_page, transactional_db, settings, live_server, monkeypatch, tmp_path
):
    monkeypatch.setattr(uploads, "UPLOADS_FOLDER", tmp_path)
    settings.NEW_TASKS, settings.ACCOUNT_EMAIL_VERIFICATION = "everybody", "mandatory"
    settings.MEDIA_ROOT, settings.SITE_URL = tmp_path, live_server.url
    page = open_page()
    page.goto("/accounts/signup/?next=/new/")
    page.locator("main [type=email]").fill("ada@example.com")
    page.locator("main [type=password]").fill("a long pass phrase")
    page.locator("#sign-up").click()
    expect(page).to_have_url(re.compile("confirm-email"))
    page.goto(re.search(r"https?://\S+confirm-email/\S+", mail.outbox[0].body)[0])
    page.locator("main form[action*=confirm-email] button").click()
    sign_in(page.context, live_server.url, User.objects.get())
    page.goto("/new/")
    page.get_by_role("link", name="Natural language inference").click()
    page.get_by_label("Name", exact=True).fill("Ferries")
    page.get_by_label("Code", exact=True).fill("ferries")
    press(page, "Create task")
    page.locator("#missing-contexts a").click()
    upload_contexts(page, CONTEXTS)
    page.locator("#missing-target a").click()
    set_up_target(page, "ferry-model")
    page.goto("/own/ferries/access/")
    page.locator("[name=is_visible]").check()
    page.locator("form").filter(has=page.locator("[name=is_visible]")).get_by_role("button").click()
    page.goto("/own/ferries/")
    press(page, "Open round 1")
    page.goto("/own/ferries/access/invitations/")
    page.locator("button[name=link]").click()
    link = page.locator("#key").text_content()
    judge = write_and_judge(open_page, link.removeprefix(settings.SITE_URL))
    release(page)
    go_on(page)
    on_the_board(judge, open_page())
