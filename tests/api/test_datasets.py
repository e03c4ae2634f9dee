"""Released files and exports through the API."""

# ruff: noqa: F811  (fixtures are named where they are used)

import hashlib
import json

import pytest

from evaluation.jobs import build_dataset
from evaluation.models import Dataset
from tasks.models import TaskMember
from tests.support.api_errors import error
from tests.support.releases import (  # noqa: F401
    _own_storage,
    closed,
    people,
    released,
)
from tests.support.roles import refused

URL = "/api/v1/tasks/nli/datasets/"
FILES = "/api/v1/tasks/nli/rounds/1/datasets/1/files/"
EXPORT = "/api/v1/tasks/nli/rounds/1/export/"


@pytest.fixture
def data(closed):
    """A released round of which the test split is private."""
    return released(closed, private_test=True)


def names(client):
    (one,) = client.get(URL).json()["results"]
    return {file["name"] for file in one["files"]}


def test_versions_are_listed_with_their_files(anybody, data):
    (one,) = anybody.get(URL).json()["results"]
    assert (one["name"], one["round"], one["version"]) == ("nli-round1-v1", 1, 1)
    assert one["license"] == "cc-by-4.0"
    assert one["released_at"]
    file = next(file for file in one["files"] if file["name"] == "train.jsonl")
    assert file["url"] == f"http://testserver{FILES}train.jsonl"
    reply = anybody.get(file["url"])
    content = b"".join(reply)
    assert len(content) == file["size"]
    assert hashlib.sha256(content).hexdigest() == file["sha256"] == reply["X-Content-SHA256"]
    Dataset.objects.update(state="running")
    assert anybody.get(URL).json()["results"] == []
    assert anybody.get(file["url"]).status_code == 404


def test_a_download_goes_on_where_it_broke_off(anybody, data):
    whole = b"".join(anybody.get(f"{FILES}train.jsonl"))
    for range, expected in (("bytes=10-", whole[10:]), ("bytes=3-6", whole[3:7])):
        part = anybody.get(f"{FILES}train.jsonl", headers={"Range": range})
        assert part.status_code == 206
        assert b"".join(part) == expected
    past = anybody.get(f"{FILES}train.jsonl", headers={"Range": f"bytes={len(whole)}-"})
    assert (past.status_code, past.json()["error"]["code"]) == (416, "range")
    changed = {"Range": "bytes=10-", "If-Range": '"another"'}
    assert b"".join(anybody.get(f"{FILES}train.jsonl", headers=changed)) == whole


@pytest.mark.parametrize("role", [None, "viewer", "owner"])
def test_private_files_and_exports_are_for_members(api, alice, data, role):
    if role:
        TaskMember.objects.create(task=data.round.task, user=alice, role=role)
    assert ("test.jsonl" in names(api)) == bool(role)
    assert "train.jsonl" in names(api)
    status = 200 if role else 404
    assert api.get(f"{FILES}test.jsonl").status_code == status
    reply = api.get(EXPORT)
    assert reply.status_code == status
    if role:
        rows = [json.loads(line) for line in b"".join(reply).splitlines()]
        assert len(rows) > 10
        assert {row["round"] for row in rows} == {1}


def test_without_an_account_no_export_is_made(anybody, data):
    assert anybody.get(EXPORT).status_code == 401


def test_exports_are_limited_apart(api, alice, closed, monkeypatch):
    from core.web.throttles import ScopeThrottle

    TaskMember.objects.create(task=closed.task, user=alice, role="viewer")
    monkeypatch.setattr(ScopeThrottle, "THROTTLE_RATES", {"read": "9/min", "export": "1/min"})
    assert [api.get(EXPORT).status_code for _ in range(2)] == [200, 429]
    assert api.get(URL).status_code == 200


def test_a_hidden_task_has_no_data(api, data):
    data.round.task.is_visible = False
    data.round.task.save(update_fields=["is_visible"])
    for url in (URL, f"{FILES}train.jsonl", EXPORT):
        assert api.get(url).status_code == 404


@pytest.mark.parametrize(
    "url",
    [
        f"{FILES}nothing.txt", f"{FILES}..%2F..%2Fsettings.py",
        f"{FILES.replace('/1/files', '/99999999999999999999/files')}train.jsonl",
        EXPORT.replace("/1/", "/99999999999999999999/"),
    ],
)  # fmt: skip
def test_what_is_not_there(api, alice, data, url):
    TaskMember.objects.create(task=data.round.task, user=alice, role="owner")
    reply = api.get(url)
    assert (reply.status_code, error(reply)["code"]) == (404, "not_found")


# Releasing

RELEASES = "/api/v1/tasks/nli/rounds/1/datasets/"


def test_an_owner_releases_a_round(api, alice, closed):
    TaskMember.objects.create(task=closed.task, user=alice, role="owner")
    told = {"license": "cc-by-4.0", "description": "All *short*.", "dev": 8, "private_test": True}
    told["statements"] = {"biases": "Students alone."}
    reply = api.post(RELEASES, told)
    assert (reply.status_code, reply.json()["version"], reply.json()["state"]) == (202, 1, "queued")
    dataset = Dataset.objects.get()
    assert dataset.requested_by == alice
    options = dataset.options
    assert (options["dev"], options["private_test"], options["train"]) == (8, True, None)
    assert options["test"] > 0  # as suggested
    assert {name: text for name, text in options["statements"].items() if text} == {
        "biases": "Students alone."
    }
    assert options["url"] == "http://testserver/t/nli/rounds/1/data/"
    again = api.post(RELEASES, told)
    assert (again.status_code, error(again)["code"]) == (409, "release")
    assert api.get(URL).json()["results"] == []
    build_dataset(dataset.pk)
    (one,) = api.get(RELEASES).json()["results"]
    assert (one["version"], one["state"], one["error"]) == (1, "done", "")
    same = api.post(RELEASES, {"license": "cc-by-4.0"})
    assert (same.status_code, error(same)["code"]) == (409, "release")


@pytest.mark.parametrize(
    ("told", "field"),
    [
        ({}, "license"),
        ({"license": "mine"}, "license"),
        ({"license": "cc-by-4.0", "dev": -1}, "dev"),
        ({"license": "cc-by-4.0", "test": 2**31}, "test"),
        ({"license": "cc-by-4.0", "statements": {"biases": "x" * 2001}}, "statements.biases"),
    ],
)
def test_what_no_release_can_be(api, alice, closed, told, field):
    TaskMember.objects.create(task=closed.task, user=alice, role="owner")
    reply = api.post(RELEASES, told)
    assert (reply.status_code, set(error(reply)["fields"])) == (422, {field})
    large = api.post(RELEASES, {"license": "cc-by-4.0", "test": 10**6})
    assert (large.status_code, error(large)["code"]) == (409, "release")
    assert not Dataset.objects.exists()


@pytest.mark.parametrize("role", ["editor", "viewer", None])
def test_only_owners_release(api, anybody, alice, closed, role):
    if role:
        TaskMember.objects.create(task=closed.task, user=alice, role=role)
    assert api.get(RELEASES).status_code == refused(role)
    assert api.post(RELEASES, {"license": "cc-by-4.0"}).status_code == refused(role)
    assert anybody.get(RELEASES).status_code == 401
    assert not Dataset.objects.exists()
