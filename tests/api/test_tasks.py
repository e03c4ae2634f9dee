"""Tasks and targets in the API."""

from base64 import b64encode

import pytest

from core.accounts.models import LogEntry, confirm_address
from tasks.models import Task, TaskMember
from tasks.services import OFFICIAL_FOLDER
from tests.support.factories import RoundFactory, TaskFactory, UserFactory, scripted_target

URL = "/api/v1/tasks/"
TEXT = (OFFICIAL_FOLDER / "nli" / "task.yaml").read_text()
OLD = """
context:
- {name: context, type: string}
input:
- {name: hypothesis, type: string}
- {name: label, type: multiclass, labels: [entailed, neutral], as_goal_message: true}
model_wrong_metric: {type: exact_match, reference_names: [label]}
output:
- {name: label}
perf_metric: {type: macro_f1, reference_name: label}
extra_metric: {type: none}
"""


@pytest.fixture
def boss(api_of, db):
    return api_of(UserFactory(email="boss@example.com", is_superuser=True))


def listed(client, url=URL, **asked):
    response = client.get(url, asked)
    assert response.status_code == 200
    return response.json()["results"]


@pytest.fixture
def hidden(nli):
    return TaskFactory(code="hidden", config_text=nli.task.config_text, is_visible=False)


def test_everybody_reads_visible_tasks_and_members_theirs(anybody, api, alice, nli, hidden):
    assert [task["code"] for task in listed(anybody)] == ["nli"]
    assert [task["code"] for task in listed(api)] == ["nli"]
    assert anybody.get(f"{URL}hidden/").status_code == 404
    assert api.get(f"{URL}hidden/").status_code == 404
    TaskMember.objects.create(task=hidden, user=alice, role="viewer")
    assert [task["code"] for task in listed(api)] == ["nli", "hidden"]
    assert api.get(f"{URL}hidden/").json()["role"] == "viewer"


def test_a_superuser_reads_all(api, alice, hidden):
    alice.is_superuser = True
    alice.save(update_fields=["is_superuser"])
    assert len(listed(api)) == 2


def test_search_narrows_the_list(anybody, nli, qa):
    assert [task["code"] for task in listed(anybody, search="NL")] == ["nli"]
    assert anybody.get(URL, {"group": "texts"}).status_code == 422
    assert anybody.get(URL, {"search": "\0"}).status_code == 422


def test_pages_follow_the_cursor(anybody, nli, qa, sentiment):
    first = anybody.get(URL, {"page_size": 2}).json()
    second = anybody.get(first["next"]).json()
    found = [task["code"] for task in first["results"] + second["results"]]
    assert found == ["nli", "qa", "sentiment"]
    assert second["next"] is None


@pytest.mark.parametrize("cursor", ["p=abc", "p=%00", "p=", "o=x", "r=x", "\xff"])
def test_a_cursor_that_nobody_gave(anybody, nli, cursor):
    told = b64encode(cursor.encode()).decode()
    for text in (told, cursor):
        response = anybody.get(URL, {"cursor": text})
        assert response.status_code == 422
        assert [*response.json()["error"]["fields"]] == ["cursor"]
    far = b64encode(b"p=99999999999999999999").decode()
    assert listed(anybody, cursor=far) == []


def test_a_task_in_a_list_says_which_rounds_have_opened(anybody, nli):
    RoundFactory(task=nli.task, number=2, state="draft")
    (task,) = listed(anybody)
    assert [(one["number"], one["state"]) for one in task["rounds"]] == [(1, "open")]
    assert task["language"] == "en"


def test_a_task_says_what_it_asks(anybody, nli):
    task = anybody.get(f"{URL}nli/").json()
    config = nli.task.config
    assert task["instructions"] == config.instructions
    assert task["model_fields"] == ["premise", "hypothesis"]
    assert (task["target_fields"], task["answer_field"]) == (["label"], "label")
    assert [field["name"] for field in task["context"]] == ["premise"]
    assert [field["name"] for field in task["input"]] == [one.name for one in config.input]
    assert [one["value"] for one in task["input"][-1]["labels"]] == list(config.goal_choices)
    assert task["verdict"] == {"type": "exact_match", "fields": ["label"]}
    assert task["metrics"] == {"main": "accuracy", "names": list(config.metrics.names)}
    assert task["weights"] == config.weights
    assert len(task["examples"]["good"]) == len(config.examples.good)
    assert task["role"] is None


@pytest.mark.parametrize(
    "code", [folder.parent.name for folder in OFFICIAL_FOLDER.glob("*/task.yaml")]
)
def test_every_kind_of_task_can_be_told(anybody, db, code):
    task = TaskFactory(code=code)
    told = anybody.get(f"{URL}{code}/").json()
    assert (told["content_warning"] is not None) == task.is_sensitive == told["is_sensitive"]


@pytest.mark.parametrize("code", ["nobody", "a" * 300, "NLI"])
def test_what_is_not_there(anybody, nli, code):
    assert anybody.get(f"{URL}{code}/").status_code == 404


def test_targets_have_the_names_that_people_read(anybody, api, alice, nli):
    for name in ("first", "second"):
        target = scripted_target(nli, name=name)
        target.url, target.secret_env = "https://secret.example.com", "TARGET_SECRET"
        target.save()
    nli.show_target_name = False
    nli.save()
    planned = RoundFactory(task=nli.task, number=2, state="draft")
    scripted_target(planned, name="third")
    url = f"{URL}nli/targets/"
    assert listed(anybody, url) == [
        {"round": 1, "name": "Model A"}, {"round": 1, "name": "Model B"}
    ]  # fmt: skip
    assert "secret" not in str(listed(anybody, url)).lower()
    TaskMember.objects.create(task=nli.task, user=alice, role="reviewer")
    assert [one["name"] for one in listed(api, url)] == ["first", "second", "third"]
    assert "secret" not in str(listed(api, url)).lower()
    nli.state = "closed"
    nli.save()
    assert [one["name"] for one in listed(anybody, url)] == ["first", "second"]


def test_whom_the_site_allows_owns_the_task_that_is_made(settings, api, alice):
    asked = {"code": "mine", "config_text": TEXT}
    assert api.post(URL, asked).status_code == 403
    settings.NEW_TASKS = "everybody"
    assert api.post(URL, asked).status_code == 403
    confirm_address(alice)
    told = api.post(URL, asked)
    assert told.status_code == 201, told.json()
    assert (told.json()["role"], told.json()["is_visible"]) == ("owner", False)
    made = Task.objects.get()
    assert (made.made_by, made.rounds.get().state) == (alice, "draft")
    settings.NEW_TASKS_AT_ONCE = 1
    again = api.post(URL, {**asked, "code": "more"})
    assert (again.status_code, again.json()["error"]["code"]) == (409, "quota")


def test_administrators_make_tasks(boss):
    response = boss.post(URL, {"code": "again", "config_text": TEXT, "is_visible": False})
    assert response.status_code == 201
    told = response.json()
    made = Task.objects.get()
    assert (told["code"], told["name"], told["role"]) == ("again", made.config.name, None)
    assert (told["is_visible"], told["allow_try_out"], told["is_official"]) == (False, True, False)
    assert (told["rounds"], told["notes"]) == ([], [])
    assert (made.config_text, made.summary) == (TEXT, made.config.summary)
    told.pop("notes")
    assert (told.pop("config_text"), told.pop("served_models")) == (TEXT, [])
    assert boss.get(f"{URL}again/").json() == told
    entry = LogEntry.objects.get(action="task.created")
    assert (entry.actor.email, entry.target) == ("boss@example.com", "again")
    assert f"+name: {made.name}" in entry.data["diff"]


def test_a_new_task_may_have_a_configuration_of_dynabench_1(boss):
    told = boss.post(URL, {"code": "old", "config_text": OLD.replace("\n", "\r\n")}).json()
    assert (told["name"], told["is_visible"]) == ("Imported task", True)
    assert [field["name"] for field in told["input"]] == ["hypothesis", "label"]
    assert told["notes"][0] == "Converted from Dynabench 1.0."
    assert any("`extra_metric`" in note for note in told["notes"])
    assert Task.objects.get().config.version == 1


def test_a_configuration_that_cannot_be_used_makes_no_task(boss):
    text = TEXT.replace("\nverdict:", "\nverdcit:")
    response = boss.post(URL, {"code": "again", "config_text": text})
    assert response.status_code == 422
    line = text[: text.index("\nverdcit:")].count("\n") + 2
    found = response.json()["error"]["fields"]["config_text"]
    assert any(f"line {line}, column 1, `verdcit`" in one for one in found)
    assert not Task.objects.exists()


@pytest.mark.parametrize(
    ("changes", "field"),
    [({"code": "Again"}, "code"), ({"code": "a--b"}, "code"), ({"code": "a" * 41}, "code"),
     ({"code": None}, "code"), ({"code": "a\0"}, "code"), ({"config_text": ""}, "config_text"),
     ({"config_text": "just words"}, "config_text"), ({"config_text": "[1]"}, "config_text"),
     ({"config_text": "a: [b"}, "config_text"), ({"config_text": 5}, "config_text"),
     ({"config_text": "name: 5"}, "config_text"),
     ({"is_visible": "perhaps"}, "is_visible"), ({"allow_try_out": None}, "allow_try_out")],
)  # fmt: skip
def test_what_a_new_task_cannot_be(boss, changes, field):
    response = boss.post(URL, {"code": "again", "config_text": TEXT, **changes})
    assert response.status_code == 422
    assert set(response.json()["error"]["fields"]) == {field}
    assert not Task.objects.exists()


def test_a_code_is_given_once(boss, nli):
    response = boss.post(URL, {"code": "nli", "config_text": OLD})
    assert (response.status_code, response.json()["error"]["code"]) == (409, "exists")
    assert response.json()["error"]["fields"].keys() == {"code"}
    assert Task.objects.get().config_text == nli.task.config_text


def test_nobody_else_makes_tasks(api, anybody, api_of, alice, nli):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    asked = {"code": "again", "config_text": TEXT}
    response = api.post(URL, asked)
    assert response.status_code == 403
    assert anybody.post(URL, asked).status_code == 401
    boss = UserFactory(is_superuser=True)
    assert api_of(boss, "read", "annotate", "submit").post(URL, asked).status_code == 403
    assert Task.objects.count() == 1


@pytest.mark.parametrize(
    ("role", "status"),
    [("owner", 200), ("editor", 403), ("reviewer", 403), ("viewer", 403), (None, 404)],
)
def test_who_may_hide_a_task(api, alice, nli, role, status):
    if role:
        TaskMember.objects.create(task=nli.task, user=alice, role=role)
    assert api.patch(f"{URL}nli/", {"is_visible": False}).status_code == status
    assert Task.objects.get().is_visible == (status != 200)


def test_a_task_is_hidden_and_its_try_out_closed(api, anybody, alice, nli):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    told = api.patch(f"{URL}nli/", {"allow_try_out": False}).json()
    assert (told["is_visible"], told["allow_try_out"], told["role"]) == (True, False, "owner")
    told = api.patch(f"{URL}nli/", {"is_visible": False, "allow_try_out": False}).json()
    assert (told["is_visible"], told["allow_try_out"]) == (False, False)
    assert anybody.get(f"{URL}nli/").status_code == 404
    entries = LogEntry.objects.filter(action="task.changed").order_by("pk")
    found = [entry.data["fields"] for entry in entries]
    assert found == [["allow_try_out"], ["is_visible"]]
    for body in ({"is_visible": None}, {"allow_try_out": "perhaps"}, []):
        assert api.patch(f"{URL}nli/", body).status_code == 422
