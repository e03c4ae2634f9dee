"""Each lock of the write stage, with the race that it prevents. Without the lock its test fails."""

import contextlib
import json
import uuid
from collections import Counter
from datetime import timedelta

import pytest

from annotation.attempts import conversation_services
from annotation.attempts.author_answer_services import answer_undecided
from annotation.attempts.conversation_services import say_turn
from annotation.attempts.services import (
    begin_attempt,
    finish_attempt,
    retract_example,
)
from annotation.context_picking.services import assign
from annotation.models import Assignment, Attempt, Example
from annotation.refusals import CapReached
from core.accounts.models import Annotator
from core.accounts.services import get_annotator
from core.errors import Refused
from tasks.models import Round, RoundTarget
from tasks.rounds.states import set_round_state
from tasks.targets.endpoints.base import Prediction
from tests.support.factories import (
    ContextFactory,
    RoundFactory,
    TaskFactory,
    UserFactory,
    scripted_target,
)
from tests.support.races import races
from tests.support.talks import CONFIG as TALKS

pytestmark = pytest.mark.django_db(transaction=True)
REPEATS = races(20)
PREDICTION = Prediction(
    output={"label": "entailment"}, prob=None, seconds=0.1, fingerprint={"digest": "d"}
)


@pytest.fixture
def round():
    made = RoundFactory(task=TaskFactory(code="nli"))
    ContextFactory.create_batch(20, round=made)
    return made


@pytest.fixture
def annotators():
    return Annotator.objects.bulk_create(
        Annotator(pseudonym=f"w-{number}") for number in range(16 * len(REPEATS))
    )


def attempt_of(annotator, round, text="A statement of mine."):
    assignment = assign(annotator=annotator, round=round)
    Assignment.objects.filter(pk=assignment.pk).update(goal="neutral")
    assignment.refresh_from_db()
    attempt, _ = begin_attempt(
        annotator=annotator,
        assignment=assignment,
        key=uuid.uuid4(),
        inputs={"hypothesis": text, "label": "neutral"},
    )
    return attempt


def test_contexts_and_goals_are_spread_evenly(round, annotators, at_once):
    """Lock: the round, in `assign`."""
    for repeat in REPEATS:
        group = annotators[16 * repeat : 16 * (repeat + 1)]
        at_once(lambda annotator: assign(annotator=annotator, round=round), group)
        uses = Counter(Assignment.objects.values_list("context", flat=True))
        counts = [uses.get(context.pk, 0) for context in round.contexts.all()]
        assert max(counts) - min(counts) <= 1
        goals = Counter(Assignment.objects.values_list("goal", flat=True)).values()
        assert max(goals) - min(goals) <= 1


def test_contexts_are_drawn_at_once_with_their_probabilities(round, annotators, at_once):
    """Lock: the round, in `assign`; a draw changes none that is made beside it."""
    round.task.config_text += "\ncontext_picking: information\n"
    round.task.save()
    group = annotators[:16]
    at_once(lambda annotator: assign(annotator=annotator, round=round), group * 2)
    drawn = Assignment.objects.filter(left_at=None)
    assert drawn.count() == len(group)
    assert set(drawn.values_list("context_choices", flat=True)) == {20}
    assert all(one.context_probability == pytest.approx(1 / 20) for one in drawn)
    goals = Counter(drawn.values_list("goal", flat=True)).values()
    assert max(goals) - min(goals) <= 1


def test_a_turn_that_is_sent_by_many_tabs_is_asked_once(at_once, annotators, monkeypatch):
    """Lock: the conversation, in `say`."""
    made = RoundFactory(task=TaskFactory(code="talks", config_text=json.dumps(TALKS)))
    ContextFactory(round=made, fields={"passage": "The mill closed."})
    asked = []
    monkeypatch.setattr(
        conversation_services, "_ask_target", lambda held, seconds: asked.append(held)
    )
    for repeat in REPEATS:
        assignment = assign(annotator=annotators[repeat], round=made)
        at_once(
            lambda at, mine=assignment: say_turn(assignment=mine, text="When?", turn_index=at),
            [0] * 8,
        )
        assert len(asked) == repeat + 1


def test_one_current_assignment_a_person(round, annotators, at_once):
    """Lock: the round, in `assign`; the unique constraint stands behind it."""
    for annotator in annotators[:20]:
        found = at_once(lambda _, a=annotator: assign(annotator=a, round=round).pk, range(8))
        assert len(set(found)) == 1


def test_a_double_submit_asks_once(round, annotators, at_once):
    """Lock: the annotator, in `begin_attempt`."""
    for annotator in annotators[:20]:
        assignment = assign(annotator=annotator, round=round)
        key = uuid.uuid4()

        def submit(_, annotator=annotator, assignment=assignment, key=key):
            return begin_attempt(
                annotator=annotator,
                assignment=assignment,
                key=key,
                inputs={"hypothesis": "Twice at once."},
            )[1]

        assert sorted(at_once(submit, range(8))) == [False] * 7 + [True]
    assert Attempt.objects.count() == 20


def test_the_cap_holds_for_many_tabs(round, annotators, at_once):
    """Lock: the annotator, in `begin_attempt`."""
    for annotator in annotators[:20]:
        assignment = assign(annotator=annotator, round=round)

        def submit(number, annotator=annotator, assignment=assignment):
            try:
                return begin_attempt(
                    annotator=annotator,
                    assignment=assignment,
                    key=uuid.uuid4(),
                    inputs={"hypothesis": f"Statement number {number}."},
                )[1]
            except CapReached:
                return False

        assert sum(at_once(submit, range(14))) == 10


def test_the_same_text_from_two_tabs_is_stored_once(round, annotators, at_once):
    """Constraint: example_one_text."""
    scripted_target(round, label="entailment")
    entries = list(RoundTarget.objects.select_related("target"))
    for annotator in annotators[:20]:
        attempts = [attempt_of(annotator, round) for _ in range(4)]

        def finish(attempt):
            return finish_attempt(attempt=attempt, targets=entries, predictions=[PREDICTION])

        stored = at_once(finish, attempts)
        assert sum(example is not None for example in stored) == 1
        assert Example.objects.filter(annotator=annotator).count() == 1
        states = Attempt.objects.filter(annotator=annotator).values_list("state", "failure")
        assert sorted(states) == [("done", ""), *[("failed", "duplicate")] * 3]


def test_an_attempt_is_finished_once(round, annotators, at_once):
    """Conditional update of the attempt, in `finish_attempt`."""
    scripted_target(round, label="entailment")
    entries = list(RoundTarget.objects.select_related("target"))
    for annotator in annotators[:20]:
        attempt = attempt_of(annotator, round)

        def finish(_, attempt=attempt):
            return finish_attempt(attempt=attempt, targets=entries, predictions=[PREDICTION])

        assert sum(example is not None for example in at_once(finish, range(6))) == 1
        attempt.refresh_from_db()
        assert attempt.state == "done"


def test_nothing_enters_a_closed_round(round, annotators, at_once, monkeypatch):
    """Lock: the round, in `finish_attempt` and in `set_round_state`. Nobody gets time to finish."""
    for reader in ("tasks.selectors", "annotation.answers_to_tasks"):
        monkeypatch.setattr(f"{reader}.WRITING_TIME", timedelta(0))
    scripted_target(round, label="entailment")
    entries = list(RoundTarget.objects.select_related("target"))
    for repeat in REPEATS:
        Round.objects.update(state="open")
        attempts = [attempt_of(a, round) for a in annotators[8 * repeat : 8 * (repeat + 1)]]
        counted = []

        def step(what, counted=counted):
            if what is None:
                set_round_state(round=round, state="closed", actor=None)
                counted.append(Example.objects.count())
            else:
                finish_attempt(attempt=what, targets=entries, predictions=[PREDICTION])

        at_once(step, [*attempts, None])
        assert Example.objects.count() == counted[0]
        left = Attempt.objects.filter(pk__in=[a.pk for a in attempts], state="failed")
        assert set(left.values_list("failure", flat=True)) <= {"closed"}


def test_the_author_answers_once(round, annotators, at_once):
    """Lock: the example, in `answer_undecided`."""
    for annotator in annotators[:20]:
        example = Example.objects.create(
            round=round,
            context=round.contexts.first(),
            annotator=annotator,
            inputs={},
            digest="0",
            outcome="undecided",
        )

        def answer(right, example=example):
            try:
                return answer_undecided(example=example, model_right=right).outcome
            except Refused:
                return None

        said = [a for a in at_once(answer, [True, False] * 4) if a]
        example.refresh_from_db()
        assert said == [example.outcome]


def test_a_vote_and_a_retraction_never_both_win(round, annotators, at_once, monkeypatch):
    """Lock: the example, in `retract_example`; voting takes the same lock."""
    from django.db import transaction

    from validation.models import Validation

    voters = annotators[20:]
    for number, annotator in enumerate(annotators[:20]):
        example = Example.objects.create(
            round=round,
            context=round.contexts.first(),
            annotator=annotator,
            inputs={},
            digest="0",
            outcome="fooled",
        )

        def vote(example=example, voter=voters[number]):
            with transaction.atomic():
                locked = Example.objects.select_for_update().get(pk=example.pk)
                if locked.retracted_at is None:
                    Validation.objects.create(example=locked, validator=voter, verdict="correct")

        def retract(example=example):
            with contextlib.suppress(Refused):
                retract_example(example=example)

        at_once(lambda step: step(), [vote, retract])
        example.refresh_from_db()
        assert (example.retracted_at is None) == example.validations.exists()


def test_one_annotator_a_user(at_once):
    """Constraint: one to one, in `get_annotator`."""
    for _ in range(5):
        user = UserFactory()
        Annotator.objects.filter(user=user).delete()
        fresh = [type(user).objects.get(pk=user.pk) for _ in range(8)]
        assert len({annotator.pk for annotator in at_once(get_annotator, fresh)}) == 1


def test_one_round_is_live(round, at_once):
    """Lock and constraint round_one_live, in `set_round_state`."""
    from django.db import IntegrityError

    from tasks.rounds.loop import RoundError

    Round.objects.update(state="closed")
    for repeat in range(10):
        made = [
            RoundFactory(task=round.task, number=10 * (repeat + 1) + n, state="draft")
            for n in range(4)
        ]
        for one in made:
            ContextFactory(round=one)

        def open_it(one):
            try:
                return set_round_state(round=one, state="open", actor=None)
            except (RoundError, IntegrityError):
                return None

        assert sum(opened is not None for opened in at_once(open_it, made)) == 1
        Round.objects.filter(state="open").update(state="closed")
