"""The owners' page about the configuration."""

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django.utils.html import escape

from core.accounts.models import LogEntry
from dynabench.manage.config import STALE_MESSAGE, describe_problem_counts
from tasks.config_changes import ROUND_OPENED, hash_text
from tasks.models import Round, Task, TaskMember
from tests.support.factories import TaskFactory, UserFactory
from tests.support.owner_pages import BROKEN, SHORT
from tests.support.writing_aids import worked_example
from tests.web.conftest import HTMX

URL = "/own/nli/config/"
CHECK, PREVIEW = URL + "check/", URL + "preview/"


def member(task, role):
    user = UserFactory(email=f"{role}@example.com")
    TaskMember.objects.create(task=task, user=user, role=role)
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def editor(nli):
    return member(nli.task, "editor")


@pytest.fixture
def text(nli):
    Task.objects.update(config_text=SHORT)
    return SHORT


def post(client, text, step="review", **more):
    base = hash_text(Task.objects.get(code="nli").config_text)
    return client.post(URL, {"text": text, "base": base, "step": step, **more})


def test_the_page_holds_the_text_and_its_warnings(editor, nli, text):
    response = editor.get(URL)
    page = response.text
    assert escape(text) in page
    assert len(response.context["problems"]) == 3
    assert 'class="history"' not in page
    assert 'name="preview"' in page


def test_an_error_names_its_line_and_links_to_it(editor, nli, text):
    response = post(editor, BROKEN)
    assert response.status_code == 422
    assert '<a href="#L14">line 14:5</a>' in response.text
    excerpt = re.search(r'<pre id="L14".*?<code>(.*?)</code>', response.text, re.S).group(1)
    assert excerpt == "    labels: [neutral, neutral]\n    ^"
    assert escape(BROKEN) in response.text
    assert "Error: Configuration" in response.text


def test_the_check_answers_with_the_problems_alone(editor, nli, text):
    response = editor.post(CHECK, {"text": BROKEN}, **HTMX)
    assert response.status_code == 200
    assert '<span hx-swap-oob="innerHTML:#status">1 error' in response.text
    assert "<textarea" not in response.text
    whole = editor.post(CHECK, {"text": BROKEN}).text
    assert escape(BROKEN) in whole
    fine = editor.post(CHECK, {"text": text.replace("\n", "\r\n")}, **HTMX).text
    assert "3 warnings" in fine
    assert "error" not in fine.replace("data-errors", "")
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize("step", ["review", "save"])
def test_a_bad_configuration_is_never_saved(editor, nli, text, step):
    for bad in (BROKEN, "", "[", "version: 1"):
        response = post(editor, bad, step)
        assert response.status_code == 422
        assert escape(bad) in response.text
    assert Task.objects.get().config_text == text
    assert not LogEntry.objects.exists()


def test_a_change_is_shown_before_it_is_saved(editor, nli, text):
    changed = text.replace("tries_per_day: 9", "tries_per_day: 7")
    response = post(editor, changed.replace("\n", "\r\n"))
    assert response.status_code == 200
    assert 'value="save"' in response.text
    assert "<ins>+" in response.text
    assert Task.objects.get().config_text == text
    back = post(editor, changed, "edit")
    assert escape(changed) in back.text
    assert post(editor, changed, "save").url == URL
    assert Task.objects.get().config_text == changed
    entry = LogEntry.objects.get(action="task.changed")
    assert (entry.actor.email, entry.target) == ("editor@example.com", "nli")
    assert "tries_per_day" in entry.data["diff"]
    page = editor.get(URL).text
    assert str(entry.actor.annotator) in page


def test_the_name_follows_the_text(editor, nli, text):
    changed = text.replace("name: Short", "name: Other").replace("A short one.", "Other words")
    post(editor, changed, "save")
    task = Task.objects.get()
    assert (task.name, task.summary) == ("Other", "Other words")


def test_nothing_is_changed(editor, nli, text):
    for step in ("review", "save"):
        assert post(editor, text, step).status_code == 200
    assert not LogEntry.objects.exists()


def test_of_two_editors_the_second_is_told(editor, nli, text):
    first, second = text + "\n# first\n", text + "\n# second\n"
    base = hash_text(text)
    post(editor, first, "save")
    response = editor.post(URL, {"text": second, "base": base, "step": "save"})
    assert response.status_code == 409
    assert STALE_MESSAGE in response.text
    assert "# second" in response.text
    assert Task.objects.get().config_text == first
    again = re.search(r'name="base" value="(\w+)"', response.text).group(1)
    # What the text carries goes before what a browser put beside it.
    restored = {f"text--{base}": second, "base": again}
    for step in ("review", "save"):
        assert editor.post(URL, {**restored, "step": step}).status_code == 409
    assert editor.post(URL, {"text": second, "base": again, "step": "save"}).status_code == 302


def test_what_the_opening_fixed_is_listed_and_refused(editor, nli, text):
    # The contexts are there.
    assert "<code>context: premise</code>" in editor.get(URL).text
    assert "<code>verdict</code>" not in editor.get(URL).text
    Round.objects.update(opened_at=timezone.now())
    page = editor.get(URL).text
    assert escape(ROUND_OPENED) in page
    for name in ("context: premise", "input: hypothesis", "output: label", "verdict"):
        assert f"<code>{name}</code>" in page
    changed = text.replace("hypothesis", "sentence")
    response = post(editor, changed, "save")
    assert response.status_code == 422
    assert escape(ROUND_OPENED) in response.text
    assert Task.objects.get().config_text == text


@pytest.mark.parametrize(("page", "words"), [("write", "write-form"), ("judge", "judge-form")])
def test_the_preview_shows_the_text_that_is_typed(editor, nli, text, page, words):
    changed = text.replace("Read first.", "Completely new.")
    response = editor.post(PREVIEW, {"text": changed, "page": page})
    assert response.status_code == 200
    assert f'id="{words}"' in response.text
    assert "Completely new" in response.text
    assert nli.contexts.earliest("pk").fields["premise"] in response.text
    assert Task.objects.get().config_text == text


def test_the_preview_waits_for_the_errors(editor, nli, text):
    page = editor.post(PREVIEW, {"text": BROKEN})
    assert page.status_code == 200
    assert 'id="no-preview"' in page.text


@pytest.mark.parametrize("code", ["nli", "qa", "sentiment", "hate-speech", "vqa"])
@pytest.mark.parametrize("page", ["write", "judge"])
def test_a_task_without_contexts_has_a_preview(db, code, page):
    client = member(TaskFactory(code=code), "owner")
    text = Task.objects.get().config_text
    for sent in (text, re.sub(r"(?ms)^examples:.*?^(?=\w)", "", text)):
        response = client.post(f"/own/{code}/config/preview/", {"text": sent, "page": page})
        assert response.status_code == 200
        assert "-form" in response.text


def test_only_the_preview_may_be_framed_and_only_here(editor, nli):
    framed = editor.get(PREVIEW)
    assert "frame-ancestors 'self'" in framed["Content-Security-Policy"]
    assert framed["X-Frame-Options"] == "SAMEORIGIN"
    for path in (URL, "/", "/t/nli/write/"):
        other = editor.get(path)
        assert "frame-ancestors 'none'" in other["Content-Security-Policy"]
        assert other["X-Frame-Options"] == "DENY"
    usual = other["Content-Security-Policy"].replace("frame-ancestors 'none'", "")
    assert framed["Content-Security-Policy"].replace("frame-ancestors 'self'", "") == usual


def test_problems_are_counted_in_words(nli):
    from tasks.config.parsing import Problem

    error, warning = (Problem(kind, "", 1, 1, "m", "f") for kind in ("error", "warning"))
    assert describe_problem_counts([error, warning, error]) == "2 errors, 1 warning"


def test_each_saved_text_is_a_version_that_can_be_compared_and_brought_back(editor, nli, text):
    history = URL + "history/"
    assert list(editor.get(history).context["rows"]) == []
    second = text.replace("name: ", "name: New ", 1)
    assert post(editor, second, "save").status_code == 302
    example = worked_example(nli, config_number=1)
    page = editor.get(history)
    shown = [(one.number, one.text, written) for one, written in page.context["rows"]]
    assert shown == [(2, second, 0), (1, text, 1)]
    assert [line[:1] for line in page.context["diff"]] == ["@", " ", "-", "+", " "]
    assert editor.get(history, {"older": 2, "newer": 2}).context["diff"] == []
    assert editor.get(history, {"older": 9, "newer": 2}).status_code == 422
    review = editor.post(URL, {"text": text, "base": page.context["base"]})
    assert review.context["diff"]
    with CaptureQueriesContext(connection) as two:
        editor.get(history)
    assert post(editor, text, "save").status_code == 302
    with CaptureQueriesContext(connection) as three:
        editor.get(history)
    assert len(three) == len(two)
    task = Task.objects.get(code="nli")
    assert (task.config_text, task.config_number) == (text, 3)
    assert list(task.config_versions.values_list("number", "text", "actor__email")) == [
        (3, text, "editor@example.com"), (2, second, "editor@example.com"), (1, text, None),
    ]  # fmt: skip
    assert member(nli.task, "reviewer").get(history).status_code == 403
    assert "configuration 1" in editor.get(f"/own/nli/review/{example.uuid}/").text


def test_the_page_begins_with_the_settings_of_each_step(editor, nli):
    owner, task = editor, nli.task
    page = owner.get(f"/own/{task.code}/config/")
    rows = {row.step: row.facts for row in page.context["rows"]}
    assert rows["goal"][0] == task.config.name
    assert all(rows[step] for step in rows)
    steps = re.findall(r'<li data-step="(\w+)">', page.text)
    assert steps == [*rows]
    assert len(steps) == 6
    chosen = owner.post(f"/own/{task.code}/config/steps/", {"step": steps[-1]}).url
    assert chosen.endswith(f"/{steps[-1]}/")
    assert owner.post(f"/own/{task.code}/config/steps/", {"step": "other"}).url.endswith("/goal/")
