"""Each lock of judging, with the race that it prevents. Without the lock its test fails."""

# ruff: noqa: F811  (fixtures are named where they are used)

import contextlib
import random
from collections import Counter
from uuid import uuid4

import pytest
from django.db.models import F
from django.utils import timezone

from annotation.attempts.services import begin_attempt, finish_attempt, retract_example
from annotation.context_picking.services import assign, assign_sent_back
from annotation.models import Attempt, Example, ShownExample
from annotation.shown_services import note_shown_examples
from core.accounts.models import Annotator
from core.accounts.services import get_annotator
from core.errors import Refused
from tests.support.factories import UserFactory
from tests.support.policies import rederive
from tests.support.races import races
from tests.support.racing_votes import (
    LABELS,
    POLICIES,
    check_all,
    examples,
    round,  # noqa: F401
)
from validation.consensus.consensus import Vote
from validation.decisions.bulk_services import Action, ActionRequest, apply_action
from validation.decisions.services import (
    delete_votes,
    override_consensus,
    withdraw_override,
)
from validation.judging.services import cast_validation, lease_next, skip_example, undo_validation
from validation.models import (
    Consensus,
    JudgeLease,
    OwnerDecision,
    QueueItem,
    RoundPolicy,
    Validation,
)

pytestmark = pytest.mark.django_db(transaction=True)
REPEATS = races(20)


@pytest.fixture
def people():
    return Annotator.objects.bulk_create(Annotator(pseudonym=f"w-{number}") for number in range(24))


def forget():
    """An empty round for the next repetition."""
    for table in (Validation, RoundPolicy, Example):  # the others go with their example
        table.objects.all().delete()


def work(task, validator, seed, cast):
    """Judge until nothing is left; note what was stored."""
    choose = random.Random(seed)
    while lease := lease_next(validator=validator, task=task):
        vote = Vote(label=choose.choice((*LABELS, "neutral", "neutral")))
        with contextlib.suppress(Refused):
            cast_validation(validator=validator, example=lease.example, vote=vote)
            cast.append((lease.example_id, validator.pk, vote.label))


@pytest.mark.parametrize("repeat", REPEATS[::5])
def test_sixteen_validators_on_a_hundred_examples(round, people, at_once, repeat):
    """Locks: the item in `lease_next`, the example in `cast_validation`."""
    examples(round, people[16:], 100)
    cast: list[tuple[int, int, str]] = []
    at_once(lambda n: work(round.task, people[n], 100 * repeat + n, cast), range(16))
    for n in range(16):  # somebody may have gone when the last ones were in others' hands
        work(round.task, people[n], n, cast)
    stored = Validation.objects.values_list("example_id", "validator_id", "label")
    assert sorted(cast) == sorted(stored)
    assert len({vote[:2] for vote in cast}) == len(cast)
    assert not Validation.objects.filter(validator=F("example__annotator")).exists()
    assert not Consensus.objects.exclude(still_needed=0).exists()
    assert Consensus.objects.count() == 100
    assert max(Counter(vote[0] for vote in cast).values()) <= 5
    check_all()


def test_the_deciding_votes_come_at_once(round, people, at_once):
    """Lock: the example, in `cast_validation`; without it each vote sees too few."""
    for _ in REPEATS:
        (example,) = examples(round, people[16:], 1)
        for validator in people[:3]:
            assert lease_next(validator=validator, task=round.task)

        def vote(validator, example=example):
            cast_validation(validator=validator, example=example, vote=Vote(label="neutral"))

        at_once(vote, people[:3])
        row = Consensus.objects.get()
        assert (row.state, row.label, row.votes) == ("decided", "neutral", 3)
        assert row.is_verified
        check_all()
        forget()


def test_one_person_votes_once_from_many_tabs(round, people, at_once):
    """Lock: the example; the constraint validation_one_vote holds without it."""
    for _ in REPEATS:
        (example,) = examples(round, people[16:], 1)
        lease_next(validator=people[0], task=round.task)

        def vote(label, example=example):
            try:
                cast_validation(validator=people[0], example=example, vote=Vote(label=label))
            except Refused:
                return 0
            return 1

        assert sum(at_once(vote, LABELS)) == 1
        check_all()
        forget()


def test_leases_are_never_over_assigned(round, people, at_once):
    """Lock: the item of the queue, in `lease_next`: 16 people, 5 examples, 3 places each."""
    for _ in REPEATS:
        examples(round, people[16:], 5)
        leases = at_once(lambda n: lease_next(validator=people[n], task=round.task), range(16))
        held = Counter(lease.example_id for lease in leases if lease)
        assert sorted(held.values()) == [3, 3, 3, 3, 3]
        check_all()
        forget()


def test_one_person_in_many_tabs_takes_one_place(round, people, at_once):
    """Lock: the item of the queue; a place that is taken twice would never come back."""
    for _ in REPEATS:
        examples(round, people[16:], 1)
        at_once(lambda _: lease_next(validator=people[0], task=round.task), range(6))
        assert QueueItem.objects.get().free == 2
        check_all()
        forget()


def test_expired_places_come_back_once(round, people, at_once):
    """One update decides who gives a place back."""
    for _ in REPEATS:
        examples(round, people[16:], 2)
        for validator in people[:6]:
            lease_next(validator=validator, task=round.task)
        JudgeLease.objects.update(until=F("leased_at"))
        leases = at_once(lambda n: lease_next(validator=people[n], task=round.task), range(6, 16))
        assert sum(lease is not None for lease in leases) == 6
        check_all()
        forget()


def test_an_owner_decides_during_voting(round, people, at_once):
    """Lock: the example, in `override_consensus` and `withdraw_override`."""
    owner = UserFactory()
    for repeat in REPEATS:
        made = examples(round, people[16:], 10)
        cast: list[tuple[int, int, str]] = []

        def decide_and_withdraw(made=made):
            for number, example in enumerate(made):
                override_consensus(example=example, owner=owner, choice=Vote(label="entailment"))
                if number % 2:
                    withdraw_override(example=example, owner=owner)

        steps = [
            lambda n=n, repeat=repeat, cast=cast: work(round.task, people[n], repeat * 10 + n, cast)
            for n in range(6)
        ]
        at_once(lambda step: step(), [*steps, decide_and_withdraw])
        assert Validation.objects.count() == len(cast)
        assert Consensus.objects.filter(decided_by="owner", label="entailment").count() == 5
        check_all()
        forget()


def test_votes_are_taken_back_during_voting(round, people, at_once):
    """Lock: the example, in `delete_votes`."""
    strays = people[:3]
    for repeat in REPEATS:
        made = examples(round, people[16:], 10)
        cast: list[tuple[int, int, str]] = []

        def take_back(made=made):
            for example in [*made, *made]:
                delete_votes(example=example.pk, validators=[one.pk for one in strays])

        steps = [
            lambda n=n, repeat=repeat, cast=cast: work(round.task, people[n], repeat * 10 + n, cast)
            for n in range(6)
        ]
        at_once(lambda step: step(), [*steps, take_back])
        take_back()
        assert not Validation.objects.filter(validator__in=strays).exists()
        check_all()
        forget()


def test_many_are_decided_at_once_during_voting(round, people, at_once):
    """Lock: the examples, in `apply_action`, in the order of their ids: two wait, never block."""
    owner = UserFactory()
    for repeat in REPEATS:
        made = examples(round, people[16:], 10)
        cast: list[tuple[int, int, str]] = []

        def act(actions, made=made):
            ids = [example.pk for example in made]
            for action in actions:
                wanted_action = ActionRequest(Action(action), reason="?")
                apply_action(task=round.task, examples=ids, actor=owner, request=wanted_action)

        steps = [
            lambda n=n, repeat=repeat, cast=cast: work(round.task, people[n], repeat * 10 + n, cast)
            for n in range(5)
        ]
        deciding = [
            lambda: act(["accept", "undecide", "reject"]),
            lambda: act(["accept", "reject"]),
        ]
        at_once(lambda step: step(), [*steps, *deciding])
        assert Validation.objects.count() == len(cast)
        standing = OwnerDecision.objects.filter(withdrawn_at=None)
        assert Consensus.objects.filter(decided_by="owner").count() == standing.count() == 10
        check_all()
        OwnerDecision.objects.all().delete()
        forget()


def test_mending_and_a_change_of_mind_never_both_win(round, people, at_once):
    """Lock: the mended example, in `finish_attempt`; another text points at it meanwhile."""
    owner = UserFactory()
    author, stranger = (get_annotator(UserFactory()) for _ in range(2))
    for repeat in REPEATS:
        (example,) = examples(round, [author], 1)
        send_back = ActionRequest(Action.SEND_BACK, reason="?")
        apply_action(task=round.task, examples=[example.pk], actor=owner, request=send_back)
        assignment = assign_sent_back(annotator=author, example=example)
        inputs = {"hypothesis": f"Mended {repeat}", "label": "neutral"}
        attempt, _ = begin_attempt(
            annotator=author, assignment=assignment, key=uuid4(), inputs=inputs
        )
        other = Attempt.objects.create(  # holds the round while it points at the example
            annotator=stranger,
            assignment=assign(annotator=stranger, round=round),
            key=uuid4(),
            inputs=inputs,
            resembles=example,
            asked_at=timezone.now(),
        )

        def mend(attempt=attempt):
            finish_attempt(attempt=attempt, targets=[], predictions=[])

        def think_better(example=example):
            wanted_action = ActionRequest(Action.UNDECIDE)
            done = apply_action(
                task=round.task, examples=[example.pk], actor=owner, request=wanted_action
            )
            return bool(done.changed)

        def write_another(other=other):
            return finish_attempt(attempt=other, targets=[], predictions=[])

        steps = [write_another, mend, think_better]
        another, _, stands = at_once(lambda step: step(), steps)
        assert another is not None
        example.refresh_from_db()
        assert (example.retracted_at is None) == stands
        assert Example.objects.count() == 3
        Attempt.objects.all().delete()
        OwnerDecision.objects.all().delete()
        forget()


def test_a_vote_and_a_retraction_never_both_win(round, people, at_once):
    """Lock: the example, in `cast_validation` and `retract_example`."""
    for _ in REPEATS:
        (example,) = examples(round, people[16:], 1)
        lease_next(validator=people[0], task=round.task)

        def vote(example=example):
            with contextlib.suppress(Refused):
                cast_validation(validator=people[0], example=example, vote=Vote(label="neutral"))

        def retract(example=example):
            with contextlib.suppress(Refused):
                retract_example(example=example)

        at_once(lambda step: step(), [vote, retract])
        example.refresh_from_db()
        assert (example.retracted_at is None) == Validation.objects.exists()
        forget()


def test_what_is_shown_during_voting_is_leased_to_nobody_afterwards(round, people, at_once):
    """No lock: a vote is refused, or was cast before the person could read the answer."""
    for repeat in REPEATS:
        made = examples(round, people[16:], 12)
        cast: list[tuple[int, int, str]] = []

        def show(made=made):
            for example in made:
                note_shown_examples(annotator=people[0], examples=[example.pk], way="edit")

        def vote(n=0, repeat=repeat, cast=cast):
            work(round.task, people[n], repeat * 10 + n, cast)

        at_once(lambda step: step(), [show, show, vote, lambda: vote(1), lambda: vote(2)])
        assert lease_next(validator=people[0], task=round.task) is None
        assert ShownExample.objects.count() == 12
        work(round.task, people[1], repeat, cast)  # may have gone while the last was in other hands
        judged = set(
            Validation.objects.filter(validator=people[1]).values_list("example", flat=True)
        )
        decided = set(Consensus.objects.filter(still_needed=0).values_list("example", flat=True))
        assert judged | decided == {example.pk for example in made}
        check_all()
        forget()


def test_the_policy_changes_during_voting(round, people, at_once):
    """Lock: the examples, in `rederive`; the policy is read again under a vote's lock."""
    for repeat in REPEATS:
        examples(round, people[16:], 30)
        cast: list[tuple[int, int, str]] = []

        def change(repeat=repeat):
            for number in range(7):  # often enough that votes fall into the middle of a walk
                rederive(round=round, policy=POLICIES[(repeat + number) % 3])

        steps = [
            lambda n=n, repeat=repeat, cast=cast: work(round.task, people[n], repeat * 10 + n, cast)
            for n in range(6)
        ]
        at_once(lambda step: step(), [*steps, change])
        assert Validation.objects.count() == len(cast)
        check_all()
        forget()


def test_undo_and_skip_during_voting(round, people, at_once):
    """Lock: the example, in `undo_validation`; skipping moves its place by one update."""
    for repeat in REPEATS:
        examples(round, people[16:], 10)

        def hesitate(n, repeat=repeat):
            choose = random.Random(repeat * 100 + n)
            for _ in range(15):
                lease = lease_next(validator=people[n], task=round.task)
                if lease is None:
                    return
                with contextlib.suppress(Refused):
                    if choose.random() < 0.3:
                        skip_example(validator=people[n], example=lease.example)
                        continue
                    vote = cast_validation(
                        validator=people[n],
                        example=lease.example,
                        vote=Vote(label=choose.choice(LABELS)),
                    )
                    if choose.random() < 0.3:
                        undo_validation(validator=people[n], validation=vote)

        at_once(hesitate, range(6))
        check_all()
        forget()
