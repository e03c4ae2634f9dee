"""Runs: asked for once each, taken in turn, ended without anybody's help."""

from datetime import timedelta

import pytest
from django.db.models import F
from django.utils import timezone
from django_q.models import OrmQ

from core.accounts.models import LogEntry
from core.errors import Refused
from evaluation import jobs
from evaluation.contract import Outcome
from evaluation.isolation.queue import leases
from evaluation.models import EvaluationRun, Submission
from evaluation.runs.selectors import filter_counting_runs
from evaluation.runs.services import (
    DEADLINE_GRACE,
    claim_next_run,
    ensure_target_submissions,
    estimate_wait_seconds,
    find_queue_positions,
    repeat_run,
    request_missing_runs,
    request_runs,
    wake_suite_runs,
)
from tasks.models import TargetModel
from tests.support.evaluations import accepted_model, queued_run, set_version
from tests.support.factories import RoundFactory, TaskFactory, scripted_target

State = EvaluationRun.State
SUITES = ["fairness", "plain", "robustness"]
HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def _own_storage(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path


@pytest.fixture
def task(db):
    return TaskFactory(code="nli")


@pytest.fixture
def version(task):
    return set_version(task)


def suites(found):
    return sorted((str(run.version.evaluation_set.name), run.suite) for run in found)


def predictions_for(task, version):
    """A model that is run on the set as it is and on nothing else."""
    return accepted_model(task, kind="predictions", evaluation_set=version)


def end(run, *, outcome=Outcome.OK, seconds=60):
    """What became of a claimed run."""
    leases.finish_job(run, outcome=outcome)
    EvaluationRun.objects.filter(pk=run.pk).update(
        started_at=F("finished_at") - timedelta(seconds=seconds)
    )


def test_a_model_is_run_on_the_newest_version_of_each_set_and_suite_once(task, version):
    newest = set_version(task, size=7)
    set_version(task, "other")
    model = accepted_model(task)
    made = request_runs(submission=model)
    assert suites(made) == [(name, suite) for name in ("dev", "other") for suite in SUITES]
    assert {run.version for run in made if run.version.evaluation_set.name == "dev"} == {newest}
    assert OrmQ.objects.count() == 6
    assert request_runs(submission=model) == []
    assert OrmQ.objects.count() == 6


def test_what_may_not_leave_is_sent_to_no_endpoint(task, version):
    open_set = set_version(task, "open", may_leave=True)
    remote = accepted_model(task, kind="endpoint", source="https://a.example")
    assert {run.version for run in request_runs(submission=remote)} == {open_set}


def test_predictions_answer_their_set_only_and_nothing_perturbed(task, version):
    open_set = set_version(task, "open", may_leave=True)
    file = accepted_model(task, kind="predictions", evaluation_set=open_set)
    assert suites(request_runs(submission=file)) == [("open", "plain")]


def test_a_new_version_queues_all_models_and_targets_and_marks_who_was_in_the_loop(task):
    round = RoundFactory(task=task, state="closed")
    inside = scripted_target(round, "inside")
    TargetModel.objects.create(task=task, name="outside", source="/models/outside")
    TargetModel.objects.create(task=task, name="nowhere")
    model = accepted_model(task)
    accepted_model(task, name="gone", withdrawn_at=timezone.now())
    Submission.objects.create(task=task, name="refused", kind="hub", state=State.FAILED)
    set_version(task, "round-1", round=round, may_leave=True)
    made = request_missing_runs()
    assert {run.submission.name for run in made} == {"inside", "outside", model.name}
    assert {run.submission.target for run in made if run.in_the_loop} == {inside}
    assert Submission.objects.get(target=inside).is_published
    assert request_missing_runs() == []


def test_targets_are_entered_once(task):
    scripted_target(RoundFactory(task=task))
    assert len(ensure_target_submissions(task)) == 1
    assert ensure_target_submissions(task) == []


def test_the_sweep_asks_for_what_is_missing(task, version):
    accepted_model(task)
    assert len(request_missing_runs()) == 3
    assert request_missing_runs() == []
    scripted_target(RoundFactory(task=task))
    set_version(task, "open", may_leave=True)
    assert (
        len(request_missing_runs()) == 6
    )  # both on the open set; the target may not see the other


def test_a_run_is_repeated_only_when_we_failed(task, version, alice):
    first = queued_run(accepted_model(task), version)
    with pytest.raises(Refused, match="is running"):
        repeat_run(run=first, actor=alice)
    leases.fail_job(claim_next_run(), "no disk", outcome=Outcome.INFRASTRUCTURE)
    second = repeat_run(run=first, actor=alice)
    assert (second.number, second.state, second.seed) == (2, State.QUEUED, first.seed)
    assert LogEntry.objects.get(action="run.again").actor == alice
    end(claim_next_run())
    assert list(filter_counting_runs(EvaluationRun.objects.all())) == [second]
    with pytest.raises(Refused, match="final"):
        repeat_run(run=first, actor=alice)


@pytest.mark.parametrize(
    "outcome", sorted({*Outcome} - {Outcome.INFRASTRUCTURE, Outcome.AWAY, Outcome.OVER_BUDGET})
)
def test_what_a_model_came_to_stands(task, version, outcome):
    run = queued_run(accepted_model(task), version, state=State.FAILED, outcome=outcome)
    with pytest.raises(Refused, match="final"):
        repeat_run(run=run, actor=None)


def test_the_first_success_counts(task, version):
    """Results from when a run could be repeated at will: no later one is luckier."""
    first = queued_run(accepted_model(task), version, state=State.DONE, outcome="ok")
    queued_run(first.submission, version, number=2, state=State.DONE, outcome="ok")
    assert list(filter_counting_runs(EvaluationRun.objects.all())) == [first]


def test_a_suite_that_is_added_later_is_run_for_all_models(task, version):
    text = task.config_text
    assert "deltas: [fairness, robustness]" in text
    less = text.replace("deltas: [fairness, robustness]", "deltas: [robustness]")
    task.config_text = less.replace("fairness: 1, ", "")
    task.save()
    model = accepted_model(task)
    assert {run.suite for run in request_missing_runs()} == {"plain", "robustness"}
    task.config_text = text
    task.save()
    (made,) = request_missing_runs()
    assert (made.submission, made.suite) == (model, "fairness")
    assert request_missing_runs() == []


def test_a_failed_plain_run_that_is_repeated_brings_its_perturbed_ones_back(task, version):
    model = accepted_model(task)
    plain, *perturbed = (
        queued_run(model, version, suite) for suite in ("plain", "fairness", "robustness")
    )
    leases.fail_job(claim_next_run(), "no disk", outcome=Outcome.INFRASTRUCTURE)
    leases.fail_job(claim_next_run(), "no plain run", outcome=Outcome.INFRASTRUCTURE)
    leases.cancel_job(EvaluationRun.objects.get(state=State.QUEUED), outcome=Outcome.CANCELLED)
    failed = next(r for r in perturbed if EvaluationRun.objects.get(pk=r.pk).outcome != "cancelled")
    again = repeat_run(run=plain, actor=None)
    (other,) = EvaluationRun.objects.filter(state=State.QUEUED).exclude(pk=again.pk)
    assert (other.suite, other.number, other.seed) == (failed.suite, 2, failed.seed)
    mine = claim_next_run()
    assert mine == again
    assert claim_next_run() is None
    end(mine)
    assert claim_next_run() == other


def test_a_withdrawn_model_is_not_run_again(task, version):
    run = queued_run(accepted_model(task), version)
    end(claim_next_run())
    Submission.objects.update(withdrawn_at=timezone.now())
    with pytest.raises(Refused, match="withdrawn"):
        repeat_run(run=run, actor=None)


@pytest.mark.parametrize("is_running", [False, True])
def test_a_run_is_cancelled_whether_it_waits_or_runs(task, version, alice, is_running):
    run = queued_run(accepted_model(task), version)
    mine = claim_next_run() if is_running else None
    assert leases.cancel_job(run, outcome=Outcome.CANCELLED)
    run.refresh_from_db()
    assert (run.state, run.outcome, run.is_over) == (State.CANCELLED, Outcome.CANCELLED, True)
    assert claim_next_run() is None
    if mine:
        with pytest.raises(leases.LeaseLost):
            leases.write_heartbeat(mine)
    assert not leases.cancel_job(run)


def test_what_is_put_back_waits_and_its_attempt_does_not_count(task, version):
    queued_run(predictions_for(task, version), version)
    mine = claim_next_run()
    leases.return_to_queue(mine, timezone.now() + timedelta(minutes=1), "It waits for an engine.")
    run = EvaluationRun.objects.get()
    assert (run.state, run.attempts, run.lease_token) == (State.QUEUED, 0, None)
    assert run.message == "It waits for an engine."
    assert claim_next_run() is None
    assert leases.claim_job(EvaluationRun, run.pk) is None
    assert jobs.sweep_all() == 0
    EvaluationRun.objects.update(not_before=timezone.now() - timedelta(seconds=1))
    assert jobs.sweep_all() == 1
    assert claim_next_run().message == ""
    leases.return_to_queue(claim_again(run), timezone.now(), "Once more.", is_counted=True)
    run.refresh_from_db()
    assert run.attempts == 1


def claim_again(run):
    """The claimed run as its worker has it."""
    return EvaluationRun.objects.get(pk=run.pk)


def test_a_perturbed_run_waits_for_the_plain_one_of_its_model_and_version(task, version):
    model = accepted_model(task)
    perturbed = queued_run(model, version, "robustness", priority=5)
    plain = queued_run(model, version)
    other = queued_run(model, set_version(task, "other"), "fairness")
    mine = claim_next_run()
    assert mine == plain
    assert claim_next_run() == other
    assert claim_next_run() is None
    end(mine)
    wake_suite_runs(mine)
    assert OrmQ.objects.count() == 1
    assert claim_next_run() == perturbed


def test_one_worker_takes_turns_between_people(task, version, alice, bob):
    """Though it never sees a run under way when it takes the next."""
    for number, owner in enumerate([alice] * 3 + [bob] * 2):
        queued_run(accepted_model(task, owner, f"m{number}"), version)
    taken = []
    while run := claim_next_run():
        taken.append(run.submission.owner)
        leases.finish_job(run, outcome=Outcome.OK)
    assert taken == [alice, bob, alice, bob, alice]


def test_many_workers_share_between_people_and_priority_goes_first(task, version, alice, bob):
    for number, owner in enumerate([alice] * 4 + [bob]):
        queued_run(accepted_model(task, owner, f"m{number}"), version, priority=number == 3)
    assert [claim_next_run().submission.name for _ in range(5)] == ["m3", "m4", "m0", "m1", "m2"]


def test_the_position_and_the_wait_are_told(task, version, alice, bob, django_assert_num_queries):
    owners = [alice] * 3 + [bob]
    waiting = [
        queued_run(accepted_model(task, owner, f"m{number}"), version)
        for number, owner in enumerate(owners)
    ]
    assert estimate_wait_seconds(1) is None
    end(claim_next_run(), seconds=60)
    with django_assert_num_queries(4):
        places = [find_queue_positions()[run.pk] for run in (waiting[1], waiting[3])]
    assert places == [2, 1]  # Alice was served; now it is Bob's turn
    with django_assert_num_queries(2):
        assert estimate_wait_seconds(2) == pytest.approx(120)
    assert waiting[0].pk not in find_queue_positions()
    assert estimate_wait_seconds(None) is None


def test_a_claimed_run_has_a_deadline_and_the_sweep_ends_it(task, version, settings):
    settings.EVALUATION_SECONDS = 600
    queued_run(predictions_for(task, version), version)
    mine = claim_next_run()
    assert mine.deadline_at > timezone.now() + timedelta(seconds=600)
    assert mine.host
    EvaluationRun.objects.update(deadline_at=timezone.now() - DEADLINE_GRACE / 2)
    jobs.sweep_all()
    assert EvaluationRun.objects.get().state == State.RUNNING
    EvaluationRun.objects.update(deadline_at=timezone.now() - DEADLINE_GRACE)
    jobs.sweep_all()
    run = EvaluationRun.objects.get()
    assert (run.state, run.outcome, run.limit) == (State.FAILED, Outcome.TIMEOUT, "10 minutes")
    assert run.error
    with pytest.raises(leases.LeaseLost):
        leases.write_heartbeat(mine)


def test_a_run_whose_workers_vanish_is_lost_and_is_the_platforms_fault(task, version):
    queued_run(predictions_for(task, version), version)
    for _ in range(leases.MAX_ATTEMPTS):
        claim_next_run()
        EvaluationRun.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
        jobs.sweep_all()
    run = EvaluationRun.objects.get()
    assert (run.state, run.outcome) == (State.LOST, Outcome.INFRASTRUCTURE)


def test_what_waits_for_another_or_for_its_time_is_not_stuck(task, version):
    model = accepted_model(task)
    plain, perturbed = (queued_run(model, version, suite) for suite in ("plain", "fairness"))
    EvaluationRun.objects.update(queued_at=timezone.now() - HOUR)
    (told,) = leases.find_stuck_jobs(HOUR / 2)
    assert str(plain) in told
    leases.return_to_queue(claim_next_run(), timezone.now(), "It waits for an engine.")
    assert leases.find_stuck_jobs(HOUR / 2) == []
    end(claim_next_run())
    assert str(perturbed) in leases.find_stuck_jobs(HOUR / 2)[0]


def test_submissions_are_watched_too(task):
    long_ago = timezone.now() - HOUR
    Submission.objects.create(task=task, name="mine", kind="hub", queued_at=long_ago)
    assert "submission mine" in leases.find_stuck_jobs(HOUR / 2)[0]
