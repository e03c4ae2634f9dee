"""Gold items and near-duplicates when one person has several tabs."""

import time
import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from annotation.attempts.services import begin_attempt, finish_attempt
from annotation.models import Assignment, Example
from annotation.refusals import DuplicateExample
from tests.support.factories import ContextFactory, RoundFactory, TaskFactory, UserFactory
from validation.consensus.consensus import Vote
from validation.consensus.gold_check import Check
from validation.decisions.services import override_consensus
from validation.judging import gold, gold_pause
from validation.judging.services import (
    TooLate,
    cast_validation,
    lease_next,
    skip_example,
    undo_validation,
)
from validation.models import GoldAnswer, JudgeLease, QueueItem, Validation

pytestmark = pytest.mark.django_db(transaction=True)
TEXT = "The old shop by the river was open at ten on every day of the year."


@pytest.fixture
def round():
    round = RoundFactory(task=TaskFactory(code="nli"))
    ContextFactory.create_batch(6, round=round)
    return round


def written(round, number):
    return Example.objects.create(
        round=round,
        context=round.contexts.first(),
        annotator=UserFactory().annotator,
        inputs={"hypothesis": f"Statement {number}.", "label": "neutral"},
        digest=str(number),
        outcome="fooled",
    )


def test_gold_is_handed_out_once(round, at_once, monkeypatch):
    monkeypatch.setattr(gold, "GOLD_INTERVAL", 1)
    owner = UserFactory()
    for number in range(6):
        example = written(round, number)
        override_consensus(example=example, owner=owner, choice=Vote(label="neutral"))
        gold.mark_gold(example=example, owner=owner)
    plain = written(round, 9)
    for _ in range(5):
        validator = UserFactory().annotator
        skip_example(
            validator=validator, example=lease_next(validator=validator, task=round.task).example
        )
        leases = at_once(lambda _, v=validator: lease_next(validator=v, task=round.task), range(6))
        assert len({lease.pk for lease in leases}) == 1
        item = leases[0].example
        assert item != plain

        def answer(label, v=validator, item=item):
            try:
                return cast_validation(validator=v, example=item, vote=Vote(label=label))
            except TooLate:
                return None

        answers = at_once(answer, ["neutral", "entailment"] * 3)
        # Who says the same again is told what is stored; another answer comes too late.
        assert len({one.pk for one in answers if one is not None}) == 1
        assert GoldAnswer.objects.filter(validator=validator).count() == 1
    assert not Validation.objects.exists()
    assert JudgeLease.objects.filter(is_gold=True).count() == 5
    assert QueueItem.objects.get().free == QueueItem.objects.get().still_needed


def test_gold_is_not_mended_while_it_is_told(round, at_once, monkeypatch):
    """The answer that brings the refresher, and an undo that has just looked for one."""

    def slow(*args, look=gold_pause.is_answer_revealed):
        try:
            return look(*args)
        finally:
            time.sleep(0.3)

    monkeypatch.setattr(gold_pause, "is_answer_revealed", slow)
    validator, owner, now = UserFactory().annotator, UserFactory(), timezone.now()
    items = [written(round, number) for number in range(8)]
    for item in items:
        override_consensus(example=item, owner=owner, choice=Vote(label="neutral"))
        gold.mark_gold(example=item, owner=owner)
        times = {"leased_at": now, "until": now + timedelta(minutes=15)}
        lease = {"takes_place": False, "is_gold": True, **times}
        JudgeLease.objects.create(example=item, validator=validator, **lease)
    wrong = Vote(label="entailment")
    given = [cast_validation(validator=validator, example=item, vote=wrong) for item in items[:7]]

    def act(is_undo):
        if not is_undo:
            time.sleep(0.1)
            cast_validation(validator=validator, example=items[7], vote=wrong)
            return (
                gold_pause.assess_answers(gold_pause.list_gold_answers(validator, round.task))
                is Check.FAIL
            )
        try:
            return bool(undo_validation(validator=validator, validation=given[0]))
        except TooLate:
            return False

    was_undone, was_told = at_once(act, [True, False])
    assert was_undone != was_told


def test_two_near_duplicates_are_stored_once(round, at_once):
    contexts = list(round.contexts.all())
    for _ in range(10):
        author = UserFactory().annotator
        tabs = []
        for context in contexts[:4]:  # as when each tab took another passage
            Assignment.objects.filter(annotator=author).update(left_at="2026-01-01T00:00Z")
            tabs.append(Assignment.objects.create(annotator=author, round=round, context=context))
        for tab in tabs:
            tab.left_at = None

        def send(tab, author=author):
            text = f"{TEXT} {'!' * tab.pk}"
            try:
                attempt, _ = begin_attempt(
                    annotator=author, assignment=tab, key=uuid.uuid4(), inputs={"hypothesis": text}
                )
            except DuplicateExample:
                return None
            return finish_attempt(attempt=attempt, targets=[], predictions=[])

        stored = at_once(send, tabs)
        assert sum(example is not None for example in stored) == 1
