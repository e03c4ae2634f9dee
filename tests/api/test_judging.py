"""Judging through the API: blind, once, never one's own, and only by people unless told else."""

from datetime import timedelta

import pytest
from django.utils import timezone

from annotation.attempts.services import retract_example
from annotation.models import Example, GatePass
from core.accounts.idempotency import LEASE_TIME
from core.accounts.models import IdempotentAnswer
from core.accounts.services import get_annotator
from tasks.models import TaskMember
from tests.support.api_writing import configure, error
from tests.support.factories import UserFactory
from tests.support.gold_items import make_gold
from tests.support.judging import answered, write
from validation.models import Consensus, GoldAnswer, JudgeLease, Skip, Validation

NEXT = "/api/v1/tasks/nli/judging/next/"
FLAG = {"vote": "verdict:flagged", "flag_reason": "unclear", "comment": "What?"}


@pytest.fixture
def allowed(nli):
    """A task that lets programs judge."""
    configure(nli.task, "programs: {judge: true}")
    return nli


@pytest.fixture
def example(allowed, bob):
    return write(allowed, bob)


def votes(example):
    return f"/api/v1/examples/{example.uuid}/validations/"


def handed(client, url=NEXT):
    response = client.post(url)
    assert response.status_code == 200, response.content
    return response.json()


def judged(client, example, vote="label:neutral"):
    handed(client)
    return client.post(votes(example), {"vote": vote})


def test_programs_judge_only_where_they_may(api, as_alice, nli, bob):
    example = write(nli, bob)
    for response in (
        api.post(NEXT),
        api.post(votes(example), {"vote": "label:neutral"}),
        api.delete(votes(example) + "mine/"),
        api.post(f"/api/v1/examples/{example.uuid}/skip/"),
    ):
        error(response, 403, "programs")
    kind = {"content_type": "application/json"}
    assert as_alice.post(NEXT, {}, **kind).status_code == 200
    told = as_alice.post(votes(example), {"vote": "label:neutral"}, **kind)
    assert (told.status_code, told.json()["by_program"]) == (201, False)
    assert not Validation.objects.get().by_program


def test_an_item_is_blind(api, example):
    answered(example)
    example.metadata = {"why_right_text": "Because of a secret."}
    example.save()
    item = handed(api)
    assert item["inputs"] == {"hypothesis": "Statement 0."}
    assert item["context"]["premise"].startswith("Person")
    assert [one["vote"] for one in item["choices"]] == [
        *("label:entailment", "label:neutral", "label:contradiction"),
        *("verdict:cannot_tell", "verdict:flagged"),
    ]
    hidden = ("secret", "0.9", "target-", str(example.annotator), "fooled", "by_program")
    assert not [words for words in hidden if words in str(item)]


def test_an_item_is_the_same_whatever_the_author_and_the_model_said(api, allowed, bob):
    items = []
    for label in ("entailment", "neutral", "contradiction"):
        for outcome in ("fooled", "no_model"):
            number = Example.objects.count()
            inputs = {"hypothesis": "It is.", "label": label}
            example = write(allowed, bob, number, outcome=outcome, **inputs)
            example.by_program = outcome == "fooled"
            example.save()
            answered(example, outcome)
            item = handed(api)
            assert item["example"] == str(example.uuid)
            assert api.post(f"/api/v1/examples/{example.uuid}/skip/").status_code == 204
            items.append({n: v for n, v in item.items() if n not in ("example", "until")})
    assert all(item == items[0] for item in items)
    assert Skip.objects.count() == 6
    assert api.post(NEXT).status_code == 204


def test_a_vote_is_stored_and_marked(api, alice, example):
    response = judged(api, example)
    assert response.status_code == 201
    told = response.json()
    assert (told["vote"], told["by_program"], told["revealed"]) == ("label:neutral", True, None)
    vote = Validation.objects.get()
    assert (vote.label, vote.validator, vote.by_program) == ("neutral", get_annotator(alice), True)
    assert Consensus.objects.get().votes == 1
    assert api.get(votes(example) + "mine/").json() == told
    assert api.post(NEXT).status_code == 204


def test_a_vote_is_on_what_one_was_handed_and_cast_once(api, api_of, alice, bob, example):
    vote = {"vote": "label:neutral"}
    error(api.post(votes(example), vote), 403, "not_handed_out")
    JudgeLease.objects.create(
        example=example,
        validator=get_annotator(bob),
        leased_at=timezone.now(),
        until=timezone.now(),
    )
    error(api_of(bob).post(votes(example), vote), 403, "refused")
    judged(api, example)
    error(api.post(votes(example), {"vote": "label:entailment"}), 409, "too_late")
    assert Validation.objects.get().label == "neutral"


@pytest.mark.parametrize("headers", [{}, {"HTTP_IDEMPOTENCY_KEY": "k"}], ids=["plain", "key"])
def test_a_vote_whose_answer_was_lost_is_found_by_sending_it_again(api, example, headers):
    handed(api)
    sent = (votes(example), {"vote": "label:neutral"})
    told = api.post(*sent, **headers).json()
    # As after a kill between the vote and its answer: the key is taken, and nobody works.
    IdempotentAnswer.objects.update(status=None, body=None)
    if headers:
        error(waits := api.post(*sent, **headers), 409, "in_progress")
        assert 1 <= int(waits["Retry-After"]) <= 10
        IdempotentAnswer.objects.update(begun_at=timezone.now() - LEASE_TIME)
    again = api.post(*sent, **headers)
    assert (again.status_code, again.json()) == (201, told)
    assert Validation.objects.count() == 1


def test_what_was_retracted_comes_too_late(api, example):
    handed(api)
    retract_example(example=example)
    error(api.post(votes(example), {"vote": "label:neutral"}), 409, "too_late")


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({}, "vote"),
        ({"vote": "neutral"}, "vote"),
        ({"vote": "label:\x00"}, "vote"),
        ({"vote": "verdict:correct"}, "vote"),
        ({"vote": "label:neutral", "comment": "Hm."}, "comment"),
        ({"vote": "verdict:flagged"}, "flag_reason"),
        ({**FLAG, "flag_reason": "boring"}, "flag_reason"),
        ({**FLAG, "flag_reason": "other", "comment": ""}, "comment"),
        ({**FLAG, "metadata": {"x": 1}}, "metadata.x"),
        ({**FLAG, "metadata": {"x": "\x00"}}, "metadata"),
    ],
)
def test_a_vote_that_does_not_exist_is_named(api, example, asked, field):
    handed(api)
    fields = error(api.post(votes(example), asked), 422, "invalid")["fields"]
    assert list(fields) == [field]
    assert not Validation.objects.exists()


def test_a_flag_has_a_reason(api, example):
    handed(api)
    for _ in range(2):  # the same once more
        sent = {**FLAG, "comment": "Whe\u0301n?\r\nWhat?"}
        assert api.post(votes(example), sent).status_code == 201
    vote = Validation.objects.get()
    said = (vote.verdict, vote.flag_reason, vote.comment)
    assert said == ("flagged", "unclear", "Wh\u00e9n?\nWhat?")


def test_without_a_passage_none_is_broken(api, example):
    broken = {**FLAG, "flag_reason": "broken"}
    assert "broken" in handed(api)["flag_reasons"]
    configure(example.round.task, "support:\n  prompt_field: premise\n", "support:\n")
    assert "broken" not in handed(api)["flag_reasons"]
    fields = error(api.post(votes(example), broken), 422, "invalid")["fields"]
    assert list(fields) == ["flag_reason"]


def test_a_vote_is_taken_back(api, bobs, example):
    judged(api, example)
    assert bobs.delete(votes(example) + "mine/").status_code == 404
    assert api.delete(votes(example) + "mine/").status_code == 204
    assert not Validation.objects.exists()
    assert handed(api)["example"] == str(example.uuid)
    judged(api, example)
    Validation.objects.update(created_at=timezone.now() - timedelta(minutes=11))
    error(api.delete(votes(example) + "mine/"), 409, "too_late")


def test_what_is_shown_and_asked_comes_after_the_vote(api, example):
    configure(example.round.task, "reveal: true", "reveal: false")
    answered(example)
    told = judged(api, example).json()
    assert told["revealed"]["author_said"] == "neutral"
    assert told["revealed"]["answers"][0]["output"] == {"label": "entailment"}
    mine = votes(example) + "mine/"
    assert list(error(api.patch(mine, {}), 422, "invalid")["fields"]) == ["reveal"]
    change = {"reveal": "change", "reveal_choice": "label:entailment", "reveal_comment": "I see."}
    assert api.patch(mine, change).json()["reveal_choice"] == "label:entailment"
    vote = Validation.objects.get()
    assert (vote.label, vote.reveal, vote.reveal_comment) == ("neutral", "change", "I see.")


def test_a_sensitive_task_begins_with_its_warning(api, alice, bob, hate):
    configure(hate.task, "programs: {judge: true}")
    write(hate, bob, text="They are here.", label="hate")
    url = "/api/v1/tasks/hate-speech/judging/next/"
    error(api.post(url), 409, "gate")
    GatePass.objects.create(annotator=get_annotator(alice), task=hate.task)
    item = handed(api, url)
    assert item["inputs"] == {"text": "They are here."}
    GatePass.objects.update(own_items=0, at=timezone.now())
    error(api.post(votes(Example.objects.get()), {"vote": "label:hate"}), 429, "break")


def test_who_may_judge(api_of, anybody, alice, example):
    assert anybody.post(NEXT).status_code == 401
    error(api_of(alice, "read", "own").post(NEXT), 403, "scope")
    example.round.task.is_visible = False
    example.round.task.save(update_fields=["is_visible"])
    client = api_of(alice)
    for response in (
        client.post(NEXT),
        client.post(votes(example), {"vote": "label:neutral"}),
        client.get(votes(example) + "mine/"),
    ):
        assert response.status_code == 404
    member = TaskMember.objects.create(task=example.round.task, user=alice, role="annotator")
    assert client.post(NEXT).status_code == 200
    member.role = "viewer"  # who reads the labels from now on
    member.save()
    error(client.post(NEXT), 403, "not_blind")
    error(client.post(votes(example), {"vote": "label:neutral"}), 403, "not_blind")
    assert not Validation.objects.exists()


def test_gold_cannot_be_told_and_pauses_for_a_refresher(api, alice, allowed, bob):
    """Answers to gold look like votes; after many wrong ones the missed items are read first."""
    me = get_annotator(alice)
    vote = judged(api, write(allowed, bob)).json()
    for gold in make_gold(allowed, bob, UserFactory(), count=8):
        item = gold.example
        JudgeLease.objects.create(
            example=item,
            validator=me,
            takes_place=False,
            is_gold=True,
            leased_at=timezone.now(),
            until=timezone.now() + timedelta(minutes=1),
        )
        told = api.post(votes(item), {"vote": "label:entailment"})
        assert told.status_code == 201
        assert set(told.json()) == set(vote)
    assert GoldAnswer.objects.filter(by_program=True).count() == 8
    refresher = "/api/v1/tasks/nli/judging/refresher/"
    assert refresher in error(api.post(NEXT), 409, "refresher")["message"]
    missed = api.get(refresher).json()
    assert len(missed) == 8
    assert (missed[0]["said"], missed[0]["right"]) == ("label:entailment", "label:neutral")
    assert api.post(refresher).status_code == 204
    assert api.get(refresher).json() == []
    assert api.post(NEXT).status_code == 204


def test_who_has_given_the_share_is_told(api, allowed, bob, monkeypatch):
    write(allowed, bob)
    monkeypatch.setattr("validation.judging.vote_caps.has_votes_left", lambda *args: False)
    error(api.post(NEXT), 429, "cap")
