"""The review queue and owners' decisions in the API: the pages' rules, for reviewers."""

# ruff: noqa: F811  (fixtures are named where they are used)

import pytest

from annotation.models import Example
from annotation.moderation import withdraw_example
from core.accounts.models import Annotator, LogEntry
from core.accounts.services import get_annotator
from tasks.models import TaskMember
from tests.support.api_writing import error
from tests.support.factories import UserFactory
from tests.support.judging import answered, write
from tests.support.query_counts import check, count, fill_review
from tests.support.roles import refused
from tests.support.split_rounds import (
    judged,
    people,  # noqa: F401
    split,  # noqa: F401
)
from validation.consensus.consensus import Vote
from validation.decisions import review_queue
from validation.decisions.services import override_consensus
from validation.models import Consensus, OwnerDecision

URL = "/api/v1/tasks/nli/review/"
MINE = {"answer": "label:entailment", "reason": "Read the passage again."}
WHY = {"reason": "It names somebody."}


@pytest.fixture
def reviewer(api, alice, nli):
    TaskMember.objects.create(task=nli.task, user=alice, role="reviewer")
    return api


def decision(example):
    return f"/api/v1/examples/{example.uuid}/decision/"


def history(example):
    return f"/api/v1/examples/{example.uuid}/decisions/"


def withdrawal(example):
    return f"/api/v1/examples/{example.uuid}/withdraw/"


@pytest.mark.parametrize("role", [None, "viewer", "reviewer"])
def test_who_may_review(api, alice, split, role):
    if role:
        TaskMember.objects.create(task=split.round.task, user=alice, role=role)
    may = role not in (None, "viewer")
    assert api.get(URL).status_code == (200 if may else refused(role))
    assert api.post(decision(split), MINE).status_code == (201 if may else refused(role))
    assert api.delete(decision(split)).status_code == (204 if may else refused(role))
    assert OwnerDecision.objects.count() == may


def test_without_an_account_or_the_scope_nothing_is_decided(anybody, api_of, alice, nli, split):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    assert anybody.get(URL).status_code == anybody.post(decision(split), MINE).status_code == 401
    client = api_of(alice, "read", "annotate", "submit")
    error(client.post(decision(split), MINE), 403, "scope")
    error(client.delete(decision(split)), 403, "scope")
    assert not OwnerDecision.objects.exists()


def test_the_queue_tells_why_and_all_of_the_example_without_identities(
    reviewer, nli, split, people, bob
):
    answered(split, "entailment")
    agreed = judged(nli, bob, people, *["neutral"] * 3, number=1)
    panel = Annotator.objects.create(pseudonym="nli:A1WORKERID", source="import")
    Example.objects.filter(pk=split.pk).update(annotator=panel)
    reply = reviewer.get(URL)
    (item,) = reply.json()["results"]
    assert reply.json()["next"] is None
    assert item["reasons"] == ["split"]
    example = item["example"]
    assert (example["id"], example["round"], example["task"]) == (str(split.uuid), 1, "nli")
    assert example["inputs"]["hypothesis"] == "Statement 0."
    assert example["answers"][0]["target"] == f"target-{split.pk}"
    assert (example["consensus"]["label"], example["consensus"]["votes"]) == ("neutral", 3)
    assert example["annotator"].startswith("import-")
    assert not [w for w in ("A1WORKERID", bob.email, str(agreed.uuid)) if w in reply.text]


def test_the_queue_is_filtered(reviewer, split):
    def found(**query):
        return len(reviewer.get(URL, query).json()["results"])

    assert (found(kind="split"), found(kind="flagged"), found(kind="owner")) == (1, 0, 0)
    assert (found(round=1), found(round=2)) == (1, 0)
    assert reviewer.post(decision(split), MINE).status_code == 201
    assert (found(), found(kind="owner")) == (0, 1)
    for query in ({"kind": "other"}, {"round": "x"}, {"after": -1}, {"after": 2**63},
                  {"page_size": 0}, {"page_size": 101}):  # fmt: skip
        assert set(error(reviewer.get(URL, query), 422, "invalid")["fields"]) == set(query)


def test_next_leads_through_the_whole_queue(reviewer, nli, bob, people, monkeypatch):
    monkeypatch.setattr(
        review_queue, "is_sampled_for_review", lambda uuid, secret: uuid.int % 2 == 0
    )
    for number in range(9):
        judged(nli, bob, people[:1], "neutral", number=number)
    wanted = [str(e.uuid) for e in Example.objects.order_by("pk") if e.uuid.int % 2 == 0]
    for looked_at in (1, 1000):  # at the first size pages are empty
        monkeypatch.setattr(review_queue, "MAX_SCANNED_EXAMPLES", looked_at)
        found, url = [], f"{URL}?kind=sample&page_size=2"
        while url:
            page = reviewer.get(url).json()
            assert len(page["results"]) <= 2
            found += [item["example"]["id"] for item in page["results"]]
            url = page["next"]
        assert found == wanted


def test_a_decision_counts_over_all_votes(reviewer, alice, split):
    reply = reviewer.post(decision(split), MINE)
    assert reply.status_code == 201
    told = reply.json()
    assert (told["example"], told["answer"]) == (str(split.uuid), MINE["answer"])
    assert (told["reason"], told["consensus"]["label"]) == (MINE["reason"], "entailment")
    assert (told["consensus"]["decided_by"], told["consensus"]["votes"]) == ("owner", 3)
    made = OwnerDecision.objects.get()
    assert (made.owner, made.label, made.reason) == (alice, "entailment", MINE["reason"])
    assert LogEntry.objects.get(action="consensus.overridden").actor == alice
    told = reviewer.post(decision(split), {"answer": "verdict:flagged"}).json()
    assert (told["answer"], told["reason"]) == ("verdict:flagged", "")
    assert told["consensus"]["verdict"] == "flagged"
    assert OwnerDecision.objects.filter(withdrawn_at=None).count() == 1


def test_one_key_decides_once(reviewer, split):
    for _ in range(2):
        assert reviewer.post(decision(split), MINE, HTTP_IDEMPOTENCY_KEY="k").status_code == 201
    assert OwnerDecision.objects.count() == 1


def test_withdrawing_it_lets_the_votes_decide_again(reviewer, split):
    reviewer.post(decision(split), MINE)
    assert reviewer.delete(decision(split)).status_code == 204
    now = Consensus.objects.get()
    assert (now.label, now.decided_by, now.is_verified) == ("neutral", "votes", True)
    error(reviewer.delete(decision(split)), 409, "no_decision")


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({}, "answer"),
        ({"answer": None}, "answer"),
        ({"answer": "neutral"}, "answer"),
        ({"answer": "label:other"}, "answer"),
        ({"answer": "verdict:correct"}, "answer"),
        ({**MINE, "reason": "x" * 501}, "reason"),
        ({**MINE, "reason": "a\0"}, "reason"),
        ([], ""),
    ],
)
def test_what_no_decision_can_be(reviewer, split, asked, field):
    found = error(reviewer.post(decision(split), asked), 422, "invalid")
    assert set(found["fields"]) == {field}
    if isinstance(asked, dict) and isinstance(asked.get("answer"), str) and field == "answer":
        assert "label:neutral, label:contradiction" in found["fields"]["answer"][0]
    assert not OwnerDecision.objects.exists()


def test_a_withdrawn_example_is_not_decided(reviewer, alice, nli, bob):
    example = write(nli, bob)
    withdraw_example(example=example, actor=alice, reason="It names somebody.")
    error(reviewer.post(decision(example), MINE), 409, "no_decision")
    assert not OwnerDecision.objects.exists()


def test_an_example_of_another_task_is_not_there(reviewer, sentiment, bob):
    example = write(sentiment, bob)
    assert reviewer.post(decision(example), MINE).status_code == 404
    assert reviewer.delete(decision(example)).status_code == 404


def test_query_count(as_alice, alice, nli):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    people = UserFactory.create_batch(5)
    fill_review(1, nli, people)
    few = count(as_alice, URL)
    fill_review(12, nli, people, first=1)
    assert count(as_alice, URL) == few
    check("API review", few)


# What was decided before, and withdrawing


def test_all_decisions_are_told_the_newest_first(reviewer, alice, bob, split):
    reviewer.post(decision(split), MINE)
    reviewer.post(decision(split), {"answer": "verdict:flagged"})
    reviewer.delete(decision(split))
    reviewer.post(decision(split), {"answer": "label:neutral"})
    OwnerDecision.objects.filter(verdict="flagged").update(owner=None)
    reply = reviewer.get(history(split))
    told = reply.json()["results"]
    answers = ["label:neutral", "verdict:flagged", MINE["answer"]]
    assert [one["answer"] for one in told] == answers
    assert [one["withdrawn_at"] is None for one in told] == [True, False, False]
    assert [one["reason"] for one in told] == ["", "", MINE["reason"]]
    mine = get_annotator(alice).pseudonym
    assert [one["owner"] for one in told] == [mine, "", mine]
    assert not [word for word in (alice.email, bob.email) if word in reply.text]


@pytest.mark.parametrize("role", [None, "viewer", "reviewer"])
def test_who_may_read_decisions_and_withdraw(api, alice, split, role):
    if role:
        TaskMember.objects.create(task=split.round.task, user=alice, role=role)
    may = role not in (None, "viewer")
    assert api.get(history(split)).status_code == (200 if may else refused(role))
    assert api.post(withdrawal(split), WHY).status_code == (204 if may else refused(role))
    assert Example.objects.filter(retracted_at=None).exists() != may


def test_withdrawing_takes_an_account_and_the_scope(anybody, api_of, alice, nli, split):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    assert anybody.get(history(split)).status_code == 401
    assert anybody.post(withdrawal(split), WHY).status_code == 401
    client = api_of(alice, "read", "annotate", "submit")
    error(client.post(withdrawal(split), WHY), 403, "scope")
    assert Example.objects.get().retracted_at is None


def test_a_withdrawn_example_leaves_everything_once(reviewer, alice, split):
    examples = "/api/v1/tasks/nli/rounds/1/examples/"
    assert len(reviewer.get(examples).json()["results"]) == 1
    for _ in range(2):
        assert reviewer.post(withdrawal(split), WHY).status_code == 204
    assert reviewer.get(examples).json()["results"] == []
    entry = LogEntry.objects.get(action="example.withdrawn")
    assert (entry.actor, entry.data["reason"]) == (alice, WHY["reason"])
    assert WHY["reason"] not in reviewer.get(f"/api/v1/examples/{split.uuid}/").text


@pytest.mark.parametrize("asked", [{}, {"reason": " "}, {"reason": "x" * 201}, {"reason": "a\0"}])
def test_why_it_is_withdrawn_must_be_said(reviewer, split, asked):
    found = error(reviewer.post(withdrawal(split), asked), 422, "invalid")
    assert set(found["fields"]) == {"reason"}
    assert Example.objects.get().retracted_at is None


def test_what_is_of_another_task_is_neither_read_nor_withdrawn(reviewer, sentiment, bob):
    example = write(sentiment, bob)
    assert reviewer.get(history(example)).status_code == 404
    assert reviewer.post(withdrawal(example), WHY).status_code == 404


def test_query_count_of_decisions(as_alice, alice, nli, bob):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    example = write(nli, bob)

    def add(rows):
        for _ in range(rows):
            owner = UserFactory()
            override_consensus(example=example, owner=owner, choice=Vote(label="neutral"))

    add(1)
    few = count(as_alice, history(example))
    add(6)
    assert count(as_alice, history(example)) == few
    check("API decisions", few)
