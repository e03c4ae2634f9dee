"""Who gets which example next, what decides, and what a round's numbers are."""

from datetime import timedelta
from itertools import pairwise

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotation.attempts.services import retract_example
from annotation.models import Example
from core.accounts.services import get_annotator
from core.errors import Refused
from tests.support.factories import UserFactory
from tests.support.judging import URL, judge, write
from tests.support.policies import rederive
from tests.web.conftest import HTMX
from validation.consensus.consensus import Policy, Vote
from validation.consensus.sampling import is_in_share
from validation.decisions.services import override_consensus, withdraw_override
from validation.judging import queue as selectors
from validation.judging.queue import FreePlace, find_next_place, read_round_numbers
from validation.judging.queue_services import fill_queue
from validation.judging.services import lease_next
from validation.models import Consensus, JudgeLease, QueueItem, Validation


def test_the_next_example_is_found_through_the_index(alice, nli, bob):
    if connection.vendor == "postgresql":  # which reads a table of one row as a whole
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
    with CaptureQueriesContext(connection) as queries:
        assert find_next_place(nli.pk, get_annotator(alice)) is None
    with connection.cursor() as cursor:
        explain = "EXPLAIN" if connection.vendor == "postgresql" else "EXPLAIN QUERY PLAN"
        cursor.execute(f"{explain} {queries[0]['sql']}")
        plan = str(cursor.fetchall())
    assert "queue_order" in plan
    assert "TEMP B-TREE" not in plan
    assert "Sort" not in plan


def test_the_same_author_does_not_come_twice_in_a_row(as_alice, nli, bob):
    carol = UserFactory()
    for number in range(6):
        write(nli, bob if number < 3 else carol, number)
    authors = []
    for _ in range(6):
        judge(as_alice, "label:neutral", **HTMX)
        authors.append(Validation.objects.latest("pk").author_id)
    assert all(first != second for first, second in pairwise(authors))


def test_the_count_of_waiting_examples_has_those_that_are_not_queued_yet(as_alice, nli, bob):
    for number in range(3):
        write(nli, bob, number)
    assert not QueueItem.objects.exists()
    assert as_alice.get(URL).context["about"] == 3


def test_nearly_decided_examples_come_first(client, nli, bob):
    for number in range(8):
        write(nli, bob if number % 2 else UserFactory(), number)
    client.force_login(UserFactory())
    judge(client, "label:neutral", **HTMX)
    begun = Validation.objects.get().example
    client.force_login(UserFactory())
    assert str(begun.uuid) in client.get(URL).text


def test_expired_examples_go_to_others(client, alice, nli, bob):
    example = write(nli, bob)
    holders = [UserFactory() for _ in range(3)]
    for holder in holders:
        client.force_login(holder)
        assert "Statement 0." in client.get(URL).text
    client.force_login(alice)
    assert 'id="nothing-to-judge"' in client.get(URL).text
    JudgeLease.objects.update(until=timezone.now() - timedelta(seconds=1))
    assert "Statement 0." in client.get(URL).text
    client.force_login(holders[0])  # a late answer still counts while it is needed
    vote = {"example": example.uuid, "answer": "label:neutral"}
    assert client.post(URL, vote, **HTMX).status_code == 200
    assert Validation.objects.count() == 1


def test_only_a_share_of_what_fooled_nobody_is_judged(as_alice, nli, bob, settings):
    for number in range(40):
        write(nli, bob, number, outcome="not_fooled")
    as_alice.get(URL)
    chosen = {item.example.uuid for item in QueueItem.objects.select_related("example")}
    assert chosen == {
        e.uuid for e in Example.objects.all() if is_in_share(e.uuid, 0.2, settings.SECRET_KEY)
    }


def test_an_owner_decides_and_takes_it_back(client, alice, bob, nli):
    example = write(nli, bob)
    for label in ("neutral", "neutral"):
        client.force_login(UserFactory())
        judge(client, f"label:{label}", **HTMX)
    before = Consensus.objects.values().get()
    override_consensus(example=example, owner=alice, choice=Vote(label="entailment"), reason="No.")
    now = Consensus.objects.get()
    assert (now.state, now.label, now.decided_by) == ("decided", "entailment", "owner")
    assert (now.is_verified, now.votes, now.still_needed) == (False, 2, 0)
    client.force_login(UserFactory())
    assert 'id="nothing-to-judge"' in client.get(URL).text
    override_consensus(example=example, owner=alice, choice=Vote(verdict="flagged"))
    assert Consensus.objects.get().verdict == "flagged"
    withdraw_override(example=example, owner=alice)
    assert Consensus.objects.values().get() == before
    assert "Statement 0." in client.get(URL).text
    assert [d.withdrawn_at is None for d in example.owner_decisions.all()] == [False, False]
    with pytest.raises(Refused):
        withdraw_override(example=example, owner=alice)


def test_another_policy_decides_the_round_anew(client, nli, bob):
    for number in range(3):
        write(nli, bob, number)
    for _ in range(2):
        client.force_login(UserFactory())
        for _ in range(3):
            judge(client, "label:neutral", **HTMX)
    assert not Consensus.objects.filter(state="decided").exists()
    assert rederive(round=nli, policy=Policy("n-equal", 2)) == 3
    assert Consensus.objects.filter(state="decided", is_verified=True).count() == 3
    assert not QueueItem.objects.filter(free__gt=0).exists()
    assert rederive(round=nli, policy=Policy("n-equal", 2)) == 0
    assert rederive(round=nli, policy=Policy("n-equal", 4)) == 3
    assert set(QueueItem.objects.values_list("still_needed", "free")) == {(2, 2)}


def test_numbers_of_a_round(client, alice, nli, bob):
    for number in range(4):
        write(nli, bob, number, outcome="fooled" if number else "no_model")
    retracted = write(nli, bob, 9)
    retract_example(example=retracted)
    for label in ("neutral", "neutral", "neutral"):
        client.force_login(UserFactory())
        for _ in range(3):
            judge(client, f"label:{label}", **HTMX)
    with CaptureQueriesContext(connection) as queries:
        found = read_round_numbers(nli)[nli.pk]
    assert len(queries) == 1
    assert (found["collected"], found["fooled"], found["judged"]) == (4, 3, 3)
    errors = Consensus.objects.filter(example__outcome="fooled").count()
    assert (found["decided"], found["verified"], found["validated_errors"]) == (3, 3, errors)


def test_two_tabs_of_a_person_take_one_place(alice, nli, bob, monkeypatch):
    example, person = write(nli, bob), get_annotator(alice)
    first = lease_next(validator=person, task=nli.task)
    free = QueueItem.objects.get().free
    # The other tab looked for a place before the first one was given its lease.
    monkeypatch.setattr(selectors, "find_latest_lease", lambda *_: None)
    monkeypatch.setattr(
        selectors, "find_next_place", lambda *_, **__: FreePlace(example.pk, None, 0)
    )
    assert lease_next(validator=person, task=nli.task) == first
    assert QueueItem.objects.get().free == free


def test_an_example_is_offered_nowhere_while_its_author_is_asked(alice, nli, bob):
    """For an hour the queue hands it out to nobody, and no page counts it."""
    annotator = get_annotator(alice)
    example = write(nli, bob, outcome="undecided")
    assert not selectors.count_unqueued_examples(annotator, [nli.task_id])
    fill_queue(round=nli)
    assert lease_next(validator=annotator, task=nli.task) is None
    assert not selectors.count_queued_examples([nli.pk])
    assert not selectors.find_tasks_with_places(annotator, [nli.task_id])
    Example.objects.update(created_at=timezone.now() - selectors.AUTHOR_TIME)
    assert selectors.count_queued_examples([nli.pk])[nli.pk] == 1
    assert selectors.find_tasks_with_places(annotator, [nli.task_id]) == {nli.task_id}
    assert lease_next(validator=annotator, task=nli.task).example_id == example.pk
