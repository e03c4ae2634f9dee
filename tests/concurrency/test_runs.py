"""Many workers, one queue: each run once, each person in turn, no zombie stores anything."""

import threading
from collections import Counter
from datetime import timedelta

import pytest
from django.utils import timezone

from core.errors import Refused
from evaluation import jobs
from evaluation.contract import Ending, EvaluationResult, Outcome, Usage
from evaluation.isolation.queue import leases
from evaluation.jobs import evaluate_next
from evaluation.models import EvaluationRun, Score, Team
from evaluation.runs import services as runs
from evaluation.runs.execute import execute_run, store_outcome
from evaluation.test_sets.shown_scores import describe_disclosure
from tests.support.evaluations import (
    ScriptedRunner,
    accepted_model,
    queued_run,
    run_with,
    set_version,
)
from tests.support.factories import TaskFactory, UserFactory

pytestmark = pytest.mark.django_db(transaction=True)
REPEATS = range(3)
State = EvaluationRun.State


@pytest.fixture
def task(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    return TaskFactory(code="nli")


def queue_runs(task, owners):
    """A run of a model of its own for each of the owners, in that order."""
    version = set_version(task)
    return [
        queued_run(accepted_model(task, owner, f"m{number}"), version)
        for number, owner in enumerate(owners)
    ]


@pytest.fixture
def runner(monkeypatch):
    """What every run is run with."""
    scripted = ScriptedRunner()
    run_with(monkeypatch, scripted)
    return scripted


@pytest.mark.parametrize("repeat", REPEATS)
def test_eight_workers_take_forty_runs_once_each(task, at_once, repeat):
    queued = queue_runs(task, [UserFactory() for _ in range(5)] * 8)

    def work(_):
        taken = []
        while run := runs.claim_next_run():
            taken.append(run.pk)
            leases.finish_job(run, outcome=Outcome.OK)
        return taken

    taken = [pk for worker in at_once(work, range(8)) for pk in worker]
    assert Counter(taken) == Counter(run.pk for run in queued)
    assert set(EvaluationRun.objects.values_list("state", "attempts")) == {(State.DONE, 1)}


@pytest.mark.parametrize("repeat", REPEATS)
def test_nobodys_many_runs_starve_another(task, at_once, repeat):
    """Eight workers come at once. Alice was first with 36 runs; Bob and Carol have two each."""
    alice, bob, carol = (UserFactory() for _ in range(3))
    queue_runs(task, [alice] * 36 + [bob, carol] * 2)
    first = at_once(lambda _: runs.claim_next_run(), range(8))
    owners = Counter(run.submission.owner for run in first)
    assert owners == {alice: 4, bob: 2, carol: 2}


def test_forty_runs_have_one_set_of_scores_each(task, at_once, runner):
    queued = queue_runs(task, [UserFactory() for _ in range(5)] * 8)
    at_once(lambda _: [evaluate_next(None) for _ in queued], range(8))
    assert set(EvaluationRun.objects.values_list("state", "outcome")) == {(State.DONE, "ok")}
    scores = Counter(Score.objects.filter(metric="accuracy", slice="").values_list("run"))
    assert scores == {(run.pk,): 1 for run in queued}
    assert len(runner.sent) == 40


@pytest.mark.parametrize("repeat", REPEATS)
def test_two_workers_of_one_run_store_one_set_of_scores(task, at_once, runner, repeat):
    """The first was taken for dead while it asked; both finish at the same instant."""
    queue_runs(task, [None])
    first = runs.claim_next_run()
    EvaluationRun.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    jobs.sweep_all()
    second = runs.claim_next_run()

    def finish(run):
        try:
            execute_run(run)
        except leases.LeaseLost:
            return None
        return run.lease_token

    assert at_once(finish, [first, second]) == [None, second.lease_token]
    run = EvaluationRun.objects.get(suite="plain")
    assert (run.state, run.outcome, run.attempts) == (State.DONE, Outcome.OK, 2)
    assert run.scores.filter(metric="accuracy", slice="").count() == 1


def test_a_zombie_that_comes_back_before_the_new_worker_ends_stores_nothing(task, runner):
    queue_runs(task, [None])
    zombie = runs.claim_next_run()
    EvaluationRun.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    jobs.sweep_all()
    for _ in range(2):  # while it is queued, and while another has it
        with pytest.raises(leases.LeaseLost):
            execute_run(zombie)
        assert not Score.objects.exists()
        another = runs.claim_next_run()
    assert another is None


@pytest.mark.parametrize("repeat", REPEATS)
def test_a_run_is_cancelled_while_its_model_answers(task, runner, monkeypatch, repeat):
    """And the model is ended by the error of its next heartbeat."""
    (run,) = queue_runs(task, [None])
    monkeypatch.setattr(leases, "BEAT_SECONDS", 0)
    asked, cancelled = threading.Event(), threading.Event()

    def answer(inputs):
        asked.set()
        assert cancelled.wait(60)
        return "neutral"

    runner.answer = answer
    lost = []

    def work():
        from django.db import connection

        try:
            execute_run(runs.claim_next_run())
        except leases.LeaseLost as error:
            lost.append(error)
        finally:
            connection.close()

    worker = threading.Thread(target=work)
    worker.start()
    assert asked.wait(60)
    assert leases.cancel_job(run, outcome=Outcome.CANCELLED)
    cancelled.set()
    worker.join()
    assert len(lost) == 1
    run.refresh_from_db()
    assert (run.state, run.outcome) == (State.CANCELLED, Outcome.CANCELLED)
    assert not Score.objects.exists()


def test_a_run_is_asked_for_once_by_eight_sweeps(task, at_once):
    set_version(task)
    accepted_model(task)
    made = at_once(lambda _: len(runs.request_missing_runs()), range(8))
    assert sum(made) == EvaluationRun.objects.count() == 3


def test_a_run_is_repeated_once_from_many_tabs(task, at_once):
    (run,) = queue_runs(task, [None])
    leases.fail_job(runs.claim_next_run(), "no disk", outcome=Outcome.INFRASTRUCTURE)

    def again(_):
        try:
            return runs.repeat_run(run=run, actor=None)
        except Refused as refused:
            return str(refused)

    made = at_once(again, range(8))
    assert sum(isinstance(one, EvaluationRun) for one in made) == 1
    assert EvaluationRun.objects.count() == 2


@pytest.mark.parametrize("by_team", [False, True])
def test_results_that_end_at_once_are_shown_as_often_as_the_bound_says(
    task, at_once, tmp_path, by_team
):
    """Locks: the model's owner; the team, whose members each have submitted one model."""
    version, mallory = set_version(task, "sealed", answers_public=False), UserFactory()
    most = describe_disclosure(version).max_results
    team = Team.objects.create(name="Lab") if by_team else None
    for number in range(most + 4):
        owner = UserFactory() if by_team else mallory
        queued_run(accepted_model(task, owner, name=f"m{number}", team=team), version)
    file = tmp_path / "answers"
    file.write_bytes(b"")
    found = EvaluationResult(Ending(Outcome.OK, Usage(1.0)), "docker", (), file)
    claimed = [runs.claim_next_run() for _ in range(most + 4)]
    at_once(lambda run: store_outcome(run, found), claimed)
    assert EvaluationRun.objects.filter(outcome=Outcome.OK).count() == most + 4
    assert EvaluationRun.objects.filter(is_shown=True).count() == most
