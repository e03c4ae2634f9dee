"""Targets as they are set up, in the API: the same rules, words and secrecy as in the admin."""

import json

import pytest
from django.db import connection

from core.accounts.models import LogEntry
from tasks.models import TargetModel, TaskMember
from tasks.targets import send_test
from tasks.targets.endpoints.base import EndpointError, Prediction
from tasks.targets.failures import note_failure
from tests.support.factories import RoundFactory, TaskFactory, UserFactory, scripted_target
from tests.support.roles import refused

URL = "/api/v1/tasks/nli/target-models/"
NEW = {"name": "mine", "adapter": "scripted", "url": "http://mine.test"}
UNASKED = {"at": None, "reason": "", "detail": ""}
INPUTS = {"premise": "Rain fell.", "hypothesis": "It was wet."}
SECRET = "opensesame"
AS_JSON = {"content_type": "application/json"}  # what the test client cannot write


@pytest.fixture
def editor(api, alice, nli):
    TaskMember.objects.create(task=nli.task, user=alice, role="editor")
    return api


@pytest.fixture
def boss(api_of, db):
    return api_of(UserFactory(email="boss@example.com", is_superuser=True))


@pytest.fixture
def secret(nli, monkeypatch):
    """A target whose secret is known to the environment."""
    monkeypatch.setenv("TARGET_MINE_SECRET", SECRET)
    target = scripted_target(nli, label="neutral", prob=None)
    TargetModel.objects.update(secret_env="TARGET_MINE_SECRET")
    target.refresh_from_db()
    return target


def fields(response):
    assert response.status_code == 422
    return response.json()["error"]["fields"]


def send(client, target, inputs=INPUTS):
    return client.post(f"{URL}{target.pk}/test/", json.dumps({"inputs": inputs}), **AS_JSON)


@pytest.mark.parametrize(
    ("role", "read", "write"),
    [("editor", 200, True), ("reviewer", 200, False), (None, 404, False)],
)
def test_who_may_read_change_and_test_them(api, alice, nli, role, read, write):
    target = scripted_target(nli, label="neutral", prob=None)
    if role:
        TaskMember.objects.create(task=nli.task, user=alice, role=role)
    assert api.get(URL).status_code == read
    assert api.post(URL, NEW).status_code == (201 if write else refused(role))
    assert api.patch(f"{URL}{target.pk}/", {"revision": "v2"}).status_code == (
        200 if write else refused(role)
    )
    assert send(api, target).status_code == (200 if write else refused(role))
    assert TargetModel.objects.filter(revision="v2").exists() == write


def test_without_an_account_nobody_reads_them(anybody, secret):
    assert anybody.get(URL).status_code == 401


def test_a_target_is_told_without_the_value_of_its_secret(editor, secret, nli):
    other = RoundFactory(task=TaskFactory(code="qa"))
    scripted_target(other, name="theirs")
    response = editor.get(URL)
    (told,) = response.json()["results"]
    assert told.pop("created_at")
    assert told == {
        "id": secret.pk, "name": "scripted", "adapter": "scripted", "url": "http://scripted.test",
        "source": "", "revision": "", "options": {"label": "neutral", "prob": None}, "serving": {},
        "gpus": 0, "secret_env": "TARGET_MINE_SECRET", "has_secret": True, "contact": UNASKED,
        "failure": None,
    }  # fmt: skip
    assert SECRET not in response.text


def test_its_last_failure_while_people_wrote_is_told_in_its_words(editor, nli):
    target = scripted_target(nli)
    note_failure(target, EndpointError("No model tarn here.", "misconfigured"))
    (told,) = editor.get(URL).json()["results"]
    failure = {name: told["failure"][name] for name in ("count", "reason", "detail")}
    assert failure == {"count": 1, "reason": "misconfigured", "detail": "No model tarn here."}


def test_a_target_is_registered_and_a_plan_can_name_it(editor, alice, nli):
    asked = {**NEW, "options": {"label": "neutral"}, "serving": {"precision": "int8"}}
    response = editor.post(URL, asked)
    assert response.status_code == 201
    told = response.json()
    assert {name: told[name] for name in asked} == asked
    made = TargetModel.objects.get()
    assert (told["id"], made.task, made.secret_env) == (made.pk, nli.task, "")
    entry = LogEntry.objects.get(action="target.registered")
    assert (entry.actor, entry.target, entry.data["fields"]) == (alice, "mine", sorted(asked))
    assert editor.get(URL).json()["results"] == [told]
    plan = editor.post("/api/v1/tasks/nli/rounds/", {"targets": ["mine"]})
    assert plan.json()["targets"] == ["mine"]


def test_what_is_left_out_stays(editor, nli):
    target = scripted_target(nli, label="neutral")
    target.source, target.serving = "models/a", {"backend": "torch"}
    target.save()
    told = editor.patch(f"{URL}{target.pk}/", {"options": {"label": "entailment"}}).json()
    assert (told["options"], told["source"]) == ({"label": "entailment"}, "models/a")
    assert (told["url"], told["serving"]) == ("http://scripted.test", {"backend": "torch"})
    assert LogEntry.objects.get(action="target.changed").data["fields"] == ["options"]
    assert editor.patch(f"{URL}{target.pk}/", {"source": ""}).json()["source"] == ""
    refused = editor.patch(f"{URL}{target.pk}/", {"name": "another"})
    assert refused.status_code == 409
    target.refresh_from_db()
    assert target.name != "another"


def test_a_gpu_is_given_where_the_site_has_one_and_to_files_alone(editor, nli, settings):
    page = f"{URL}{scripted_target(nli).pk}/"
    assert "no GPU" in fields(editor.patch(page, {"gpus": 1}))["gpus"][0]
    settings.EVALUATION_GPUS = 2
    assert "gpus" in fields(editor.patch(page, {"gpus": 2}))
    assert "own machine" in fields(editor.patch(page, {"gpus": 1}))["gpus"][0]
    assert editor.patch(page, {"gpus": 1, "url": "", "source": "models/a"}).json()["gpus"] == 1


@pytest.mark.parametrize(
    ("asked", "field", "words"),
    [
        ({"options": {"lable": "neutral"}}, "", "Unknown option 'lable'"),
        ({"options": {"fail": "often"}}, "", "is one of"),
        ({"adapter": "open_inference_v2"}, "", "The option 'model' is missing"),
        ({"options": [1]}, "options", "dictionary"),
        ({"options": {"label": "a\0"}}, "options", "control character"),
        ({"options": {"label": "\ud800"}}, "options", "half a character"),
        ({"serving": {"speed": 9}}, "serving", "unexpected keyword argument 'speed'"),
        ({"adapter": "none"}, "adapter", "choices"),
        ({"url": "not an address"}, "url", "valid URL"),
        ({"url": "ftp://mine.test", "adapter": "http"}, "", "http"),
        ({"url": "http://[", "adapter": "http"}, "url", "valid URL"),
        ({"source": "a\0"}, "source", "Null characters"),
        ({"revision": "a" * 65}, "revision", "at most 64"),
    ],
)
def test_settings_that_cannot_be_used(editor, nli, asked, field, words):
    target = scripted_target(nli)
    for response in (
        editor.post(URL, json.dumps({**NEW, **asked}), **AS_JSON),
        editor.patch(f"{URL}{target.pk}/", json.dumps(asked), **AS_JSON),
    ):
        found = fields(response)
        assert set(found) == {field}
        assert words in str(found[field])
    assert TargetModel.objects.get() == target


@pytest.mark.parametrize("levels", [101, 400])
def test_options_that_nest_too_deeply(editor, nli, levels):
    label = "[" * levels + "]" * levels
    body = '{"name": "mine", "options": {"label": ' + label + "}}"
    assert "nest less deeply" in str(fields(editor.post(URL, body, **AS_JSON))["options"])


def test_names_are_needed_and_unique_in_the_task(editor, nli):
    scripted_target(RoundFactory(task=TaskFactory(code="qa")), name="mine")
    assert fields(editor.post(URL, {"url": "http://mine.test"})).keys() == {"name"}
    assert fields(editor.post(URL, {**NEW, "name": "not a slug"})).keys() == {"name"}
    assert TargetModel.objects.get().task.code == "qa"


def test_only_superusers_tie_a_secret_to_an_address(editor, boss, nli):
    tied = {"secret_env": "TARGET_MINE_SECRET", "url": "http://mine.test"}
    refused = editor.post(URL, {**NEW, **tied})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "target")
    assert not TargetModel.objects.exists()
    url = f"{URL}{editor.post(URL, NEW).json()['id']}/"
    assert editor.patch(url, tied).status_code == 409
    assert fields(boss.patch(url, {"secret_env": "TARGET_MINE_SECRET"})).keys() == {"url"}
    assert fields(boss.patch(url, {**tied, "secret_env": "SECRET_KEY"})).keys() == {"secret_env"}
    assert boss.patch(url, tied).json()["secret_env"] == "TARGET_MINE_SECRET"
    for moved in (
        {"url": "http://thief.test"},
        {"adapter": "http"},
        {"options": {"label": "neutral"}},
        {"secret_env": ""},
    ):
        assert editor.patch(url, moved).status_code == 409
    assert editor.patch(url, {"revision": "v2"}).json()["revision"] == "v2"
    target = TargetModel.objects.get()
    assert (target.url, target.adapter, target.options) == ("http://mine.test", "scripted", {})
    assert target.secret_env == "TARGET_MINE_SECRET"


def test_a_test_tells_the_answer(editor, nli):
    prob = {"entailment": 0.2, "neutral": 0.7, "contradiction": 0.1}
    target = scripted_target(nli, label="neutral", prob=prob)
    response = send(editor, target, {**INPUTS, "label": "is not sent"})
    assert response.status_code == 200
    told = response.json()
    assert told["answer"].pop("seconds") >= 0
    assert told == {
        "answer": {
            "output": {"label": "neutral"}, "prob": prob, "fingerprint": {"digest": "scripted"},
        },
        "failure": None,
    }  # fmt: skip


@pytest.mark.parametrize("reason", send_test.REASON_MESSAGES)
def test_a_test_that_fails_says_why_in_the_admins_words(editor, nli, reason):
    target = scripted_target(nli, fail=reason)
    response = send(editor, target)
    assert response.status_code == 200
    assert response.json()["answer"] is None
    failure = response.json()["failure"]
    assert failure.pop("detail")
    assert failure == {"reason": reason, "message": send_test.REASON_MESSAGES[reason]}


def test_a_target_that_cannot_be_built_any_more_is_misconfigured(editor, nli):
    target = scripted_target(nli, gone="after an update")
    assert send(editor, target).json()["failure"]["reason"] == "misconfigured"


class Repeating:
    """A target that repeats the secret wherever it can."""

    def predict(self, batch, *, deadline_seconds):
        assert not connection.in_atomic_block
        output = {"label": "neutral", "why": [f"because of {SECRET}", {SECRET: 3}]}
        return [Prediction(output, None, 0.5, {"key": SECRET})]


@pytest.mark.django_db(transaction=True)
def test_a_test_is_sent_outside_transactions_and_never_tells_the_secret(
    editor, secret, monkeypatch
):
    monkeypatch.setattr(send_test, "get_endpoint", lambda target: Repeating())
    response = editor.post(
        f"{URL}{secret.pk}/test/", {"inputs": INPUTS}, HTTP_IDEMPOTENCY_KEY="once"
    )
    assert response.json()["answer"] == {
        "output": {"label": "neutral", "why": ["because of [secret]", {"[secret]": 3}]},
        "prob": None,
        "seconds": 0.5,
        "fingerprint": {"key": "[secret]"},
    }


def test_a_failure_does_not_tell_the_secret(editor, secret):
    secret.options = {"output": {"label": SECRET}}
    secret.save()
    told = send(editor, secret).json()["failure"]
    assert told["reason"] == "rubbish"
    assert "[secret]" in told["detail"]
    assert SECRET not in told["detail"]


@pytest.mark.parametrize(
    ("inputs", "field"),
    [({"premise": "Rain fell."}, "inputs.hypothesis"), ({**INPUTS, "premise": ""},
     "inputs.premise"), ({**INPUTS, "premise": "a\ud800"}, "inputs"), (None, "inputs"),
     ([], "inputs"), ({}, None)],
)  # fmt: skip
def test_inputs_that_cannot_be_sent(editor, nli, inputs, field):
    found = fields(send(editor, scripted_target(nli, label="neutral"), inputs))
    assert set(found) == ({field} if field else {"inputs.premise", "inputs.hypothesis"})


def test_another_tasks_target_is_not_there(editor, nli):
    theirs = scripted_target(RoundFactory(task=TaskFactory(code="qa")), name="theirs")
    for pk in (theirs.pk, 2**63, 10**30):
        assert editor.patch(f"{URL}{pk}/", {"revision": "v2"}).status_code == 404
        assert editor.post(f"{URL}{pk}/test/", {"inputs": INPUTS}).status_code == 404
    assert TargetModel.objects.get().revision == ""
