"""What reviewers and owners say of examples, at the real API."""

import pytest

from dynabench.client import Invalid, NotFound
from tests.support.split_rounds import people, split  # noqa: F401 - fixtures


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
    (past,) = owner.decisions(str(split.uuid))
    assert past["answer"] == decided["answer"]
    assert past["withdrawn_at"]
    with pytest.raises(Invalid, match="answer: "):
        owner.decide(str(split.uuid), "label:perhaps")


def test_a_decided_example_becomes_gold_and_not_any_more(owner, split):  # noqa: F811
    made = owner.mark_gold(str(split.uuid), "No clue is given.")
    assert (made["answer"], made["explanation"]) == ("label:neutral", "No clue is given.")
    assert owner.gold("nli") == [made]
    assert owner.unmark_gold(str(split.uuid)) is None
    assert owner.gold("nli") == []


def test_an_example_is_withdrawn(owner, split):  # noqa: F811
    assert owner.withdraw_example(str(split.uuid), "It names a person.") is None
    assert owner.review("nli") == []


def test_a_context_is_reported_and_the_report_resolved(owner, client_of, bob):
    person = client_of(bob)
    context = person.assignment("nli")["context"]["id"]
    made = person.report_context(context, "broken", "It ends in the middle.")
    assert owner.reports("nli", is_open=True) == owner.reports("nli") == [made]
    assert owner.resolve_report(made["id"])["resolved_at"]
    assert owner.reports("nli", is_open=True) == []
    assert len(owner.reports("nli", is_open=False)) == 1


def test_people_and_the_round_are_told_of(owner):
    (author,) = owner.authors("nli")
    assert (author["tries"], author["judged"]) == (1, 1)
    assert [one["votes"] for one in owner.validators("nli", round=1)] == [1, 1, 1]
    assert owner.validators("nli", round=9) == []
    assert owner.activity("nli", 1)["people"] == 4
    assert isinstance(owner.second_opinion("nli", 1)["reason"], str | None)


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


def test_many_examples_are_found_tagged_and_decided(owner, split):  # noqa: F811
    wanted = {"input.label": "neutral", "agreement": "split"}
    (found,) = owner.review_examples("nli", wanted)
    assert (found["id"], found["tags"]) == (str(split.uuid), [])
    tagged = owner.act_on_examples("nli", "tag", filters=wanted, tag="Odd")
    assert (tagged["changed"], tagged["left"]) == (1, [])
    assert owner.review_examples("nli", {"tag": "odd"})[0]["tags"] == ["odd"]
    assert owner.undo_act("nli", tagged["run"])["action"] == "untag"
    owner.act_on_examples("nli", "send-back", [found["id"]], reason="Mend it.")
    (sent,) = owner.review_examples("nli", {"state": "sent-back"})
    assert sent["consensus"]["is_sent_back"]
    for odd in ({"tag": "none"}, {"input.nothing": "x"}, {"with": "x"}):
        with pytest.raises(Invalid):
            owner.review_examples("nli", odd)
        with pytest.raises(Invalid):
            owner.act_on_examples("nli", "accept", filters=odd)
    with pytest.raises(Invalid, match="reason: "):
        owner.act_on_examples("nli", "send-back", [found["id"]])
    for odd in ([], ["00000000-0000-4000-8000-000000000000"]):
        with pytest.raises(Invalid) as refused:
            owner.act_on_examples("nli", "accept", odd)
        assert list(refused.value.fields) == ["examples"]
