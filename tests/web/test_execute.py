"""One run from its claim to its end: what is stored, and what becomes of trouble."""

import gzip
import json
from datetime import timedelta

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import OperationalError
from django.utils import timezone

from core.errors import Refused
from evaluation import jobs
from evaluation.contract import Ending, Outcome, Runnable, Usage
from evaluation.isolation.queue import leases
from evaluation.isolation.sandbox import choose as runners
from evaluation.isolation.sandbox import containers, images
from evaluation.models import EvaluationRun, Score, Submission, TrainingRun
from evaluation.models.runs import REPEATABLE_OUTCOMES
from evaluation.runs.endpoints import CannotFetch
from evaluation.runs.execute import execute_run
from evaluation.runs.selectors import compute_cost_cents, filter_counting_runs
from evaluation.runs.services import claim_next_run, repeat_run
from tests.support.evaluations import (
    LABELS,
    ScriptedRunner,
    accepted_model,
    queued_run,
    run_with,
    set_version,
)
from tests.support.factories import TaskFactory, UserFactory

State = EvaluationRun.State


@pytest.fixture(autouse=True)
def _own_storage(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path


@pytest.fixture
def task(db):
    return TaskFactory(code="nli")


@pytest.fixture
def version(task):
    return set_version(task)


@pytest.fixture
def runner(monkeypatch):
    """What every run is run with; `runner.trouble` is raised instead, if it is set."""
    scripted = ScriptedRunner()
    scripted.trouble = None

    run_with(monkeypatch, scripted)
    return scripted


@pytest.fixture
def run(task, version):
    return queued_run(accepted_model(task), version)


def work(run):
    """Claim the run, carry it out, and look at what is stored."""
    assert claim_next_run() == run
    execute_run(EvaluationRun.objects.get(pk=run.pk))
    run.refresh_from_db()
    return run


def stored_predictions():
    return (
        default_storage.listdir("predictions")[1] if default_storage.exists("predictions") else []
    )


def test_scores_predictions_usage_and_outcome_are_stored(run, runner):
    work(run)
    assert (run.state, run.outcome, run.runner) == (State.DONE, Outcome.OK, "scripted")
    assert (run.progress, run.message, run.error) == (1.0, "", "")
    assert run.usage["examples_per_second"] == 3.0
    score = run.scores.get(metric="accuracy", slice="")
    assert score.value == pytest.approx(1 / 3)
    assert score.low < score.value < score.high
    assert (score.n, score.metric_version) == (6, 2)
    assert run.scores.get(metric="accuracy", slice="tag=odd").n == 3
    with run.predictions.open("rb") as file, gzip.open(file) as lines:
        assert [json.loads(line)["uid"] for line in lines] == [f"u{n}" for n in range(6)]


def test_a_model_that_fails_has_no_scores_and_says_why(run, runner):
    runner.ending = Ending(
        Outcome.OOM, Usage(1.0), "Too big.", "8 GiB", "more", "allocating …", ("Slow.",)
    )
    work(run)
    assert (run.state, run.outcome, run.error) == (State.FAILED, Outcome.OOM, "Too big.")
    assert (run.limit, run.measured, run.log) == ("8 GiB", "more", "allocating …")
    assert run.warnings == ["Slow."]
    assert not Score.objects.exists()
    assert stored_predictions() == []


def test_a_perturbed_run_is_compared_with_the_plain_one(task, version, runner):
    model = accepted_model(task)
    queued = [queued_run(model, version, suite) for suite in ("plain", "robustness")]
    runner.answer = lambda inputs: LABELS[int(inputs["premise"].split()[1]) % 3]  # never fooled
    for run in queued:
        work(run)
        runner.answer = lambda inputs: "neutral"
    before, after = (
        queued[1].scores.get(metric=f"accuracy_{when}", kind="") for when in ("before", "after")
    )
    assert (before.value, after.value) == (1, pytest.approx(1 / 3))
    assert queued[1].scores.exclude(kind="").exists()
    assert len(stored_predictions()) == 2


def test_without_a_plain_result_a_perturbed_run_says_what_to_do(task, version, runner):
    model = accepted_model(task)
    plain, perturbed = (queued_run(model, version, suite) for suite in ("plain", "fairness"))
    runner.ending = Ending(Outcome.TIMEOUT, Usage(1.0), "Too slow.")
    work(plain)
    work(perturbed)
    assert (perturbed.state, perturbed.outcome) == (State.FAILED, Outcome.TIMEOUT)
    assert perturbed.error
    assert not perturbed.may_repeat  # as the plain one, whose result stands
    with pytest.raises(Refused):
        repeat_run(run=perturbed, actor=None)


@pytest.mark.parametrize("outcome", REPEATABLE_OUTCOMES)
def test_a_perturbed_run_comes_back_with_its_plain_one(task, version, runner, outcome):
    model = accepted_model(task)
    plain = queued_run(model, version, state=State.FAILED, outcome=outcome)
    perturbed = work(queued_run(model, version, "fairness"))
    assert (perturbed.state, perturbed.outcome) == (State.FAILED, outcome)
    repeat_run(run=plain, actor=None)
    assert EvaluationRun.objects.filter(suite="fairness", number=2, state=State.QUEUED).exists()


def test_a_predictions_file_needs_no_runner(task, version):
    lines = [
        json.dumps({"id": f"u{n}", "output": {"label": LABELS[n % 3]}, "prob": None})
        for n in range(6)
    ]
    model = accepted_model(task, kind="predictions", evaluation_set=version)
    packed = gzip.compress("\n".join(lines).encode())
    model.file.save("predictions.jsonl.gz", ContentFile(packed), save=False)
    Submission.objects.filter(pk=model.pk).update(file=model.file.name)
    run = work(queued_run(model, version))
    assert (run.state, run.runner) == (State.DONE, "file")
    assert run.scores.get(metric="accuracy", slice="").value == 1


def test_without_an_engine_an_image_waits_and_is_told_why(run, runner, monkeypatch):
    monkeypatch.setattr("evaluation.isolation.sandbox.engine.find_engine", lambda: None)
    with pytest.raises(runners.NoEngine) as refused:
        runners.choose_runner(Runnable(image="sha256:1"), "key")
    assert runners.choose_runner(Runnable(), "key").name == "process"
    monkeypatch.setenv("SANDBOX_REQUIRED", "1")
    with pytest.raises(runners.NoEngine):
        runners.choose_runner(Runnable(), "key")
    runner.trouble = refused.value
    work(run)
    assert (run.state, run.attempts) == (State.QUEUED, 0)
    assert run.not_before > timezone.now()
    assert run.message == runners.NO_ENGINE_MESSAGE


def test_folders_run_in_a_process_where_their_image_was_not_built(monkeypatch):
    monkeypatch.setattr("evaluation.isolation.sandbox.engine.find_engine", lambda: "an engine")
    monkeypatch.setattr(images, "has_image", lambda name: False)
    monkeypatch.setattr(containers, "DockerRunner", lambda key, more: f"docker {key}")
    assert runners.choose_runner(Runnable(), "key").name == "process"
    monkeypatch.setenv("SANDBOX_REQUIRED", "1")
    with pytest.raises(runners.NoEngine):
        runners.choose_runner(Runnable(), "key")
    assert runners.choose_runner(Runnable(image="sha256:1"), "key") == "docker key"
    monkeypatch.setattr(images, "has_image", lambda name: True)
    assert runners.choose_runner(Runnable(), "key") == "docker key"


def test_an_engine_that_dies_does_not_count_against_the_run(run, runner, monkeypatch):
    monkeypatch.setattr("evaluation.isolation.sandbox.engine.find_engine", lambda: None)
    runner.name = "docker"
    runner.ending = Ending(Outcome.INFRASTRUCTURE, Usage(1.0), "The engine failed.")
    work(run)
    assert (run.state, run.attempts, run.message) == (State.QUEUED, 0, runners.NO_ENGINE_MESSAGE)


@pytest.mark.parametrize(
    "trouble",
    [CannotFetch("The files are gone."), ValueError("a secret"), None],
    ids=["fetching", "bug", "engine"],
)
def test_other_trouble_of_ours_is_tried_three_times(run, runner, trouble):
    runner.trouble = trouble
    if trouble is None:
        runner.ending = Ending(Outcome.INFRASTRUCTURE, Usage(1.0), "The container was ended.")
    for attempt in range(1, leases.MAX_ATTEMPTS + 1):
        work(run)
        if attempt < leases.MAX_ATTEMPTS:
            assert (run.state, run.attempts, bool(run.message)) == (State.QUEUED, attempt, True)
            assert run.not_before > timezone.now()
            EvaluationRun.objects.update(not_before=None)
    assert (run.state, run.outcome) == (State.FAILED, Outcome.INFRASTRUCTURE)
    assert run.error
    assert "secret" not in run.error


def test_a_run_ends_at_its_deadline(run, runner):
    claim_next_run()
    EvaluationRun.objects.update(deadline_at=timezone.now() - timedelta(seconds=1))
    execute_run(EvaluationRun.objects.get())
    run.refresh_from_db()
    assert (run.state, run.outcome) == (State.FAILED, Outcome.TIMEOUT)
    assert run.limit == "60 minutes"


def test_a_lost_lease_leaves_no_file(run, runner, monkeypatch):
    mine = claim_next_run()
    EvaluationRun.objects.update(lease_token="0" * 32)
    monkeypatch.setattr(
        leases.Heartbeat, "report_progress", lambda *_: None
    )  # so that the end finds out
    with pytest.raises(leases.LeaseLost):
        execute_run(mine)
    assert stored_predictions() == []
    assert not Score.objects.exists()


class Away:
    """A database that is away for the next `times` calls."""

    def __init__(self, call, times):
        self.call, self.times = call, times

    def __call__(self, *args, **kwargs):
        self.times -= 1
        if self.times >= 0:
            raise OperationalError("the database is away")
        return self.call(*args, **kwargs)


def test_a_run_outlives_a_database_that_comes_back(run, runner, monkeypatch):
    monkeypatch.setattr(leases, "BEAT_SECONDS", 0)
    monkeypatch.setattr(leases.connection, "close", lambda: None)
    monkeypatch.setattr(leases.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(leases, "write_heartbeat", Away(leases.write_heartbeat, 3))
    monkeypatch.setattr(leases, "finish_job", Away(leases.finish_job, 2))
    work(run)
    assert (run.state, run.attempts) == (State.DONE, 1)
    assert run.scores.filter(metric="accuracy", slice="").count() == 1
    assert stored_predictions() == [run.predictions.name.removeprefix("predictions/")]


def test_when_the_database_stays_away_the_run_is_given_up(run, runner, monkeypatch):
    mine = claim_next_run()
    mine.lease_until = timezone.now() - timedelta(seconds=1)
    monkeypatch.setattr(leases.connection, "close", lambda: None)
    monkeypatch.setattr(leases, "write_heartbeat", Away(leases.write_heartbeat, 99))
    monkeypatch.setattr(leases, "return_to_queue", Away(leases.return_to_queue, 99))
    with pytest.raises(OperationalError):
        execute_run(mine)
    run.refresh_from_db()
    assert run.state == State.RUNNING  # until the sweep finds its lease expired


def test_costs_are_estimated_where_a_price_is_set(settings):
    assert compute_cost_cents(3600) is None
    settings.EVALUATION_CPU_HOUR_CENTS = 4
    assert compute_cost_cents(1800) == 2
    assert compute_cost_cents(None) is None


def test_the_perturbed_runs_are_rung_for_when_the_plain_one_is_over(task, version, runner):
    from django_q.models import OrmQ

    model = accepted_model(task)
    plain, fairness = (queued_run(model, version, suite) for suite in ("plain", "fairness"))
    jobs.evaluate_next(plain.pk)
    assert OrmQ.objects.count() == 1
    jobs.evaluate_next(fairness.pk)
    jobs.evaluate_next(fairness.pk)  # once more than there are runs
    assert OrmQ.objects.count() == 1
    assert set(EvaluationRun.objects.values_list("state")) == {(State.DONE,)}
    assert filter_counting_runs(EvaluationRun.objects.all()).count() == 2


def test_a_check_that_waits_goes_before_runs(task, monkeypatch):
    alice, order = UserFactory(), []
    monkeypatch.setattr(jobs, "check_arrival", lambda one: order.append(one.name))
    monkeypatch.setattr(jobs, "execute_run", lambda run: order.append("a run"))
    queued_run(accepted_model(task, alice), set_version(task))
    for name in ("later", "first"):
        Submission.objects.create(task=task, owner=alice, name=name, kind="hub")
    hour = timedelta(hours=1)
    Submission.objects.filter(name="first").update(queued_at=timezone.now() - hour)
    Submission.objects.create(
        task=task, owner=alice, name="not yet", kind="hub", not_before=timezone.now() + hour
    )
    jobs.evaluate_next(None)
    assert order == ["first", "a run"]


def test_trainings_and_runs_take_turns(task, monkeypatch):
    order = []
    monkeypatch.setattr(
        jobs, "run_subprocess_job", lambda run, command: order.append(f"training {run.pk}")
    )
    monkeypatch.setattr(jobs, "execute_run", lambda run: order.append("a run"))
    version = set_version(task)
    for _ in range(2):
        queued_run(accepted_model(task), version)
    first, second = (TrainingRun.objects.create(task=task, options={}).pk for _ in range(2))
    for _ in range(3):
        jobs.evaluate_next(None)
    assert order == [f"training {first}", "a run", f"training {second}", "a run"]
