"""Gold items: unseen among the others, no votes, and a refresher instead of a ban."""

# ruff: noqa: F811  (fixtures are named where they are used)

import re
from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from annotation.models import Example, GatePass
from core.accounts.models import LogEntry
from core.accounts.services import get_annotator
from core.errors import Refused
from tests.support.factories import UserFactory
from tests.support.gold_items import (
    REFRESHER,
    always,  # noqa: F401
    make_gold,
)
from tests.support.judging import URL, answered, judge, write
from tests.web.conftest import HTMX
from validation.consensus.consensus import Vote
from validation.consensus.gold_check import Check
from validation.decisions.consensus_rows import derive_consensus_of_all
from validation.decisions.services import override_consensus
from validation.judging import gold, gold_pause
from validation.models import (
    Consensus,
    Gold,
    GoldAnswer,
    JudgeLease,
    OwnerDecision,
    QueueItem,
    Skip,
    Validation,
)
from validation.statistics.people import list_validator_statistics


def shown(page):
    return Example.objects.get(uuid=re.search(r'name="example" value="([^"]+)"', page.text)[1])


def test_only_a_clear_decision_makes_gold(nli, bob, alice):
    example = write(nli, bob)
    with pytest.raises(Refused) as refused:
        gold.mark_gold(example=example, owner=alice)
    assert refused.value.code == "no_gold"
    override_consensus(example=example, owner=alice, choice=Vote(verdict="cannot_tell"))
    with pytest.raises(Refused) as refused:
        gold.mark_gold(example=example, owner=alice)
    assert refused.value.code == "no_gold"
    override_consensus(example=example, owner=alice, choice=Vote(label="neutral"))
    for _ in range(2):
        gold.mark_gold(example=example, owner=alice)
    assert Gold.objects.get().label == "neutral"
    assert LogEntry.objects.filter(action="gold.marked").count() == 1
    gold.unmark_gold(example=example, owner=alice)
    assert not Gold.objects.exists()
    with pytest.raises(Refused, match="gold item"):
        gold.unmark_gold(example=example, owner=alice)


def test_about_one_in_twelve_is_gold(bob):
    validator, other = get_annotator(bob), get_annotator(UserFactory())
    uuids = [uuid4() for _ in range(600)]
    turns = [gold.is_gold_turn(validator, uuid) for uuid in uuids]
    assert 25 <= sum(turns) <= 80
    assert turns != [gold.is_gold_turn(other, uuid) for uuid in uuids]


def test_gold_looks_like_the_rest(as_alice, nli, bob, alice, always):
    gold_item = make_gold(nli, UserFactory(), bob)[0].example
    plain = [write(nli, UserFactory(), number) for number in range(2)]
    for example in [gold_item, *plain]:
        example.inputs = {"hypothesis": "The same.", "label": "neutral"}
        example.context = nli.contexts.first()
        example.save()
    pages = {}
    for _ in range(3):
        page = as_alice.get(URL)
        example = shown(page)
        text = re.sub(r'value="\w{64}"', "", page.text.replace(str(example.uuid), ""))
        pages[example] = text
        as_alice.post("/t/nli/judge/skip/", {"example": example.uuid}, **HTMX)
    assert set(pages) == {gold_item, *plain}
    assert len(set(pages.values())) == 1
    assert Skip.objects.filter(example=gold_item).exists()
    assert 'id="nothing-to-judge"' in as_alice.get(URL).text  # what was skipped never comes back


def test_an_answer_to_gold_is_no_vote_but_counted(as_alice, alice, nli, bob, always):
    known = make_gold(nli, UserFactory(), bob)[0]
    for number in range(2):
        write(nli, UserFactory(), number)
    before = Consensus.objects.values().get()
    judge(as_alice, "label:entailment", **HTMX)
    page = judge(as_alice, "label:neutral", **HTMX)
    assert "Saved. 2 judged." in page.text
    assert "Saved. 3 judged." in judge(as_alice, "label:neutral").text  # without JavaScript too
    answer = GoldAnswer.objects.get()
    assert (answer.gold, answer.label, answer.is_correct) == (known, "neutral", True)
    assert answer.seconds >= 0
    assert Validation.objects.count() == 2
    assert Consensus.objects.filter(pk=known.pk).values().get() == before
    again = {"example": known.example.uuid, "answer": "label:entailment"}
    response = as_alice.post(URL, again, **HTMX)
    assert response.status_code == 409


def test_an_answer_to_gold_can_be_taken_back(as_alice, nli, bob, always):
    known = make_gold(nli, UserFactory(), bob)[0].example
    write(nli, UserFactory())
    judge(as_alice, "label:neutral", **HTMX)
    page = judge(as_alice, "label:entailment", **HTMX)
    undo = f"/judge/{known.uuid}/undo/"
    assert undo in page.text
    assert undo in as_alice.get(URL).text
    page = as_alice.post(undo, **HTMX)
    assert shown(page) == known
    assert not GoldAnswer.objects.exists()
    judge(as_alice, "label:neutral", **HTMX)
    assert GoldAnswer.objects.get().is_correct
    GoldAnswer.objects.update(created_at=timezone.now() - timedelta(minutes=11))
    assert as_alice.post(undo, **HTMX).status_code == 409


def test_gold_can_be_flagged_and_asks_what_follows(client, alice, hate, bob, always):
    GatePass.objects.create(annotator=get_annotator(alice), task=hate.task)
    client.force_login(alice)
    url = "/t/hate-speech/judge/"
    made = []
    for number in range(2):
        example = write(hate, UserFactory(), number, text=f"Words {number}.", label="hate")
        answered(example, "not-hate")
        made.append(example)
    override_consensus(example=made[0], owner=bob, choice=Vote(verdict="flagged"))
    gold.mark_gold(example=made[0], owner=bob)
    client.get(url)
    judge(client, "label:hate", url=url, **HTMX)
    flag = {"example": made[0].uuid, "flag_reason": "unclear"}
    client.post(url + "flag/", flag, **HTMX)
    answer = GoldAnswer.objects.get()
    assert answer.is_correct
    assert answer.flag_reason == "unclear"
    after = client.get(f"/judge/{made[0].uuid}/after/")
    assert after.status_code == 200


def test_the_author_of_gold_never_meets_it(as_alice, alice, nli, bob, always):
    make_gold(nli, alice, bob, count=3)
    for number in range(2):
        write(nli, UserFactory(), number)
    for _ in range(2):
        judge(as_alice, "label:neutral", **HTMX)
    assert 'id="nothing-to-judge"' in as_alice.get(URL).text
    assert not GoldAnswer.objects.exists()


def answer_gold(validator, items, label):
    """Answers as the page stores them, and the leases that end with them."""
    now = timezone.now()
    JudgeLease.objects.bulk_create(
        JudgeLease(
            example_id=item.pk,
            validator=validator,
            takes_place=False,
            is_gold=True,
            leased_at=now,
            until=now,
        )
        for item in items
    )
    GoldAnswer.objects.bulk_create(
        GoldAnswer(gold=item, validator=validator, label=label, is_correct=label == item.label)
        for item in items
    )


def test_who_misses_gold_reads_a_refresher(as_alice, alice, nli, bob, always):
    known = make_gold(nli, UserFactory(), bob, count=16)
    for number in range(6):
        write(nli, UserFactory(), number)
    me = get_annotator(alice)
    answer_gold(me, known[:7], "entailment")
    while GoldAnswer.objects.count() < 8:
        page = judge(as_alice, "label:entailment", **HTMX)
    assert 'id="refresher"' in page.text
    assert 'name="example"' not in page.text
    text = as_alice.get(URL).text
    said = nli.task.config.display("label", "entailment")
    assert text.count(f"<em>{said}</em>") == text.count('id="missed-') == 8
    found = list_validator_statistics([nli])[0]
    assert (found.gold.value, found.gold.n, found.gold_check) == (0, 8, Check.FAIL)
    page = as_alice.post(REFRESHER, follow=True)
    assert 'id="judge-title"' in page.text
    assert gold_pause.assess_answers(gold_pause.list_gold_answers(me, nli.task)) is Check.UNKNOWN
    answer_gold(me, Gold.objects.filter(answers=None)[:7], "neutral")
    while GoldAnswer.objects.count() < 16:
        page = judge(as_alice, "label:neutral", **HTMX)
    assert "Paused" not in page.text
    assert gold_pause.assess_answers(gold_pause.list_gold_answers(me, nli.task)) is Check.PASS
    assert list_validator_statistics([nli])[0].gold.n == 16


def test_a_refresher_is_only_for_those_who_need_it(as_alice, alice, nli, bob, always):
    make_gold(nli, UserFactory(), bob, count=2)
    for number in range(2):
        write(nli, UserFactory(), number)
    for _ in range(4):
        judge(as_alice, "label:neutral", **HTMX)
    as_alice.post(REFRESHER, **HTMX)
    assert GoldAnswer.objects.filter(counts=True).count() == 2


def test_unmarked_gold_goes_back_to_the_votes(as_alice, alice, nli, bob, always):
    known = make_gold(nli, UserFactory(), bob)[0].example
    write(nli, UserFactory())
    judge(as_alice, "label:neutral", **HTMX)
    shown_now = shown(as_alice.get(URL))
    assert shown_now == known
    gold.unmark_gold(example=known, owner=bob)
    response = as_alice.post(URL, {"example": known.uuid, "answer": "label:neutral"}, **HTMX)
    assert response.status_code == 403
    assert not GoldAnswer.objects.exists()
    assert not Validation.objects.filter(example=known).exists()


def test_gold_is_not_queued_when_its_decision_falls(nli, bob, alice):
    known = make_gold(nli, bob, alice)[0].example
    for _ in range(2):
        voter = get_annotator(UserFactory())
        Validation.objects.create(example=known, validator=voter, label="neutral")
    OwnerDecision.objects.update(withdrawn_at=timezone.now())
    known = Example.objects.select_related("round__task").get(pk=known.pk)
    derive_consensus_of_all([known])
    assert Consensus.objects.get().state == "undecided"
    assert not QueueItem.objects.exists()
    gold.unmark_gold(example=known, owner=alice)
    assert QueueItem.objects.get().example == known
    assert not JudgeLease.objects.exists()
