"""From sign-up to a judged example of one's own task, by three accounts and no administrator."""

import re

from django.core import mail
from playwright.sync_api import expect

from dynabench.accounts.models import User
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
from validation.models import Validation

CONTEXTS = {
    "name": "news.csv",
    "mimeType": "text/csv",
    "buffer": b"Sentence,Topic\nEvery Tuesday the ferry leaves at nine.,travel\n",
}
ANSWER = '{"label": "entailment", "prob": {"entailment": 0.9, "neutral": 0.1, "contradiction": 0}}'


def write_and_judge(open_page):
    """A second account writes an example, and a third judges it."""
    writer = UserFactory()
    assign(writer, Round.objects.get(), goal="neutral")
    page = open_page(writer)
    page.goto("/t/ferries/write/")
    text_box(page).fill(TEXTS["nli"])
    submit_button(page).click()
    expect(verdict(page)).to_have_class(FOOLED)

    page = open_page(UserFactory())
    page.goto("/t/ferries/judge/")
    page.locator("#judge-form button").first.click()
    expect(page.get_by_role("status")).to_have_text("Saved. 1 judged.")
    assert Validation.objects.get().example.annotator.user == writer


def test_a_task_of_ones_own(
    open_page, transactional_db, settings, live_server, monkeypatch, tmp_path
):
    monkeypatch.setattr(uploads, "UPLOADS", tmp_path)
    settings.NEW_TASKS, settings.ACCOUNT_EMAIL_VERIFICATION = "everybody", "mandatory"
    page = open_page()

    def press(name):
        page.get_by_role("button", name=name, exact=True).first.click()

    page.goto("/accounts/signup/?next=/new/")
    page.locator("main [type=email]").fill("ada@example.com")
    page.locator("main [type=password]").fill("a long pass phrase")
    press("Create my account")
    expect(page).to_have_url(re.compile("confirm-email"))
    page.goto(re.search(r"https?://\S+confirm-email/\S+", mail.outbox[0].body)[0])
    press("Confirm")
    sign_in(page.context, live_server.url, User.objects.get())
    page.goto("/new/")
    page.get_by_role("link", name="Natural language inference").click()
    page.get_by_label("Name", exact=True).fill("Ferries")
    page.get_by_label("Code", exact=True).fill("ferries")
    press("Make the task")
    page.get_by_role("link", name="The round has no contexts").click()
    page.locator("[type=file]").set_input_files(CONTEXTS)
    press("Show what it brings")
    page.get_by_label("premise").select_option("Sentence")
    press("Match them and show again")
    press("Store 1 new context")
    page.get_by_role("link", name="The round has no target").click()
    page.get_by_role("link", name="Add a target").click()
    page.get_by_role("link", name="Set it up").click()
    page.get_by_label("Name").fill("ferry-model")
    page.get_by_label("Adapter").select_option("scripted")
    page.get_by_label("Options").fill(ANSWER)
    press("Save")
    press("Send the test")
    expect(page.get_by_role("heading", name="Answer after")).to_be_focused()
    page.goto("/own/ferries/rounds/1/edit/")
    page.get_by_label("ferry-model").check()
    press("Save the plan")
    page.goto("/own/ferries/access/")
    page.get_by_label("Everybody sees the task").check()
    page.locator("form").filter(has=page.get_by_label("Everybody sees")).get_by_role(
        "button"
    ).click()
    page.get_by_role("link", name="Dashboard").click()
    press("Open round 1")
    write_and_judge(open_page)
