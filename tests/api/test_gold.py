"""Gold items in the API: reviewers make and list them, nobody else learns which they are."""

import pytest

from annotation.moderation import withdraw_example
from core.accounts.models import LogEntry
from core.accounts.services import get_annotator
from tasks.models import TaskMember
from tests.support.api_writing import error
from tests.support.factories import UserFactory
from tests.support.gold_items import make_gold
from tests.support.judging import write
from tests.support.query_counts import check, count
from tests.support.roles import refused
from validation.consensus.consensus import Vote
from validation.decisions.services import override_consensus
from validation.models import Gold

URL = "/api/v1/tasks/nli/gold/"
WHY = {"explanation": "No clue is given."}


@pytest.fixture
def reviewer(api, alice, nli):
    TaskMember.objects.create(task=nli.task, user=alice, role="reviewer")
    return api


@pytest.fixture
def decided(nli, bob):
    example = write(nli, bob)
    override_consensus(example=example, owner=bob, choice=Vote(label="neutral"))
    return example


def gold_url(example):
    return f"/api/v1/examples/{example.uuid}/gold/"


@pytest.mark.parametrize("role", [None, "viewer", "reviewer"])
def test_who_may_have_gold(api, alice, decided, role):
    if role:
        TaskMember.objects.create(task=decided.round.task, user=alice, role=role)
    may = role not in (None, "viewer")
    assert api.get(URL).status_code == (200 if may else refused(role))
    assert api.put(gold_url(decided), WHY).status_code == (200 if may else refused(role))
    assert Gold.objects.exists() == may
    assert api.delete(gold_url(decided)).status_code == (204 if may else refused(role))
    assert not Gold.objects.exists()


def test_without_an_account_or_the_scope_there_is_none(anybody, api_of, alice, nli, decided):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    assert anybody.get(URL).status_code == anybody.put(gold_url(decided)).status_code == 401
    client = api_of(alice, "read", "annotate", "submit")
    error(client.put(gold_url(decided), WHY), 403, "scope")
    error(client.delete(gold_url(decided)), 403, "scope")
    assert not Gold.objects.exists()


def test_a_decided_example_becomes_gold(reviewer, alice, decided):
    told = reviewer.put(gold_url(decided), WHY).json()
    assert (told["example"], told["round"]) == (str(decided.uuid), 1)
    assert (told["answer"], told["explanation"]) == ("label:neutral", WHY["explanation"])
    assert told["made_by"] == get_annotator(alice).pseudonym
    made = Gold.objects.get()
    assert (made.example, made.label, made.made_by) == (decided, "neutral", alice)
    assert reviewer.get(URL).json()["results"] == [told]


def test_gold_is_explained_otherwise(reviewer, alice, bob, decided):
    reviewer.put(gold_url(decided), WHY)
    told = reviewer.put(gold_url(decided), {"explanation": "Read it twice."}).json()
    assert told["explanation"] == Gold.objects.get().explanation == "Read it twice."
    assert LogEntry.objects.get(action="gold.explained").actor == alice
    assert LogEntry.objects.filter(action="gold.marked").count() == 1
    reviewer.put(gold_url(decided), {"explanation": "Read it twice."})
    assert LogEntry.objects.filter(action="gold.explained").count() == 1


def test_gold_becomes_an_example_like_all_others(reviewer, decided):
    reviewer.put(gold_url(decided), {})
    assert reviewer.delete(gold_url(decided)).status_code == 204
    error(reviewer.delete(gold_url(decided)), 409, "no_gold")
    assert reviewer.get(URL).json()["results"] == []


def test_what_is_not_decided_is_no_gold(reviewer, nli, bob):
    error(reviewer.put(gold_url(write(nli, bob)), WHY), 409, "no_gold")
    assert not Gold.objects.exists()


@pytest.mark.parametrize("asked", [{"explanation": "x" * 501}, {"explanation": "a\0"}])
def test_what_explains_nothing(reviewer, decided, asked):
    found = error(reviewer.put(gold_url(decided), asked), 422, "invalid")
    assert set(found["fields"]) == {"explanation"}
    assert not Gold.objects.exists()


def test_the_list_names_nobody_and_leaves_out_what_nobody_meets(
    reviewer, alice, bob, nli, sentiment
):
    first, second = make_gold(nli, bob, alice, count=2)
    withdraw_example(example=second.example, actor=alice, reason="It names somebody.")
    elsewhere = write(sentiment, bob, text="Fine.", label="positive")
    override_consensus(example=elsewhere, owner=alice, choice=Vote(label="positive"))
    Gold.objects.create(example=elsewhere, label="positive")
    Gold.objects.update(made_by=None)
    reply = reviewer.get(URL)
    (told,) = reply.json()["results"]
    assert (told["example"], told["made_by"]) == (str(first.example.uuid), "")
    assert not [word for word in (alice.email, bob.email) if word in reply.text]
    assert reviewer.put(gold_url(elsewhere), WHY).status_code == 404


def test_query_count(as_alice, alice, bob, nli):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    make_gold(nli, bob, alice)
    few = count(as_alice, URL)
    for number in range(5):
        example = write(nli, UserFactory(), number)
        Gold.objects.create(example=example, label="neutral", made_by=UserFactory())
    assert count(as_alice, URL) == few
    check("API gold", few)
