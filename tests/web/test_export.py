"""What members of a task download of a round at any time."""

import json

import pytest

from annotation.models import Example
from core.accounts.services import get_annotator
from tasks.models import TaskMember
from validation.models import Consensus, Validation

URL = "/own/nli/rounds/1/export.jsonl"


@pytest.fixture
def member(client, alice, nli):
    TaskMember.objects.create(task=nli.task, user=alice, role="viewer")
    client.force_login(alice)
    return client


def example(nli, author, number):
    return Example.objects.create(
        round=nli,
        context=nli.contexts.first(),
        annotator=get_annotator(author),
        inputs={"hypothesis": f"Statement {number}.", "label": "neutral"},
        digest=str(number),
        outcome="fooled",
    )


def lines(client):
    answer = client.get(URL)
    assert answer["Content-Disposition"] == 'attachment; filename="nli-round1.jsonl"'
    return [json.loads(line) for line in answer.getvalue().decode().splitlines()]


def test_all_that_stands_is_exported(member, bob, nli):
    judged, open_one, gone = (example(nli, bob, number) for number in range(3))
    Validation.objects.create(
        example=judged, validator=get_annotator(member_user(member)), label="entailment"
    )
    Consensus.objects.create(example=judged, round=nli, state="undecided", votes=1, still_needed=2)
    Example.objects.filter(pk=gone.pk).update(retracted_at="2026-01-01T00:00Z")
    rows = lines(member)
    assert [row["uid"] for row in rows] == [str(judged.uuid), str(open_one.uuid)]
    assert rows[0]["votes"] == [{"vote": "entailment", "count": 1}]
    assert not rows[0]["validated"]
    assert rows[0]["label"] == "neutral"  # its author's, while nothing is decided
    assert get_annotator(bob).pseudonym not in json.dumps(rows)


def member_user(client):
    from core.accounts.models import User

    return User.objects.get(pk=client.session["_auth_user_id"])


def test_it_takes_as_many_queries_for_many_rows(member, bob, nli, django_assert_num_queries):
    for number in range(30):
        example(nli, bob, number)
    lines(member)  # makes the key of the task's pseudonyms
    with django_assert_num_queries(14):
        assert len(lines(member)) == 30


def test_others_do_not_find_it(client, bob, nli):
    client.force_login(bob)
    assert client.get(URL).status_code == 404
