"""The admin. Generators: their form, and who may set what."""

import pytest
from django.urls import reverse

from core.accounts.models import LogEntry
from tasks.models import Generator
from tests.web.admin.conftest import change_url

ADD = "admin:tasks_generator_add"


def form(task, **changes):
    settings = {"task": task.pk, "name": "muse", "adapter": "openai_chat"}
    settings |= {"url": "https://muse.test/v1", "options": '{"model": "m"}', "secret_env": ""}
    return settings | changes


def test_editors_register_a_generator_of_their_own_task(editor, nli, foreign):
    Generator.objects.all().delete()
    refused = editor.post(reverse(ADD), form(foreign["tasks_task"]))
    assert refused.context["adminform"].form.has_error("task", "invalid_choice")
    assert editor.post(reverse(ADD), form(nli.task)).status_code == 302
    made = Generator.objects.get()
    assert (made.task, made.options) == (nli.task, {"model": "m"})
    assert LogEntry.objects.filter(action="generator.registered").exists()
    again = editor.post(reverse(ADD), form(nli.task, name="second"))
    assert "already exists" in again.text


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"options": "{}"}, "__all__"),
        ({"options": '{"model": "m", "modell": 1}'}, "__all__"),
        ({"options": "[1]"}, "options"),
        ({"options": '{"model": "\\u0000"}'}, "options"),
        ({"adapter": "dynalab"}, "adapter"),
        ({"url": ""}, "url"),
    ],
    ids=str,
)
def test_settings_that_the_adapter_refuses_are_form_errors(editor, nli, changes, field):
    page = editor.post(reverse(ADD), form(nli.task, **changes))
    assert page.status_code == 200
    assert [*page.context["adminform"].form.errors] == [field]
    assert not Generator.objects.exists()


def test_only_superusers_tie_a_secret_to_an_address(editor, boss, nli):
    editor.post(reverse(ADD), form(nli.task, secret_env="TARGET_OTHER_SECRET"))
    made = Generator.objects.get()
    assert made.secret_env == ""
    url = change_url("tasks_generator", made)
    boss.post(url, form(nli.task, secret_env="TARGET_MUSE_SECRET"))
    editor.post(url, form(nli.task, url="https://evil.test/v1"))
    made.refresh_from_db()
    assert (made.secret_env, made.url) == ("TARGET_MUSE_SECRET", "https://muse.test/v1")
    assert LogEntry.objects.filter(action="generator.changed").exists()
