"""Runs of adversaries are requested and worked on at the same time."""

import pytest

from annotation.models import Example
from core.errors import Invalid, Refused
from dynabench.adversaries.image_services import bring_image
from dynabench.adversaries.jobs import attack, check_transfer
from dynabench.adversaries.models import (
    Adversary,
    AdversaryImage,
    AdversaryRun,
    AdversaryTry,
    TransferAnswer,
    TransferCheck,
)
from dynabench.adversaries.program_services import (
    ProgramQuestion,
    ask_for_program,
    begin_program_run,
)
from dynabench.adversaries.services import start_run
from dynabench.adversaries.transfer_services import request_transfer_check
from tasks.models import TargetModel
from tests.support.adversaries import (
    SCRIPT,
    make_adversary,
    run_to_its_end,
    sentiment_round,
)
from tests.support.containers import SOURCE
from tests.support.races import races
from validation.consensus.consensus import Vote
from validation.decisions.services import override_consensus

pytestmark = pytest.mark.django_db(transaction=True)
REPEATS = races(20)


def test_of_many_requests_one_starts_a_run(at_once):
    """Lock: the adversary, in `create_run`; without it, some break on the constraint."""
    round, owner = sentiment_round()
    adversary = make_adversary(round, owner)

    def start(actor):
        try:
            return start_run(adversary=adversary, actor=actor).number
        except Refused as refusal:
            return refusal.code

    for number, _ in enumerate(REPEATS, 1):
        outcomes = at_once(start, [owner, None, owner, None])
        assert sorted(map(str, outcomes)) == [str(number), "running", "running", "running"]
        AdversaryRun.objects.update(state="cancelled")


def test_of_many_images_at_once_one_is_checked(at_once):
    """Lock: the adversary, in `bring_image`; without it, some break on the constraint."""
    round, owner = sentiment_round()
    adversary = make_adversary(round, owner, "container")

    def bring(source):
        try:
            return bring_image(adversary=adversary, actor=owner, source=source).number
        except Refused as refusal:
            return refusal.code

    for number, _ in enumerate(REPEATS, 1):
        outcomes = at_once(bring, [SOURCE] * 3)
        assert sorted(map(str, outcomes)) == [str(number), "checking", "checking"]
        AdversaryImage.objects.update(state="failed")


def test_of_many_adversaries_with_one_name_one_is_made(at_once):
    """Lock: the task, in `create_adversary`; without it, some break on the constraint."""
    round, owner = sentiment_round()

    def make(name):
        try:
            return make_adversary(round, owner, name=name).name
        except Invalid as refusal:
            return refusal.field

    for number in REPEATS:
        outcomes = at_once(make, [f"search {number}"] * 4)
        assert sorted(outcomes) == ["name", "name", "name", f"search {number}"]
    assert Adversary.objects.count() == len(REPEATS)


def test_workers_that_take_one_run_ask_nothing_twice(at_once):
    """No lock: the lease is claimed by one update, and calls are counted by another."""
    round, owner = sentiment_round()
    run = start_run(adversary=make_adversary(round, owner), actor=owner)
    at_once(attack, [run.pk] * 4)
    run.refresh_from_db()
    assert run.state == "done"
    assert run.calls == AdversaryTry.objects.count() + run.examples
    assert run.examples == Example.objects.count() == 1


def test_sixteen_searches_at_once_keep_their_caps(at_once):
    """Each in its own process or thread: no budget is exceeded by a single call."""
    round, owner = sentiment_round()
    runs = [
        start_run(adversary=make_adversary(round, owner, max_calls=7, max_examples=1), actor=owner)
        for _ in range(16)
    ]
    at_once(attack, [run.pk for run in runs])
    for run in runs:
        run.refresh_from_db()
        assert run.calls <= 7
        assert run.calls == run.logged_tries.count() + run.examples


def test_a_program_that_asks_many_things_at_once_is_answered_once(at_once):
    """No lock: one conditional update reserves the run for a question."""
    round, owner = sentiment_round()
    adversary = make_adversary(round, owner, "program", max_calls=3)
    run = begin_program_run(adversary=adversary, actor=owner)

    def ask(number):
        question = ProgramQuestion(f"We loved boat number {number}.", "positive")
        try:
            return ask_for_program(run=AdversaryRun.objects.get(), question=question).state
        except Refused as refusal:
            return refusal.code

    outcomes = at_once(ask, range(8))
    run.refresh_from_db()
    assert set(outcomes) <= {"answered", "asking", "over"}
    assert run.calls == outcomes.count("answered") == AdversaryTry.objects.count() <= 3
    assert run.asking_until is None


def test_workers_that_take_one_transfer_check_ask_nothing_twice(at_once):
    """No lock: the lease is claimed by one update, and each answer has one row."""
    round, owner = sentiment_round()
    sentences = "\n".join(f"positive | We loved the {word} boat." for word in ("blue", "red"))
    run_to_its_end(make_adversary(round, owner, sentences=sentences), owner)
    for example in Example.objects.all():
        choice = Vote(label="positive")
        override_consensus(example=example, owner=owner, choice=choice, reason="It is clear.")
    for name in ("first", "second"):
        TargetModel.objects.create(task=round.task, name=name, adapter="scripted", options=SCRIPT)

    def request(_number):
        try:
            return request_transfer_check(task=round.task, actor=owner).pk
        except Refused as refusal:
            return refusal.code

    outcomes = at_once(request, range(4))
    assert outcomes.count("running") == 3
    check = TransferCheck.objects.get()
    at_once(check_transfer, [check.pk] * 4)
    check.refresh_from_db()
    assert (check.state, check.calls) == ("done", 4)
    assert set(TransferAnswer.objects.values_list("state", flat=True)) == {"answered"}
    assert TransferAnswer.objects.count() == 4
