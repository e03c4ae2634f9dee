"""The name of a target is unique in its task; other tasks may use it, and learn nothing of it."""

import pytest
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from rest_framework.test import APIClient

from core.errors import Refused
from evaluation.training.services import find_free_name
from serving.errors import NotFoundError, ServingError
from serving.registry import ModelRegistry
from tasks.models import TargetModel, TaskMember
from tasks.rounds.loop import register_target
from tasks.targets.connect import find_registered_spec, list_registered_names
from tasks.targets.services import add_target
from tests.support.factories import RoundFactory, TaskFactory, UserFactory

pytestmark = pytest.mark.django_db
SERVED = {"adapter": "http", "url": ""}


@pytest.fixture
def tasks(settings, tmp_path):
    """Two tasks whose folders of models are found."""
    settings.MODELS_HOME = tmp_path
    return [RoundFactory(task=TaskFactory(code=code)).task for code in ("nli", "sentiment")]


@pytest.fixture
def owner(tasks):
    user = UserFactory(email="owner@example.org")
    for task in tasks:
        TaskMember.objects.create(task=task, user=user, role="owner")
    return user


def fields(name, **more):
    return {"name": name, "adapter": "http", "url": "https://models.example.org", **more}


def test_two_tasks_use_one_name_at_each_door(tasks, owner, client):
    first, second = tasks
    add_target(task=first, actor=owner, fields=fields("mine"))
    add_target(task=second, actor=owner, fields=fields("mine"))
    api = APIClient()
    api.force_authenticate(owner)
    client.force_login(owner)
    for name, task in (("api", first), ("api", second)):
        url = f"/api/v1/tasks/{task.code}/target-models/"
        assert api.post(url, fields(name), format="json").status_code == 201
    for task in tasks:
        told = fields("page", options="{}", serving="{}", gpus="0")
        assert client.post(f"/own/{task.code}/targets/new/", told).status_code == 302
        call_command("add_target", task.code, "https://models.example.org", name="cli", ask=False)
        register_target(task=task, name="job", source="org/name", revision="a" * 40)
    for task in tasks:
        assert {"mine", "api", "page", "cli", "job"} == {t.name for t in task.targets.all()}


def test_in_one_task_a_name_is_given_once_at_each_door(tasks, owner, client):
    task = tasks[0]
    add_target(task=task, actor=owner, fields=fields("mine"))
    api = APIClient()
    api.force_authenticate(owner)
    client.force_login(owner)
    url = f"/api/v1/tasks/{task.code}/target-models/"
    with pytest.raises(Refused):
        add_target(task=task, actor=owner, fields=fields("mine"))
    refused = api.post(url, fields("mine"), format="json")
    assert refused.status_code == 422
    assert refused.json()["error"]["fields"].keys() == {"name"}
    told = fields("mine", options="{}", serving="{}", gpus="0")
    assert client.post(f"/own/{task.code}/targets/new/", told).status_code == 422
    with pytest.raises(ValidationError):  # the admin's forms
        TargetModel(task=task, **fields("mine")).full_clean()
    assert [one.name for one in task.targets.all()] == ["mine"]


def test_a_command_changes_the_target_of_its_own_task(tasks, owner):
    first, second = tasks
    add_target(task=first, actor=owner, fields=fields("mine"))
    made = register_target(task=second, name="mine", url="https://second.example.org")
    assert made.task == second
    assert first.targets.get().url == "https://models.example.org"
    with pytest.raises(CommandError, match="no task"):
        call_command("add_target", "nowhere", "https://models.example.org", name="mine")


def test_a_training_takes_a_name_that_is_free_in_its_task(tasks):
    first, second = tasks
    name = find_free_name(first, 2)
    TargetModel.objects.create(task=second, name=name, **SERVED)
    assert find_free_name(first, 2) == name
    TargetModel.objects.create(task=first, name=name, **SERVED)
    assert find_free_name(first, 2) != name


@pytest.fixture
def registry(tasks, tmp_path):
    for number, task in enumerate(tasks):
        TargetModel.objects.create(task=task, name="mine", source=f"model-{number}", **SERVED)
    registry = ModelRegistry(find_registered_spec, list_registered_names, tmp_path / "cache")
    yield registry
    registry.close()


def test_the_model_server_knows_targets_of_one_name_apart(registry, tasks, monkeypatch):
    first, second = tasks
    assert list_registered_names() == ["mine", f"{second.pk}/mine"]
    sources = [find_registered_spec(f"{task.pk}/mine").source for task in tasks]
    assert sources == ["model-0", "model-1"]
    assert find_registered_spec("mine").source == "model-0"  # for who names no task
    assert find_registered_spec("0/mine") is None
    loaded = []
    monkeypatch.setattr(registry, "_load_entry", lambda entry: loaded.append(entry.spec.source))
    for task in tasks:
        with pytest.raises(ServingError):  # it is being loaded
            registry.get("mine", task.pk)
    registry.load_new_models()
    while len(loaded) < 2:
        pass
    assert sorted(loaded) == sources  # each once, whoever asks first
    assert registry.list_known_names(first.pk) == registry.list_known_names(second.pk) == ["mine"]
    with pytest.raises(NotFoundError):
        registry.get("mine", first.pk + second.pk)
