"""A round's policy in the API: read, tried without storing anything, and applied; for editors."""

# ruff: noqa: F811  (fixtures are named where they are used)

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotation.models import Example
from core.accounts.models import LogEntry
from tasks.models import Round, TaskMember
from tests.support.api_writing import error
from tests.support.factories import UserFactory
from tests.support.policy_pages import POLICIES, judged, stored  # noqa: F401
from tests.support.query_counts import check, fill_review
from tests.support.roles import refused
from validation.decisions import policy_preview, services
from validation.decisions.services import derive_round
from validation.models import QueueItem, RoundPolicy

pytestmark = pytest.mark.usefixtures("few_are_enough")

URL = "/api/v1/tasks/nli/rounds/1/policy/"
STRICT = {"rule": "strict", "of": 3}
TRIED = {**STRICT, "dry_run": True}


@pytest.mark.parametrize("role", [None, "reviewer", "editor"])
def test_who_may(bobs, bob, judged, role):
    if role:
        TaskMember.objects.create(task=judged.task, user=bob, role=role)
    status = 200 if role == "editor" else refused(role)
    assert bobs.get(URL).status_code == status
    assert bobs.put(URL, TRIED).status_code == status
    assert bobs.put(URL, STRICT).status_code == status
    rule = "strict" if status == 200 else "at-least"
    assert RoundPolicy.objects.get().policy["rule"] == rule


def test_without_an_account_or_the_scope_nothing_changes(anybody, api_of, alice, judged):
    assert anybody.get(URL).status_code == anybody.put(URL, STRICT).status_code == 401
    error(api_of(alice, "read", "annotate", "submit").put(URL, STRICT), 403, "scope")
    assert RoundPolicy.objects.get().policy["rule"] == "at-least"


def test_the_policy_in_force_is_told(api, alice, judged):
    policy = api.get(URL).json()
    assert policy.pop("words")
    assert policy == {"rule": "at-least", "needed": 3, "of": 5, "threshold": 0.8}
    RoundPolicy.objects.all().delete()
    votes = judged.task.config.validation.votes
    told = api.get(URL).json()
    assert (told["rule"], told["needed"], told["of"]) == (
        votes.rule,
        votes.needed,
        votes.of,
    )
    assert not RoundPolicy.objects.exists()


def test_a_dry_run_tells_what_changes_and_stores_nothing(api, judged):
    before = stored()
    told = api.put(URL, TRIED).json()
    assert (told["policy"]["rule"], told["policy"]["of"]) == ("strict", 3)
    preview = told["preview"]
    assert (told["changed"], preview["changed"], preview["examples"]) == (3, 3, 5)
    assert preview["reopened"] == 0
    assert sum(one["examples"] for one in preview["transitions"]) == 3
    rate = preview["rates"]["vmer"]
    assert (rate["before"]["value"], rate["after"]["value"]) == (0.2, 0.4)
    assert set(preview["rates"]) == {"vmer", "fooled_of_decided", "verified_of_judged"}
    first = preview["first"][0]
    assert first["example"] == str(Example.objects.first().uuid)
    assert (first["before"]["state"], first["after"]["state"]) == ("undecided", "decided")
    assert (first["after"]["label"], first["after"]["is_verified"]) == ("neutral", True)
    assert (stored(), RoundPolicy.objects.get().policy["rule"]) == (before, "at-least")
    assert not LogEntry.objects.filter(action="policy.changed").exists()


def test_numbers_that_are_not_known_are_null(api, nli, alice):
    TaskMember.objects.create(task=nli.task, user=alice, role="editor")
    told = api.put(URL, TRIED).json()
    assert told["preview"]["examples"] == told["changed"] == 0
    assert told["preview"]["rates"]["vmer"] == {"before": None, "after": None}


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_what_is_tried_is_what_a_put_changes(api, judged, policy):
    asked = {"rule": policy.rule, "needed": policy.needed, "of": policy.of}
    tried = api.put(URL, {**asked, "dry_run": True}).json()
    told = api.put(URL, asked).json()
    assert (told["changed"], told["preview"]) == (tried["changed"], None)
    assert told["policy"] == tried["policy"] == api.get(URL).json()
    assert api.put(URL, {**asked, "dry_run": True}).json()["changed"] == 0


def test_applying_counts_again_and_is_noted(api, alice, judged):
    assert api.put(URL, STRICT).json()["changed"] == 3
    assert [row[0] for row in stored()] == ["decided", "decided", "no_consensus", "decided"]
    assert QueueItem.objects.filter(still_needed__gt=0).count() == 1
    entry = LogEntry.objects.get(action="policy.changed")
    assert (entry.actor, entry.data["rule"], entry.data["of"]) == (alice, "strict", 3)


def test_one_key_applies_once(api, judged):
    for _ in range(2):
        assert api.put(URL, STRICT, HTTP_IDEMPOTENCY_KEY="k").json()["changed"] == 3
    assert LogEntry.objects.filter(action="policy.changed").count() == 1


def test_a_large_round_is_counted_by_a_worker(api, judged, monkeypatch):
    calls = []
    monkeypatch.setattr(services, "MAX_EXAMPLES_AT_ONCE", 4)
    monkeypatch.setattr(services, "enqueue", lambda *call: calls.append(call))
    before = stored()
    assert api.put(URL, STRICT).json()["changed"] is None
    assert (stored(), calls) == (before, [("validation.decisions.services.count_again", judged.pk)])
    assert derive_round(round=judged) == 3


def test_a_round_too_large_to_try_it_on_says_how_else(api, judged, monkeypatch):
    monkeypatch.setattr(policy_preview, "MAX_PREVIEWED_EXAMPLES", 4)
    found = error(api.put(URL, TRIED), 409, "too_large")
    assert "manage.py task_report nli --round 1 --policy" in found["message"]
    assert api.put(URL, STRICT).json()["changed"] == 3


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({}, "rule"),
        ({"rule": "mine", "of": 5}, "rule"),
        ({"rule": "at-least", "of": 5}, "needed"),
        ({"rule": "at-least", "needed": 5, "of": 3}, "needed"),
        ({"rule": "plurality"}, "of"),
        ({"rule": "plurality", "of": 101}, "of"),
        ({"rule": "n-equal", "needed": "many"}, "needed"),
        ({"rule": "n-equal", "needed": 0}, "needed"),
        ({"rule": "dawid-skene", "of": 5, "threshold": 0.5}, "threshold"),
        ({"rule": "dawid-skene", "of": 5, "threshold": "nan"}, "threshold"),
        ({**STRICT, "dry_run": "perhaps"}, "dry_run"),
        ([], ""),
    ],
)
def test_what_no_policy_can_be(api, judged, asked, field):
    found = error(api.put(URL, asked), 422, "invalid")
    assert set(found["fields"]) == {field}
    assert RoundPolicy.objects.get().policy["rule"] == "at-least"


def test_a_closed_round_needs_no_number_of_votes(api, judged):
    Round.objects.update(state="closed")
    told = api.put(URL, {"rule": "plurality"}).json()
    assert (told["policy"]["rule"], told["policy"]["of"]) == ("plurality", None)


def test_a_released_round_stays_but_can_be_tried(api, judged):
    Round.objects.update(state="released")
    assert api.put(URL, TRIED).json()["changed"] == 3
    error(api.put(URL, STRICT), 409, "released")
    assert RoundPolicy.objects.get().policy["rule"] == "at-least"


def test_a_task_with_verdicts_takes_no_dawid_skene(api, alice, qa):
    TaskMember.objects.create(task=qa.task, user=alice, role="owner")
    reply = api.put("/api/v1/tasks/qa/rounds/1/policy/", {"rule": "dawid-skene", "of": 5})
    assert set(error(reply, 422, "invalid")["fields"]) == {"rule"}


@pytest.mark.parametrize("number", [9, 2**31, 10**30])
def test_another_round_is_not_there(api, judged, number):
    url = f"/api/v1/tasks/nli/rounds/{number}/policy/"
    assert api.get(url).status_code == api.put(url, TRIED).status_code == 404


def test_query_count(as_alice, alice, nli):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    people = UserFactory.create_batch(5)
    fill_review(1, nli, people)

    def ask():
        as_alice.put(URL, TRIED, "application/json")
        with CaptureQueriesContext(connection) as queries:
            assert as_alice.put(URL, TRIED, "application/json").status_code == 200
        return len(queries)

    few = ask()
    fill_review(12, nli, people, first=1)
    assert ask() == few
    check("API policy, dry run", few)
