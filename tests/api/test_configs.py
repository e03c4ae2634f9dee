"""The configuration of a task in the API: read, checked, stored."""

import pytest

from core.accounts.models import LogEntry
from tasks.config.loading import build_json_schema
from tasks.config_changes import HAS_CONTEXTS, ROUND_OPENED
from tasks.models import Task, TaskMember
from tests.support.writing import signed_in
from tests.support.writing_aids import worked_example

URL = "/api/v1/tasks/nli/config/"


@pytest.fixture
def editor(api, alice, nli):
    TaskMember.objects.create(task=nli.task, user=alice, role="editor")
    return api


def put(client, text, version, **more):
    return client.put(URL, {"config_text": text, "version": version, **more})


@pytest.mark.parametrize(
    ("role", "read", "write"),
    [("owner", 200, 200), ("editor", 200, 200), ("reviewer", 403, 403), ("viewer", 403, 403),
     (None, 404, 404)],
)  # fmt: skip
def test_who_may_read_and_write_it(api, alice, nli, role, read, write):
    version = "0"
    if role:
        TaskMember.objects.create(task=nli.task, user=alice, role=role)
        version = api.get(URL).json().get("version", version)
    assert api.get(URL).status_code == read
    text = nli.task.config_text + "\n"
    assert put(api, text, version).status_code == write
    assert (Task.objects.get(pk=nli.task.pk).config_text == text) == (write == 200)


def test_without_an_account_nobody_reads_it(anybody, nli):
    assert anybody.get(URL).status_code == 401
    assert put(anybody, "a", "b").status_code == 401


def test_writing_takes_the_scope_own(api_of, alice, nli):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    client = api_of(alice, "read", "annotate", "submit")
    assert put(client, nli.task.config_text, "x").status_code == 403


def test_a_change_is_shown_and_stored(editor, nli, alice):
    before = editor.get(URL).json()
    assert before["config_text"] == nli.task.config_text
    assert before["fixed_because"] == HAS_CONTEXTS
    text = before["config_text"].replace("language: en", "language: de")
    preview = put(editor, text, before["version"], dry_run=True).json()
    assert "+language: de" in preview["diff"]
    assert preview["version"] == before["version"]
    assert Task.objects.get().config.language == "en"
    stored = put(editor, text.replace("\n", "\r\n"), before["version"]).json()
    assert stored["diff"] == preview["diff"]
    assert editor.get(URL).json()["version"] == stored["version"] != before["version"]
    assert Task.objects.get().config_text == text
    assert LogEntry.objects.get(action="task.changed").actor == alice


def test_who_edited_an_older_text_is_told(editor, nli):
    version = editor.get(URL).json()["version"]
    put(editor, nli.task.config_text + "\n", version)
    for dry_run in (True, False):
        response = put(editor, nli.task.config_text, version, dry_run=dry_run)
        assert (response.status_code, response.json()["error"]["code"]) == (409, "stale")
        assert response.json()["error"]["fields"].keys() == {"version"}
    assert Task.objects.get().config_text == nli.task.config_text + "\n"


def test_each_problem_names_its_place(editor, nli):
    version = editor.get(URL).json()["version"]
    text = nli.task.config_text.replace("version: 1", "version: 2").replace("goal:", "goall:")
    for dry_run in (True, False):
        response = put(editor, text, version, dry_run=dry_run)
        assert response.status_code == 422
        found = response.json()["error"]["fields"]["config_text"]
        assert len(found) >= 2
        assert found[0].startswith("line 1, column 1, `version`: ")
        assert any("goall" in one for one in found)
    assert Task.objects.get().config_text == nli.task.config_text


def test_what_is_fixed_is_refused_with_its_place(editor, nli):
    nli.opened_at = "2026-01-01T00:00Z"
    nli.save()
    before = editor.get(URL).json()
    assert "input: hypothesis" in before["fixed"]
    text = nli.task.config_text.replace(
        "name: premise, type: text", "name: premise, type: long_text"
    )
    response = put(editor, text, before["version"])
    assert response.status_code == 422
    assert ROUND_OPENED[:-1] in str(response.json()["error"]["fields"]["config_text"])


def test_versions_are_listed_compared_and_brought_back(editor, nli, alice):
    versions = f"{URL}versions/"
    assert editor.get(versions).json()["results"] == []
    assert editor.get(f"{versions}1/").status_code == 404
    worked_example(nli, config_number=1)
    first = nli.task.config_text
    stored = put(editor, first + "\n", editor.get(URL).json()["version"]).json()
    newer, older = editor.get(versions).json()["results"]
    assert (newer["number"], newer["actor"], newer["examples"]) == (2, str(alice.annotator), 0)
    assert (older["number"], older["examples"]) == (1, 1)
    assert (newer["is_in_force"], older["is_in_force"]) == (True, False)
    assert newer["version"] == stored["version"]
    assert editor.get(f"{versions}1/").json() == {**older, "config_text": first}

    same = editor.get(f"{versions}1/compare/").json()
    assert (same["older"], same["newer"]) == (1, 2)
    assert same == editor.get(f"{versions}1/compare/?to=2").json()
    for odd in ("?to=7", "?to=x", "?with=1"):
        assert editor.get(f"{versions}1/compare/{odd}").status_code == 422

    back = f"{versions}1/return/"
    assert editor.post(back, {}).status_code == 422
    assert editor.post(back, {"version": older["version"]}).json()["error"]["code"] == "stale"
    known = {"version": newer["version"]}
    assert editor.post(back, {**known, "dry_run": True}).json()["version"] == newer["version"]
    assert editor.post(back, known).json()["version"] == older["version"]
    task = Task.objects.get(pk=nli.task.pk)
    assert (task.config_text, task.config_number) == (first, 3)
    nli.task.config_versions.filter(number=1).update(text="version: 2")
    refused = editor.post(back, {"version": older["version"]})
    assert refused.status_code == 422
    assert "number" in refused.json()["error"]["fields"]


def test_the_text_for_dynabench_with_what_it_leaves_out(editor, alice, nli):
    said = editor.get(f"{URL}dynabench/", {"version": "2.0"}).json()
    assert said["notes"]
    assert said["text"].startswith("# For Dynabench 2.0.\n# ")
    page = signed_in(alice).get("/own/nli/config/dynabench/?version=2.0")
    assert page.text == said["text"]
    for odd in ("?version=3.0", "?with=1"):
        assert editor.get(f"{URL}dynabench/{odd}").status_code == 422
    arena = "{version: 1, kind: arena, name: A}"
    Task.objects.filter(pk=nli.task.pk).update(config_text=arena)
    refused = editor.get(f"{URL}dynabench/")
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "no_counterpart")
    assert signed_in(alice).get("/own/nli/config/dynabench/").url == "/own/nli/config/"


@pytest.mark.parametrize(
    "body",
    [{}, {"config_text": "", "version": ""}, {"config_text": 1, "version": None}, [], "text",
     {"config_text": "a\0", "version": "b"}, {"config_text": "a" * 300_000, "version": "b"}],
)  # fmt: skip
def test_odd_bodies(editor, body):
    assert editor.put(URL, body).status_code == 422


def test_the_schema_is_everybodys(anybody, db):
    answer = anybody.get("/api/v1/config-schema/")
    assert answer.json() == build_json_schema()
