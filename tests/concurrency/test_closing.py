"""A round closes by itself, once, and takes after that only what people were writing."""

import contextlib
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connections, transaction
from django.db.models import F
from django.utils import timezone

from annotation.attempts.services import begin_attempt, finish_attempt
from annotation.context_picking.services import assign
from annotation.models import Assignment, Attempt, Example
from core.accounts.models import Annotator, LogEntry
from core.errors import Refused
from tasks.config_changes import StaleConfig, hash_text
from tasks.models import Round, Task
from tasks.rounds.loop import RoundError
from tasks.rounds.opening_services import request_round_state
from tasks.rounds.services import plan_round
from tasks.rounds.states import close_round_if_due, set_round_state
from tasks.services import save_config
from tests.support.factories import (
    ContextFactory,
    RoundFactory,
    TaskFactory,
    UserFactory,
    scripted_target,
)
from tests.support.races import races, wait_for
from validation.consensus.consensus import Vote
from validation.judging.services import cast_validation, lease_next
from validation.models import Consensus, RoundPolicy, Validation

pytestmark = pytest.mark.django_db(transaction=True)
REPEATS = races(20)
WRITERS = 16
BUDGET = 10


@pytest.fixture
def round():
    made = RoundFactory(task=TaskFactory(code="nli"))
    ContextFactory.create_batch(20, round=made)
    return made


@pytest.fixture
def annotators():
    return Annotator.objects.bulk_create(
        Annotator(pseudonym=f"w-{number}") for number in range(WRITERS)
    )


def reopened(round, **changes):
    """The round, open and empty, for the next repetition."""
    for table in (Validation, RoundPolicy, Consensus, Attempt, Example, Assignment, LogEntry):
        table.objects.all().delete()
    Round.objects.update(state="open", writing_until=None, closed_at=None, **changes)
    round.refresh_from_db()


def write(annotator, round, times):
    """Write so often on one's passage; returns how many were stored before and after the closing.

    Whether the round was closed is what the stored example's transaction knew: it stands in the
    assignment, which the one example after the closing ends.
    """
    stored = Counter()
    try:
        assignment = assign(annotator=annotator, round=round)
        for number in range(times):
            attempt, _ = begin_attempt(
                annotator=annotator,
                assignment=Assignment.objects.select_related("round__task").get(pk=assignment.pk),
                key=uuid.uuid4(),
                inputs={"hypothesis": f"Statement {number}.", "label": "neutral"},
            )
            if finish_attempt(attempt=attempt, targets=[], predictions=[]):
                left = Assignment.objects.get(pk=assignment.pk).left_at
                stored["after" if left else "before"] += 1
    except Refused:
        pass
    return stored


def test_a_budget_is_not_overrun(round, annotators, at_once):
    """Lock: the round, in `finish_attempt`. Each person at most finishes one more."""
    for _ in REPEATS:
        reopened(round, max_collected=BUDGET)
        stored = sum(at_once(lambda a: write(a, round, 3), annotators), Counter())
        entry = LogEntry.objects.get(action="round.closed")
        assert entry.data["reason"] == "collected"
        assert stored["before"] == BUDGET
        assert stored["after"] <= WRITERS
        assert entry.data["writing"] <= WRITERS  # who sends at the same instant was not yet
        assert Example.objects.count() == stored.total()
        assert not Attempt.objects.filter(state="asking").exists()


def test_a_budget_is_kept_where_nobody_else_was_writing(round, annotators, at_once):
    """Lock: the round, in `finish_attempt`: whoever comes too late finds it closed."""
    for _ in REPEATS:
        reopened(round, max_collected=BUDGET)
        attempts = []
        for annotator in annotators:
            assignment = assign(annotator=annotator, round=round)
            inputs = {"hypothesis": "A statement.", "label": "neutral"}
            attempts.append(
                begin_attempt(
                    annotator=annotator, assignment=assignment, key=uuid.uuid4(), inputs=inputs
                )[0]
            )
        long_ago = timezone.now() - timedelta(hours=1)
        Assignment.objects.update(assigned_at=long_ago)
        Attempt.objects.update(asked_at=F("asked_at") - timedelta(hours=1))
        for attempt in attempts:
            attempt.refresh_from_db()
            attempt.assignment.round.task = round.task

        at_once(lambda a: finish_attempt(attempt=a, targets=[], predictions=[]), attempts)
        assert Round.objects.get().writing_until is None
        assert Example.objects.count() == BUDGET
        failed = Attempt.objects.filter(state="failed", failure="closed")
        assert failed.count() == WRITERS - BUDGET
        assert LogEntry.objects.filter(action="round.closed").count() == 1


def test_many_requests_see_the_end_and_one_closes(round, at_once):
    """Lock: the round, in `set_round_state`."""
    for _ in REPEATS:
        reopened(round, ends_at=timezone.now())
        found = [Round.objects.get() for _ in range(8)]
        closed = at_once(lambda one: close_round_if_due(round=one).state, found)
        assert closed == ["closed"] * 8
        assert LogEntry.objects.filter(action="round.closed").count() == 1


def test_votes_that_fill_the_budget_close_the_round_once(round, annotators, at_once):
    """No lock of an example is held when a vote locks the round, so nobody waits for each other."""
    for _ in REPEATS:
        reopened(round, max_fooling=2, ends_at=None, max_collected=None)
        context = round.contexts.first()
        Example.objects.bulk_create(
            Example(
                round=round, context=context, annotator=annotators[number % 2], digest=str(number),
                inputs={"hypothesis": str(number), "label": "neutral"}, outcome="fooled",
            )
            for number in range(4)
        )  # fmt: skip

        def work(annotator):
            if annotator in annotators[:2]:
                return write(annotator, round, 1).total()
            for _ in range(4):
                if lease := lease_next(validator=annotator, task=round.task):
                    cast_validation(
                        validator=annotator, example=lease.example, vote=Vote(label="neutral")
                    )
            return 0

        written = sum(at_once(work, annotators[:8]))
        assert Round.objects.get().state == "closed"
        entry = LogEntry.objects.get(action="round.closed")
        assert entry.data["reason"] == "fooling"
        assert Consensus.objects.filter(is_validated_error=True).count() >= 2
        assert Example.objects.count() == 4 + written


def test_two_owners_plan_two_rounds(round, at_once):
    """Lock: the task, in `plan_round`."""
    owner = UserFactory()
    for _ in range(5):
        planned = at_once(
            lambda _: plan_round(task=round.task, actor=owner, fields={}).number, range(6)
        )
        assert len(set(planned)) == 6
    assert Round.objects.count() == 31


def test_of_two_editors_one_saves(round, at_once):
    """Lock: the task, in `save_config`; the others are told."""
    owner = UserFactory()
    for _ in REPEATS:
        text = Task.objects.get().config_text

        def save(number, text=text):
            changed = f"{text}\n# {number}\n"
            with contextlib.suppress(StaleConfig):
                save_config(task=round.task, text=changed, base=hash_text(text), actor=owner)
                return changed

        saved = [one for one in at_once(save, range(4)) if one]
        assert saved == [Task.objects.get().config_text]


def test_nothing_is_stored_after_the_release(round, annotators, at_once):
    """Lock: the round, in `finish_attempt` and `set_round_state`."""
    for _ in REPEATS:
        reopened(round, max_fooling=None)
        attempts = []
        for annotator in annotators[:8]:
            assignment = assign(annotator=annotator, round=round)
            inputs = {"hypothesis": "A statement.", "label": "neutral"}
            attempts.append(
                begin_attempt(
                    annotator=annotator, assignment=assignment, key=uuid.uuid4(), inputs=inputs
                )[0]
            )
        set_round_state(round=round, state="closed", actor=None)
        counted = []

        def step(attempt, counted=counted):
            if attempt is not None:
                return finish_attempt(attempt=attempt, targets=[], predictions=[])
            try:
                set_round_state(round=round, state="released", actor=None)
            except RoundError:  # too early; then the time is over
                Round.objects.update(writing_until=timezone.now())
                set_round_state(round=round, state="released", actor=None)
            counted.append(Example.objects.count())

        at_once(step, [*attempts, None])
        assert Example.objects.count() == counted[0]


def test_a_round_that_opens_meanwhile_waits_for_nothing(round):
    """Lock: the round, in `request_round_state`; without it an open round waits to be opened."""
    scripted_target(round, fail="busy")
    Round.objects.update(state="draft", opened_at=None)

    def ask():
        try:
            request_round_state(round=round, state="open", actor=None)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            Round.objects.update(state="open")
            asked = pool.submit(ask)
            wait_for(1)
        asked.result()
    assert Round.objects.get().opening_since is None
