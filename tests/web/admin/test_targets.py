"""The admin. Targets: their form, the test that is sent."""

import json

import pytest
from django.urls import reverse

from core.accounts.models import LogEntry
from tasks.models import TargetModel
from tasks.targets.send_test import REASON_MESSAGES
from tests.support.admin_forms import target_form
from tests.support.factories import (
    scripted_target,
)
from tests.web.admin.conftest import (
    change_url,
)


def add_target(client, task, **changes):
    return client.post(reverse("admin:tasks_targetmodel_add"), target_form(task, **changes))


def test_editors_register_targets_of_their_own_tasks(editor, nli, foreign):
    refused = add_target(editor, foreign["tasks_task"])
    assert refused.context["adminform"].form.has_error("task", "invalid_choice")
    assert add_target(editor, nli.task).status_code == 302
    assert TargetModel.objects.get(name="mine").task == nli.task
    assert LogEntry.objects.filter(action="target.registered", target="mine").exists()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"options": '{"lable": "neutral"}'}, "__all__"),
        ({"options": '{"fail": "often"}'}, "__all__"),
        ({"adapter": "open_inference_v2"}, "__all__"),
        ({"options": "[1]"}, "options"),
        ({"serving": '"onnx"'}, "serving"),
        ({"adapter": "none"}, "adapter"),
        ({"serving": '{"speed": 9}'}, "serving"),
        ({"name": "not a slug"}, "name"),
    ],
)
def test_settings_that_the_adapter_refuses_are_form_errors(editor, nli, changes, field):
    page = add_target(editor, nli.task, **changes)
    assert page.status_code == 200
    assert [*page.context["adminform"].form.errors] == [field]
    assert not TargetModel.objects.exists()


def test_only_superusers_tie_a_secret_to_an_address(editor, boss, nli):
    add_target(editor, nli.task, secret_env="TARGET_OTHER_SECRET")
    target = TargetModel.objects.get()
    assert target.secret_env == ""
    form = target_form(nli.task, secret_env="TARGET_MINE_SECRET")
    boss.post(change_url("tasks_targetmodel", target), form)
    moved = target_form(nli.task, url="http://thief.test", secret_env="TARGET_X", revision="v2")
    assert editor.post(change_url("tasks_targetmodel", target), moved).status_code == 302
    target.refresh_from_db()
    assert (target.url, target.secret_env) == ("http://mine.test", "TARGET_MINE_SECRET")
    assert target.revision == "v2"


def send_test(client, target, **inputs):
    return client.post(reverse("own:target-test", args=[target.task.code, target.pk]), inputs)


def test_a_test_shows_answer_seconds_and_fingerprint(editor, nli):
    prob = {"entailment": 0.2, "neutral": 0.7, "contradiction": 0.1}
    target = scripted_target(nli, label="neutral", prob=prob)
    form = editor.get(reverse("own:target-test", args=["nli", target.pk])).context["form"]
    assert set(form.initial) >= {"premise", "hypothesis"}
    page = send_test(editor, target, premise="Rain fell.", hypothesis="It was wet.")
    assert json.loads(page.context["output"]) == {"label": "neutral"}
    assert "0.7" in page.text
    assert "seconds" in page.text
    assert json.loads(page.context["fingerprint"]) == {"digest": "scripted"}


def test_a_test_that_fails_says_why_in_words(editor, nli):
    target = scripted_target(nli, fail="down")
    page = send_test(editor, target, premise="Rain fell.", hypothesis="It was wet.")
    assert page.context["failure"] == REASON_MESSAGES["down"]
    assert page.context["detail"] in page.text
    page = send_test(editor, target, premise="Rain fell.")
    assert page.context["form"].has_error("hypothesis", "required")


def test_a_test_never_shows_the_secret(boss, nli, monkeypatch):
    monkeypatch.setenv("TARGET_MINE_SECRET", "opensesame")
    target = scripted_target(nli, output={"label": "opensesame"})
    TargetModel.objects.update(secret_env="TARGET_MINE_SECRET")
    page = send_test(boss, target, premise="Rain fell.", hypothesis="It was wet.")
    assert "opensesame" not in page.text
    assert "[secret]" in page.text
