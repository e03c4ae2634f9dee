"""Evaluation sets through the API: what leaves, and what owners make of uploads."""

import json

import pytest
from django.core.files.base import ContentFile

from evaluation.isolation.uploads.chunked import add_file
from evaluation.models import EvaluationSet, Upload
from evaluation.test_sets.selectors import find_latest_version, read_set_rows
from tasks.models import TaskMember
from tests.support.api_errors import error
from tests.support.evaluations import nli_rows, set_version
from tests.support.factories import RoundFactory, TaskFactory
from tests.support.roles import refused

URL = "/api/v1/tasks/nli/evaluation-sets/"
ROWS = [
    {"uid": "a", "premise": "One.", "hypothesis": "It.", "label": "neutral"},
    {"uid": "b", "premise": "Two.", "hypothesis": "It.", "label": "entailment"},
]


@pytest.fixture(autouse=True)
def _media(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"


@pytest.fixture
def task(db):
    return TaskFactory(code="nli")


@pytest.fixture
def editor(api, alice, task):
    TaskMember.objects.create(task=task, user=alice, role="editor")
    return api


def sent(user, rows=ROWS, name="rows.jsonl"):
    data = "\n".join(map(json.dumps, rows)).encode()
    return str(add_file(user, name, len(data), ContentFile(data)).pk)


@pytest.fixture
def sets(task):
    """An open, a closed and two hidden sets, of which one may leave."""
    for name, access, may_leave in (
        ("open", "scoring", True),
        ("closed", "standard", False),
        ("sealed", "hidden", False),
        ("sealed-open", "hidden", True),
    ):
        set_version(task, name, access=access, may_leave=may_leave)


@pytest.mark.parametrize(
    ("role", "sees_hidden"),
    [("owner", True), ("editor", True), ("reviewer", False), ("viewer", False), (None, False)],
)
def test_who_sees_and_reads_what(api, alice, task, sets, role, sees_hidden):
    if role:
        TaskMember.objects.create(task=task, user=alice, role=role)
    listed = [one["name"] for one in api.get(URL).json()["results"]]
    assert listed == (
        ["open", "closed", "sealed", "sealed-open"] if sees_hidden else ["open", "closed"]
    )
    for name, leaves in (("open", True), ("closed", False), ("sealed", False),
                         ("sealed-open", sees_hidden)):  # fmt: skip
        assert api.get(f"{URL}{name}/").status_code == (200 if name in listed else 404)
        assert api.get(f"{URL}{name}/inputs/").status_code == (200 if leaves else 404)


def test_inputs_are_lines_of_the_newest_version_without_answers(anybody, task, sets):
    set_version(task, "open", rows=nli_rows(3))
    (one, _) = anybody.get(URL).json()["results"]
    newest = {"version": 2, "size": 3, "is_provisional": False}
    unknown = dict.fromkeys(("overlap", "exposed_at", "left_out", "judged", "to_judge"))
    assert one["newest"] == {**newest, **unknown, "made_at": one["newest"]["made_at"]}
    assert (one["access"], one["source"], one["round"]) == ("scoring", "upload", None)
    reply = anybody.get(f"{URL}open/inputs/")
    assert reply["Content-Type"] == "application/jsonl"
    assert "nli-open-v2.jsonl" in reply["Content-Disposition"]
    rows = [json.loads(line) for line in b"".join(reply).splitlines()]
    assert rows == [{"id": row.uid, "inputs": row.inputs} for row in nli_rows(3)]


def test_five_inputs_for_a_check_at_home(anybody, task, sets, settings):
    settings.EVALUATION_MEMORY_GIB, settings.EVALUATION_CPUS = 3, 2
    told = anybody.get("/api/v1/tasks/nli/check-inputs/").json()
    assert told["inputs"] == [row.inputs for row in nli_rows(5)]
    assert (told["memory_gib"], told["cpus"], told["seconds"]) == (3, 2, 300)
    assert told["model"]["fields"] == ["premise", "hypothesis"]
    assert told["model"]["labels"] == ["entailment", "neutral", "contradiction"]
    assert "output:" in told["config_text"]


@pytest.mark.parametrize("code", ["qa", "sentiment", "hate-speech"])
def test_every_kind_of_task_can_be_checked_at_home(anybody, db, code):
    TaskFactory(code=code)
    told = anybody.get(f"/api/v1/tasks/{code}/check-inputs/").json()
    assert len(told["inputs"]) == 5
    assert all(set(told["model"]["fields"]) <= set(inputs) for inputs in told["inputs"])


def test_an_editor_makes_a_set_and_its_next_version(editor, alice, task):
    about = {"name": "reviews", "access": "standard", "may_leave": True, "description": "Mine."}
    reply = editor.post(URL, {**about, "upload": sent(alice)})
    assert reply.status_code == 201
    told = reply.json()
    assert {name: told[name] for name in about} == about
    assert (told["newest"]["version"], told["newest"]["size"]) == (1, 2)
    assert not Upload.objects.exists()
    versions = f"{URL}reviews/versions/"
    assert editor.post(versions, {"upload": sent(alice)}).json()["newest"]["version"] == 1
    newer = editor.post(versions, {"upload": sent(alice, ROWS[:1])})
    assert (newer.status_code, newer.json()["newest"]["version"]) == (201, 2)
    made = find_latest_version(EvaluationSet.objects.get())
    assert ([row.uid for row in read_set_rows(made)], made.made_by) == (["a"], alice)
    changed = editor.patch(f"{URL}reviews/", {"access": "hidden"}).json()
    assert (changed["access"], changed["may_leave"]) == ("hidden", True)


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"name": "control"}, []),
        ({"name": "a b"}, ["name"]),
        ({"name": "taken"}, []),
        ({"access": "x"}, ["access"]),
        ({"upload": "00000000-0000-4000-8000-000000000000"}, ["upload"]),
    ],
)
def test_sets_that_are_refused(editor, alice, task, changes, fields):
    set_version(task, "taken")
    told = {"name": "reviews", "upload": sent(alice), **changes}
    reply = editor.post(URL, told)
    assert reply.status_code == 422
    assert [*(error(reply).get("fields") or ())] == fields
    assert EvaluationSet.objects.count() == 1
    assert Upload.objects.exists()  # so that it need not be sent again


def test_wrong_lines_are_named(editor, alice, task):
    rows = [ROWS[0], {"premise": "x", "hypothesis": "y", "label": "maybe"}, {"label": "neutral"}]
    reply = editor.post(URL, {"name": "reviews", "upload": sent(alice, rows)})
    assert reply.status_code == 422
    told = error(reply)["fields"]["upload"]
    assert [line.partition(":")[0] for line in told] == ["line 2", "line 3"]
    assert "`premise` is missing" in told[1]
    sheet = editor.post(URL, {"name": "reviews", "upload": sent(alice, name="a.xlsx")})
    assert "name the file .jsonl" in error(sheet)["fields"]["upload"][0]
    assert not EvaluationSet.objects.exists()


def test_a_file_that_is_not_here_wholly_or_too_large_makes_nothing(editor, alice, task):
    begun = Upload.objects.create(owner=alice, file_name="a.jsonl", size=10)
    reply = editor.post(URL, {"name": "reviews", "upload": str(begun.pk)})
    assert "0 of 10 bytes" in error(reply)["fields"]["upload"][0]
    Upload.objects.update(size=2**40)
    large = editor.post(URL, {"name": "reviews", "upload": str(begun.pk)})
    assert (large.status_code, "too large" in error(large)["message"]) == (422, True)


@pytest.mark.parametrize("role", ["reviewer", None, "stranger"])
def test_only_editors_make_and_change_sets(api, anybody, alice, task, sets, role):
    if role == "reviewer":
        TaskMember.objects.create(task=task, user=alice, role=role)
    client, status = (anybody, 401) if role == "stranger" else (api, refused(role))
    upload = sent(alice)
    for answer in (
        client.post(URL, {"name": "mine", "upload": upload}),
        client.post(f"{URL}open/versions/", {"upload": upload}),
        client.patch(f"{URL}open/", {"access": "hidden"}),
        client.post(f"{URL}open/take/"),
    ):
        assert answer.status_code == status
    assert EvaluationSet.objects.count() == 4


def test_others_uploads_make_no_set(editor, bob, task):
    reply = editor.post(URL, {"name": "mine", "upload": sent(bob)})
    assert [*error(reply)["fields"]] == ["upload"]


def test_a_closed_round_is_taken_as_it_is(editor, task, sets):
    round = RoundFactory(task=task, state="closed")
    one = EvaluationSet.objects.create(task=task, name="round-1", source="round", round=round)
    reply = editor.post(f"{URL}round-1/take/")
    assert reply.status_code == 409
    assert not one.versions.exists()
    assert editor.get(f"{URL}round-1/").json()["round"] == 1
    assert editor.get(f"{URL}round-1/").json()["newest"] is None
    assert (
        editor.post(f"{URL}{one.name}/versions/", {"upload": str(one.task_id)}).status_code == 404
    )
    assert editor.post(f"{URL}open/take/").status_code == 404


def test_a_hidden_task_has_no_sets(api, task, sets):
    task.is_visible = False
    task.save(update_fields=["is_visible"])
    for url in (URL, f"{URL}open/inputs/", "/api/v1/tasks/nli/check-inputs/"):
        assert api.get(url).status_code == 404
