"""Another policy for a round: seen before it is stored, applied to what is there, and noted."""

# ruff: noqa: F811  (fixtures are named where they are used)

import re

import pytest

from annotation.models import Example
from core.accounts.models import LogEntry
from tasks.models import TaskMember
from tests.support.factories import UserFactory
from tests.support.policies import rederive
from tests.support.policy_pages import (
    POLICIES,
    VOTES,
    judged,  # noqa: F401
    stored,
)
from tests.web.conftest import HTMX
from validation.consensus.consensus import Policy, Vote
from validation.decisions import policy_preview, services
from validation.decisions.consensus_rows import get_policy
from validation.decisions.policy_preview import describe_policy, preview_policy
from validation.decisions.services import derive_round, override_consensus
from validation.models import Consensus, QueueItem, RoundPolicy

pytestmark = pytest.mark.usefixtures("few_are_enough")

URL = "/own/nli/rounds/1/policy/"
STRICT = {"rule": "strict", "of": "3"}


@pytest.mark.parametrize("headers", [{}, HTMX], ids=["page", "htmx"])
def test_a_preview_tells_what_changes_and_stores_nothing(as_alice, judged, headers):
    before = stored()
    text = as_alice.get(URL).text
    assert 'id="preview"' not in text
    response = as_alice.get(URL, STRICT, **headers)
    assert response.status_code == 200
    changes = response.context["preview"]
    assert (changes.changed, changes.examples) == (3, 5)
    assert "Statement 0." in response.text
    assert "20.0%" in response.text  # vMER now: 1 of 5
    assert "40.0%" in response.text  # by this policy: 2 of 5
    assert ("<html" in response.text) == (not headers)
    assert (stored(), RoundPolicy.objects.get().policy["rule"]) == (before, "at-least")


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_what_is_previewed_is_what_applying_changes(judged, alice, policy):
    override_consensus(example=Example.objects.first(), owner=alice, choice=Vote("contradiction"))
    before = dict(zip(Consensus.objects.order_by("pk").values_list("pk"), stored(), strict=True))
    found = preview_policy(judged, policy)
    assert rederive(round=judged, policy=policy) == found.changed
    assert preview_policy(judged, policy).changed == 0
    changed = [
        pk for (pk, was), now in zip(before.items(), stored(), strict=True) if was[:-1] != now[:-1]
    ]
    assert [(pk,) for pk in found.first] == changed
    errors = Consensus.objects.filter(is_validated_error=True).count()
    assert found.after["vmer"].value == errors / len(VOTES)


def test_a_preview_says_how_many_are_open_again(judged):
    rederive(round=judged, policy=Policy("strict", of=3))
    found = preview_policy(judged, Policy("at-least", 3, 5))
    assert found.reopened == 3
    assert sum(found.transitions.values()) == len(found.transitions) == 3
    assert {after for _, after in found.transitions} == {"undecided"}


def test_applying_counts_again_and_is_noted(as_alice, alice, judged):
    response = as_alice.post(URL, STRICT, follow=True)
    (message,) = response.context["messages"]
    assert re.findall(r"\d+", str(message)) == ["1", "3"]  # the round, and what changed
    assert response.context["in_force"] == describe_policy(get_policy(judged))
    assert [row[0] for row in stored()] == ["decided", "decided", "no_consensus", "decided"]
    assert QueueItem.objects.filter(still_needed__gt=0).count() == 1
    entry = LogEntry.objects.get(action="policy.changed")
    assert (entry.actor, entry.data["rule"], entry.data["of"]) == (alice, "strict", 3)


def test_a_large_round_is_counted_by_a_worker(as_alice, judged, monkeypatch):
    calls = []
    monkeypatch.setattr(services, "MAX_EXAMPLES_AT_ONCE", 4)
    monkeypatch.setattr(services, "enqueue", lambda *call: calls.append(call))
    before = stored()
    as_alice.post(URL, STRICT)
    assert stored() == before
    assert calls == [("validation.decisions.services.count_again", judged.pk)]
    services.count_again(judged.pk)
    assert [row[0] for row in stored()] == ["decided", "decided", "no_consensus", "decided"]
    assert derive_round(round=judged) == 0


def test_a_round_too_large_to_preview_says_how_else(as_alice, judged, monkeypatch):
    monkeypatch.setattr(policy_preview, "MAX_PREVIEWED_EXAMPLES", 4)
    text = as_alice.get(URL, STRICT).text
    assert "manage.py task_report nli --round 1 --policy" in text
    assert 'id="apply-policy"' in text


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"rule": "at-least", "of": "5"}, "needed"),
        ({"rule": "at-least", "needed": "5", "of": "3"}, "needed"),
        ({"rule": "plurality"}, "of"),
        ({"rule": "dawid-skene", "of": "5", "threshold": "0.5"}, "threshold"),
        ({"rule": "n-equal", "needed": "many"}, "needed"),
        ({"rule": "mine", "of": "5"}, "rule"),
        ({"rule": "", "of": "5"}, "rule"),
    ],
)
@pytest.mark.parametrize("method", ["get", "post"])
def test_a_policy_that_cannot_be_is_refused(as_alice, judged, given, field, method):
    response = getattr(as_alice, method)(URL, given)
    assert response.status_code == 422
    assert 'id="error-summary"' in response.text
    assert [*response.context["form"].errors] == [field]
    assert RoundPolicy.objects.get().policy["rule"] == "at-least"


def test_a_closed_round_needs_no_number_of_votes(as_alice, judged):
    type(judged).objects.update(state="closed")
    assert as_alice.get(URL, {"rule": "plurality"}).status_code == 200


def test_a_released_round_stays(as_alice, judged):
    type(judged).objects.update(state="released")
    page = as_alice.get(URL, STRICT).text
    assert 'id="apply-policy"' not in page
    assert as_alice.post(URL, STRICT).status_code == 409
    assert RoundPolicy.objects.get().policy["rule"] == "at-least"


def test_a_task_with_verdicts_offers_no_dawid_skene(client, alice, qa):
    TaskMember.objects.create(task=qa.task, user=alice, role="owner")
    client.force_login(alice)
    page = client.get("/own/qa/rounds/1/policy/").text
    assert "dawid-skene" not in page
    assert 'value="plurality"' in page
    assert not RoundPolicy.objects.exists()


@pytest.mark.parametrize(("role", "refused"), [(None, 404), ("reviewer", 403)])
def test_only_editors_come_in(client, judged, role, refused):
    stranger = UserFactory()
    if role:
        TaskMember.objects.create(task=judged.task, user=stranger, role=role)
    client.force_login(stranger)
    assert client.get(URL, STRICT).status_code == refused
    assert client.post(URL, STRICT).status_code == refused
    assert RoundPolicy.objects.get().policy["rule"] == "at-least"


def test_another_round_is_not_there(as_alice, judged):
    assert as_alice.get("/own/nli/rounds/9/policy/").status_code == 404


def test_former_policies_are_listed_and_shown_again(as_alice, judged):
    now = get_policy(judged)
    assert as_alice.post(URL, STRICT).status_code == 302
    [(entry, words, query)] = as_alice.get(URL).context["former"]
    assert (entry.actor.email, words) == ("alice@example.com", describe_policy(get_policy(judged)))
    back = {"rule": now.rule, "needed": now.needed, "of": now.of}
    assert as_alice.post(URL, back).status_code == 302
    newest, former = as_alice.get(URL).context["former"]
    shown = as_alice.get(f"{URL}?{former[2]}").context["form"]
    assert (former[1:], shown.is_valid(), shown.policy.rule) == ((words, query), True, "strict")
    assert newest[1] == describe_policy(now)
