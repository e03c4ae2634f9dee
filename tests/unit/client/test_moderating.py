"""What moderators and owners say of examples, at the real API."""

import pytest

from dynabench.client import Invalid, NotFound
from tests.api.test_decisions import people, split  # noqa: F401 - fixtures


@pytest.fixture
def owner(client_of, alice, split):  # noqa: F811
    return client_of(alice, split.round.task, "owner")


def test_the_queue_is_walked_and_decided(owner, split):  # noqa: F811
    (item,) = owner.review("nli", "split", round=1)
    assert (item["reasons"], item["example"]["id"]) == (["split"], str(split.uuid))
    assert owner.review("nli", "flagged") == []
    decided = owner.decide(str(split.uuid), "label:entailment", "Read the passage again.")
    assert decided["consensus"]["label"] == "entailment"
    assert owner.withdraw_decision(str(split.uuid)) is None
    assert owner.example(str(split.uuid))["consensus"]["label"] == "neutral"
    with pytest.raises(Invalid, match="answer: "):
        owner.decide(str(split.uuid), "label:perhaps")


def test_another_policy_is_tried_and_applied(owner):
    assert owner.policy("nli", 1)["rule"] == "plurality"
    tried = owner.change_policy("nli", 1, rule="n-equal", needed=3, dry_run=True)
    assert (tried["changed"], tried["preview"]["changed"]) == (1, 1)
    assert owner.policy("nli", 1)["rule"] == "plurality"
    assert owner.change_policy("nli", 1, rule="n-equal", needed=3)["preview"] is None
    assert owner.policy("nli", 1)["words"] == tried["policy"]["words"]


def test_others_find_nothing(client_of, bob, split):  # noqa: F811
    client = client_of(bob)
    for call in (client.review, lambda task: client.policy(task, 1)):
        with pytest.raises(NotFound):
            call("nli")
    with pytest.raises(NotFound):
        client.decide(str(split.uuid), "label:neutral")
