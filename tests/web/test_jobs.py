"""Jobs: claimed once, kept by a lease, put back when their worker died, lost in the end."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from io import StringIO
from unittest.mock import Mock

import pytest
import time_machine
from django.conf import settings
from django.core.management import CommandError, call_command, get_commands
from django.db import OperationalError, connection, connections, transaction
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone
from django.utils.module_loading import import_string
from django_q.models import OrmQ, Task
from django_q.signing import SignedPackage

from core.jobs import periodic, queue
from core.jobs.models import LastSuccess
from core.jobs.queue import enqueue
from core.periodic import DAILY, MINUTELY, PeriodicJob
from dynabench.operations.management.commands import qcluster
from dynabench.operations.soundness import outside
from dynabench.operations.soundness.health import Finding
from evaluation import jobs
from evaluation.isolation.queue import leases
from evaluation.isolation.queue.leases import LEASE_TIME, MAX_ATTEMPTS, LeaseLost
from evaluation.models import EvaluationRun, Submission, TrainingRun
from tests.support.factories import TaskFactory

State = TrainingRun.State


@pytest.fixture
def run(db):
    return TrainingRun.objects.create(task=TaskFactory(code="nli"), options={})


def expire(run):
    TrainingRun.objects.filter(pk=run.pk).update(lease_until=timezone.now() - timedelta(seconds=1))


def fetch_messages():
    """What a worker would be told now; it takes the messages."""
    rows = list(OrmQ.objects.all())
    OrmQ.objects.all().delete()
    return [
        (task["func"], *task["args"])
        for task in map(SignedPackage.loads, (r.payload for r in rows))
    ]


@pytest.mark.django_db(transaction=True)
def test_a_job_is_claimed_once_by_many_workers(run):
    barrier = threading.Barrier(8)

    def claim(_):
        barrier.wait()
        try:
            return leases.claim_job(TrainingRun, run.pk)
        finally:
            connections.close_all()

    for attempt in range(1, 6):
        with ThreadPoolExecutor(8) as pool:
            (won,) = [job for job in pool.map(claim, range(8)) if job]
        run.refresh_from_db()
        assert (run.state, run.attempts) == (State.RUNNING, attempt)
        assert run.lease_token == won.lease_token
        TrainingRun.objects.update(state=State.QUEUED)


def test_a_claimed_job_has_a_lease_and_a_clean_start(run):
    TrainingRun.objects.update(error="an old one", progress=0.7)
    mine = leases.claim_job(TrainingRun, run.pk)
    assert (mine.error, mine.progress) == ("", 0)
    assert timezone.now() < mine.lease_until <= timezone.now() + LEASE_TIME
    assert leases.claim_job(TrainingRun, run.pk) is None


def test_a_heartbeat_keeps_the_lease_and_tells(run):
    mine = leases.claim_job(TrainingRun, run.pk)
    expire(run)
    leases.write_heartbeat(mine, 0.5, "x" * 300)
    run.refresh_from_db()
    assert run.lease_until > timezone.now()
    assert (run.progress, run.message) == (0.5, "x" * 200)
    leases.write_heartbeat(mine)
    run.refresh_from_db()
    assert run.progress == 0.5


def test_the_end_is_stored_with_what_came_out(run):
    mine = leases.claim_job(TrainingRun, run.pk)
    leases.finish_job(mine, report={"after": 0.8})
    run.refresh_from_db()
    assert (run.state, run.progress, run.report) == (State.DONE, 1.0, {"after": 0.8})
    assert run.is_over
    assert run.finished_at


def test_a_failure_says_why(run):
    leases.fail_job(leases.claim_job(TrainingRun, run.pk), "There are no rows.")
    run.refresh_from_db()
    assert (run.state, run.error, run.is_over) == (State.FAILED, "There are no rows.", True)


def test_a_dead_worker_is_replaced_and_after_three_the_job_is_lost(run):
    for attempt in range(1, MAX_ATTEMPTS + 1):
        assert leases.claim_job(TrainingRun, run.pk).attempts == attempt
        assert jobs.sweep_all() == 0  # the lease holds
        expire(run)
        rung = jobs.sweep_all()
        run.refresh_from_db()
        if attempt < MAX_ATTEMPTS:
            assert (rung, run.state, run.lease_token) == (1, State.QUEUED, None)
            assert fetch_messages() == [("evaluation.jobs.run_training", run.pk)]
    assert (rung, run.state, run.is_over) == (0, State.LOST, True)
    assert "3 times" in run.error
    assert leases.claim_job(TrainingRun, run.pk) is None


def test_a_zombie_changes_nothing(run):
    zombie = leases.claim_job(TrainingRun, run.pk)
    expire(run)
    jobs.sweep_all()
    writes = (
        lambda: leases.write_heartbeat(zombie, 0.9),
        lambda: leases.finish_job(zombie, report={"by": "zombie"}),
        lambda: leases.fail_job(zombie, "by a zombie"),
    )
    for claim_anew in (False, True):
        another = leases.claim_job(TrainingRun, run.pk) if claim_anew else None
        for write in writes:
            with pytest.raises(LeaseLost):
                write()
        run.refresh_from_db()
        assert (run.report, run.error, run.progress) == ({}, "", 0)
    leases.finish_job(another, report={"by": "another"})


def test_a_sweep_rings_for_what_waits_but_messages_never_pile_up(run):
    assert jobs.sweep_all() == 1
    assert jobs.sweep_all() == 0
    assert fetch_messages() == [("evaluation.jobs.run_training", run.pk)]
    assert jobs.sweep_all() == 1


def test_a_message_is_undone_with_its_transaction(run):
    with transaction.atomic():
        enqueue("evaluation.jobs.run_training", run.pk)
        transaction.set_rollback(True)
    assert fetch_messages() == []


def test_every_kind_of_job_has_its_function():
    functions = {kind: kind.function for kind in leases.list_job_models()}
    assert {EvaluationRun, Submission} < functions.keys()
    assert len(set(functions.values())) == len(functions)
    assert all(map(callable, map(import_string, functions.values())))


@pytest.mark.django_db(transaction=True)
def test_a_message_is_taken_once_by_many_workers():
    for number in range(20):
        enqueue("tests.bells.ring", number)

    def take_all(_):
        taken = []
        try:
            while (message := queue.take_message()) is not None:
                taken.append(message)
            return taken
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        taken = [SignedPackage.loads(one) for some in pool.map(take_all, range(8)) for one in some]
    assert sorted(task["args"][0] for task in taken) == list(range(20))
    assert queue.is_queue_empty()
    assert not OrmQ.objects.exists()


def test_long_jobs_wait_until_no_other_message_does(db):
    names = ["evaluation.jobs.evaluate_next", "evaluation.jobs.build_dataset"]
    for number, name in enumerate([*names, *names]):
        enqueue(name, number)
    assert not queue.is_queue_empty()
    taken = [SignedPackage.loads(queue.take_message())["args"][0] for _ in range(4)]
    assert taken == [1, 3, 0, 2]
    assert queue.is_queue_empty()


def test_the_process_for_short_jobs_leaves_the_long_ones(db):
    enqueue("evaluation.jobs.evaluate_next", 0)
    enqueue("evaluation.jobs.build_dataset", 1)
    enqueue(settings.PRACTICE_JOB, 2)
    taken = SignedPackage.loads(queue.take_message(queue.SHORT_QUEUE))
    assert taken["args"] == (1,)
    assert queue.take_message(queue.SHORT_QUEUE) is None
    assert SignedPackage.loads(queue.take_message(queue.PRACTICE_QUEUE))["args"] == (2,)
    assert SignedPackage.loads(queue.take_message())["args"] == (0,)


def test_slices_and_other_long_jobs_take_turns(db, monkeypatch):
    """Else the slices of one run, or all evaluations, would wait for all of the others."""
    monkeypatch.setattr(queue, "_last_long_key", queue.LONG_QUEUE)
    for number in range(3):
        enqueue("evaluation.jobs.evaluate_next", number)
    for number in (3, 4):
        enqueue("dynabench.adversaries.jobs.attack", number)
    enqueue("evaluation.jobs.build_dataset", 5)
    taken = [SignedPackage.loads(queue.take_message())["args"][0] for _ in range(6)]
    assert taken == [5, 3, 0, 4, 1, 2]
    enqueue("dynabench.adversaries.jobs.attack", 6)
    assert queue.take_message(queue.SHORT_QUEUE) is None


def test_every_long_job_is_known():
    known_functions = {kind.function for kind in leases.list_job_models()}
    assert known_functions > settings.LONG_JOBS | settings.SLICED_JOBS


@pytest.mark.django_db(transaction=True)
def test_a_message_that_fails_is_kept_with_its_reason_and_harms_nobody():
    enqueue("no.such.function", 7)
    queue.run_message(queue.take_message())
    (task,) = Task.objects.all()
    assert (task.success, task.func, task.args) == (False, "no.such.function", (7,))
    assert "ModuleNotFoundError" in task.result


def test_a_message_of_another_key_is_thrown_away(db):
    enqueue("evaluation.jobs.sweep_all")
    queue.run_message(queue.take_message()[:-1] + "?")
    assert not Task.objects.exists()


@pytest.mark.django_db  # a connection may be open after other tests
def test_a_database_that_is_away_is_awaited(monkeypatch):
    waited = []
    monkeypatch.setattr(qcluster, "pause", waited.append)
    monkeypatch.setattr(qcluster, "connection", Mock())

    def away():
        raise OperationalError("connection refused")

    assert qcluster.run_patiently(away) is None
    assert len(waited) == 1


def test_workers_of_new_code_wait_for_its_tables(db, monkeypatch):
    monkeypatch.setattr(qcluster, "close_old_connections", lambda: None)
    assert qcluster.is_migrated()
    MigrationRecorder(connection).migration_qs.filter(app="upkeep").delete()
    assert not qcluster.is_migrated()


def test_what_is_due_is_done_once_in_its_time_and_a_failure_keeps_nothing_waiting(db, monkeypatch):
    done = []
    fails = Mock(side_effect=RuntimeError("no storage"), __name__="boards")
    works = {
        "boards": PeriodicJob(fails, MINUTELY, "boards", ""),
        "mails": PeriodicJob(lambda: done.append(1), MINUTELY, "mails", ""),
        "day": PeriodicJob(lambda: done.append("day"), DAILY, "day", ""),
    }
    monkeypatch.setattr(periodic, "SCHEDULED_JOBS", works)
    with time_machine.travel("2026-03-01T12:00Z", tick=False) as clock:
        with pytest.raises(CommandError, match="boards"):
            call_command("minutely")
        call_command("minutely")  # of another machine, at the same moment
        assert done == [1, "day"]
        clock.shift(60)
        assert periodic.run_due_jobs() == ["boards"]
        clock.shift(timedelta(days=1))
        periodic.run_due_jobs()
    assert done == [1, "day", 1, 1, "day"]


def test_parts_that_answer_are_noted_and_those_that_do_not_are_told(db, monkeypatch, caplog):
    found = [Finding("mail", "ok", ""), Finding("sign-in", "note", ""), Finding("log", "bad", "no")]
    with monkeypatch.context() as patch:
        patch.setattr(outside, "check_parts_in_use", lambda: iter(found))
        assert outside.ask_parts() == 1
    assert {*LastSuccess.objects.values_list("job", flat=True)} == {"mail", "sign-in"}
    assert [one.getMessage() for one in caplog.records] == ["log: no"]
    assert {one.what for one in outside.check_parts_in_use()} >= {
        "stored files",
        "mail",
        "erasure log",
    }


def test_a_database_that_is_away_is_no_failure_of_the_work(db, monkeypatch):
    away = Mock(side_effect=OperationalError, __name__="renew_boards")
    works = {"renew_boards": PeriodicJob(away, MINUTELY, "boards", "")}
    monkeypatch.setattr(periodic, "SCHEDULED_JOBS", works)
    with pytest.raises(OperationalError):
        periodic.run_due_jobs()


def test_the_command_of_the_library_is_ours():
    assert get_commands()["qcluster"] == "dynabench.operations"


def test_sweep_jobs_says_what_it_did(run):
    out = StringIO()
    call_command("sweep_jobs", stdout=out)
    assert out.getvalue() == "1 messages sent.\n"


def test_check_queue_tells_what_is_stuck(run):
    call_command("check_queue", stdout=StringIO())
    long_ago = timezone.now() - timedelta(minutes=6)
    TrainingRun.objects.update(queued_at=long_ago)
    with pytest.raises(CommandError, match="waits since"):
        call_command("check_queue")
    call_command("check_queue", minutes=10, stdout=StringIO())
    other = TrainingRun.objects.create(task=run.task, options={})
    leases.claim_job(TrainingRun, other.pk)
    call_command("check_queue", stdout=StringIO())  # it waits for the other
    TrainingRun.objects.filter(pk=other.pk).update(lease_until=long_ago)
    with pytest.raises(CommandError, match="nobody sweeps"):
        call_command("check_queue")


def test_a_job_that_was_put_back_is_not_called_stuck(run):
    TrainingRun.objects.update(queued_at=timezone.now() - timedelta(hours=1))
    leases.claim_job(TrainingRun, run.pk)
    expire(run)
    jobs.sweep_all()
    call_command("check_queue", stdout=StringIO())
