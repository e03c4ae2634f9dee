"""Rounds in the API: planned, changed, opened and closed as on the owners' pages."""

import pytest
from django.utils import timezone

from core.accounts.models import LogEntry
from tasks.models import Round, TargetModel, TaskMember
from tests.support.factories import RoundFactory, TaskFactory, scripted_target

URL = "/api/v1/tasks/nli/rounds/"


@pytest.fixture
def editor(api, alice, nli):
    TaskMember.objects.create(task=nli.task, user=alice, role="editor")
    return api


def fields(response):
    assert response.status_code == 422
    return response.json()["error"]["fields"]


@pytest.mark.parametrize(
    ("role", "planned", "write"),
    [("owner", True, 200), ("editor", True, 200), ("reviewer", True, 403), ("viewer", False, 403),
     (None, False, 404)],
)  # fmt: skip
def test_who_may_know_and_change_what(api, alice, nli, role, planned, write):
    RoundFactory(task=nli.task, number=2, state="draft", pay_example=5)
    if role:
        TaskMember.objects.create(task=nli.task, user=alice, role=role)
    found = [one["number"] for one in api.get(URL).json()["results"]]
    assert found == ([1, 2] if planned else [1])
    assert api.get(f"{URL}2/").status_code == (200 if planned else 404)
    assert (api.get(f"{URL}1/").json()["pay_example"] is not None) == planned
    assert api.post(URL, {}).status_code == (201 if write == 200 else write)
    assert api.patch(f"{URL}1/", {"description": "New"}).status_code == write
    assert api.post(f"{URL}1/state/", {"state": "paused"}).status_code == write
    assert (Round.objects.get(number=1).state == "paused") == (write == 200)


def test_a_viewer_without_account_reads_what_is_public(anybody, nli):
    nli.max_spent, nli.pay_example = 900, 5
    nli.save()
    planned = RoundFactory(task=nli.task, number=2, state="ready")
    third = RoundFactory(task=nli.task, number=3, state="closed")
    third.parents.set([nli, planned])
    first = anybody.get(f"{URL}1/").json()
    assert (first["max_spent"], first["pay_example"]) == (None, None)
    assert anybody.get(f"{URL}3/").json()["parents"] == [1]
    assert anybody.post(URL, {}).status_code == 401


def test_writing_takes_the_scope_own(api_of, alice, nli):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    client = api_of(alice, "read", "annotate", "submit")
    for response in (
        client.post(URL, {}),
        client.patch(f"{URL}1/", {}),
        client.post(f"{URL}1/state/", {"state": "closed"}),
    ):
        assert response.status_code == 403
    assert Round.objects.get().state == "open"


def test_a_round_hides_the_names_of_its_models(anybody, editor, nli):
    scripted_target(nli, name="secret-name")
    nli.show_target_name = False
    nli.save()
    assert anybody.get(f"{URL}1/").json()["targets"] == ["Model A"]
    assert editor.get(f"{URL}1/").json()["targets"] == ["secret-name"]
    nli.state = "closed"
    nli.save()
    assert anybody.get(f"{URL}1/").json()["targets"] == ["secret-name"]


def test_the_next_round_is_planned(editor, nli):
    for name in "ab":
        TargetModel.objects.create(task=nli.task, name=name, adapter="scripted")
    asked = {
        "targets": ["a", "b"], "parents": [1], "contexts_of": 1, "max_fooling": 20,
        "pay_bonus": 15, "ends_at": "2999-05-06T07:08:00Z", "description": "Try *hard*.",
        "show_target_name": False,
    }  # fmt: skip
    response = editor.post(URL, asked)
    assert response.status_code == 201
    asked.pop("contexts_of")
    told = response.json()
    assert {name: told[name] for name in asked} == asked
    assert (told["number"], told["state"], told["rule"]) == (2, "draft", "majority")
    assert (told["max_spent"], told["pay_example"]) == (None, 0)
    made = Round.objects.get(number=2)
    assert made.contexts.count() == nli.contexts.count()
    assert editor.get(f"{URL}2/").json() == told


def test_an_empty_plan_is_a_draft_like_the_forms(editor):
    told = editor.post(URL, {}).json()
    assert (told["number"], told["state"], told["targets"]) == (2, "draft", [])
    assert told["show_target_name"] is True


def test_a_key_plans_one_round(editor):
    for _ in range(2):
        assert editor.post(URL, {}, HTTP_IDEMPOTENCY_KEY="k").json()["number"] == 2
    assert Round.objects.count() == 2


def test_what_is_left_out_stays(editor, nli):
    for name in "ab":
        scripted_target(nli, name=name)
    nli.max_collected, nli.rule, nli.ends_at = 40, "any", "2999-01-02T00:00:00Z"
    nli.save()
    zero = RoundFactory(task=nli.task, number=0, state="closed")
    nli.parents.add(zero)
    told = editor.patch(f"{URL}1/", {"description": "New words"}).json()
    assert (told["description"], told["max_collected"], told["rule"]) == ("New words", 40, "any")
    assert (told["targets"], told["parents"]) == (["a", "b"], [0])
    assert LogEntry.objects.get(action="round.changed").data["fields"] == ["description"]
    told = editor.patch(f"{URL}1/", {"targets": ["b"], "parents": [], "ends_at": None}).json()
    assert (told["targets"], told["parents"], told["ends_at"]) == (["b"], [], None)
    assert told["max_collected"] == 40


def test_what_was_opened_keeps_its_rule_and_targets(editor, nli):
    scripted_target(nli, name="a")
    nli.opened_at = "2026-01-01T00:00Z"
    nli.save()
    for asked in ({"rule": "any"}, {"targets": []}, {"contexts_of": 1}):
        response = editor.patch(f"{URL}1/", asked)
        assert (response.status_code, response.json()["error"]["code"]) == (409, "fixed")
        assert next(iter(asked)) in response.json()["error"]["message"]
    assert editor.patch(f"{URL}1/", {"max_collected": 7}).json()["max_collected"] == 7
    assert nli.targets.get().name == "a"


def test_a_released_round_stays(editor, nli):
    Round.objects.update(state="released")
    response = editor.patch(f"{URL}1/", {"description": "New"})
    assert (response.status_code, response.json()["error"]["code"]) == (409, "released")


def test_only_what_belongs_to_the_task_can_be_chosen(editor, nli):
    foreign = RoundFactory(
        task=TaskFactory(code="foreign", config_text=nli.task.config_text), number=9
    )
    scripted_target(foreign, name="theirs")
    found = fields(editor.post(URL, {"targets": ["theirs"], "parents": [9], "contexts_of": 9}))
    assert set(found) == {"targets", "parents", "contexts_of"}
    assert fields(editor.patch(f"{URL}1/", {"parents": [1]})).keys() == {"parents"}
    assert Round.objects.filter(task=nli.task).count() == 1


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"ends_at": "2001-01-01T00:00:00Z"}, "ends_at"),
        ({"ends_at": "9999-12-31T23:59:59-14:00"}, "ends_at"),
        ({"ends_at": "soon"}, "ends_at"),
        ({"max_spent": -1}, "max_spent"),
        ({"max_collected": 2**31}, "max_collected"),
        ({"pay_bonus": None}, "pay_bonus"),
        ({"rule": "most"}, "rule"),
        ({"description": "a\0b"}, "description"),
        ({"targets": "a"}, "targets"),
        ({"targets": [None]}, "targets.0"),
        ({"parents": [2**70]}, "parents.0"),
        ({"show_target_name": "perhaps"}, "show_target_name"),
    ],
)
def test_what_a_plan_cannot_be(editor, asked, field):
    assert set(fields(editor.post(URL, asked))) == {field}
    assert set(fields(editor.patch(f"{URL}1/", asked))) == {field}
    assert Round.objects.count() == 1


def test_half_a_character(editor):
    body = '{"description": "\\ud800"}'
    assert set(fields(editor.post(URL, body, content_type="application/json"))) == {"description"}


@pytest.mark.parametrize("body", [[], "text", 5])
def test_odd_bodies(editor, body):
    for url in (URL, f"{URL}1/state/"):
        assert editor.post(url, body).status_code == 422


@pytest.mark.parametrize("number", [7, 2**31, 2**63, 10**30])
def test_what_is_not_there(editor, number):
    assert editor.get(f"{URL}{number}/").status_code == 404
    assert editor.patch(f"{URL}{number}/", {}).status_code == 404
    assert editor.post(f"{URL}{number}/state/", {"state": "open"}).status_code == 404


def test_a_round_goes_through_its_states(editor, nli):
    RoundFactory(task=nli.task, number=2, state="draft")

    def become(number, state):
        return editor.post(f"{URL}{number}/state/", {"state": state})

    assert become(1, "paused").json()["state"] == "paused"
    refused = become(2, "open")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "state")
    assert become(1, "closed").json()["closed_at"] is not None
    assert become(2, "open").json()["error"]["fields"].keys() == {"state"}  # no contexts
    assert become(1, "draft").json()["error"]["code"] == "state"
    assert fields(become(1, "released")).keys() == {"state"}
    assert fields(become(1, None)).keys() == {"state"}
    assert [round.state for round in Round.objects.order_by("number")] == ["closed", "draft"]


def test_a_broken_target_is_replaced(editor, nli):
    scripted_target(nli, label="neutral")
    TargetModel.objects.create(
        task=nli.task, name="other", adapter="scripted", options={"label": "neutral"}
    )
    url = f"{URL}1/replace-target/"
    assert set(fields(editor.post(url, {"old": "scripted", "new": "none"}))) == {"new"}
    refused = editor.post(url, {"old": "scripted", "new": "other"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "fixed")
    Round.objects.update(opened_at=timezone.now())
    assert editor.post(url, {"old": "scripted", "new": "other"}).json()["targets"] == ["other"]


def test_a_round_whose_target_does_not_answer_is_not_opened(editor, nli):
    scripted_target(nli, fail="refused")
    Round.objects.update(state="ready")
    refused = editor.post(f"{URL}1/state/", {"state": "open"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "state")
    assert "scripted" in refused.json()["error"]["message"]
