"""Every kind of job has one lifecycle: what a failure makes of it, and how it is queued again."""

from datetime import timedelta

import pytest
from django.core.management import call_command
from django.utils import timezone
from django.utils.module_loading import import_string
from django_q.models import OrmQ

from core.errors import Unavailable
from dynabench.operations.demo.models import DemoRun
from evaluation.contract import AttemptFailed, ImpossibleJob, NotNow, Outcome, ServerAway
from evaluation.isolation.queue import leases
from evaluation.isolation.queue.leases import requeue_jobs
from evaluation.isolation.sandbox.choose import NoEngine
from evaluation.isolation.sandbox.images import RegistryAway
from evaluation.models import CustomMetric, LlmJudge, Paraphrasing, Submission, TrainingRun
from evaluation.models.jobs import UNFINISHED_STATES
from leaderboard.models import ArenaJudge
from serving.hub import HubUnavailableError
from tests.support.evaluations import accepted_model, queued_run, set_version
from tests.support.factories import TaskFactory
from tests.support.judged_answers import chat_target

MINUTE = timedelta(minutes=1)


@pytest.fixture
def works(settings, tmp_path):
    """A job of each kind, with the dotted name of what its work calls first."""
    settings.MEDIA_ROOT = tmp_path
    task = TaskFactory(code="nli")
    version, target = set_version(task), chat_target(task, "")
    asked = {"target": target, "asked_with": {}, "prompt": ""}
    judge = LlmJudge.objects.create(task=task, name="j", most_calls=1, **asked)
    pairs = ArenaJudge.objects.create(task=task, name="p", most_calls=2, **asked)
    words = Paraphrasing.objects.create(evaluation_set=version.evaluation_set, size=1, **asked)
    metric = CustomMetric.objects.create(task=task, name="m", number=1)
    subprocess = "evaluation.isolation.queue.subprocess_job._run_command"
    return [
        (judge, "evaluation.judges.llm_judges.services.open_cluster_transport"),
        (pairs, "leaderboard.arena.judges.services.open_cluster_transport"),
        (words, "evaluation.judges.paraphrases.writing_services.open_cluster_transport"),
        (metric, "evaluation.judges.custom_metrics.scoring_services.choose_trial_answers"),
        (TrainingRun.objects.create(task=task, options={}), subprocess),
        (DemoRun.objects.create(task=task), subprocess),
        (queued_run(accepted_model(task), version), "evaluation.runs.execute.evaluate_run"),
        (
            Submission.objects.create(task=task, kind="directory", name="d"),
            "evaluation.submissions.intake.open_scratch_folder",
        ),
    ]


ENDS = [
    (NotNow("Wait."), "queued", 0, MINUTE),
    (NotNow("Wait.", 600), "queued", 0, 10 * MINUTE),
    (NoEngine("Wait."), "queued", 0, MINUTE),
    (Unavailable("Wait."), "queued", 0, MINUTE),
    (ServerAway("Away."), "queued", 0, MINUTE),
    (RegistryAway("Away."), "queued", 0, MINUTE),
    (HubUnavailableError("Away."), "queued", 0, MINUTE),
    (AttemptFailed("Failed."), "queued", 1, MINUTE),
    (KeyError("a secret"), "queued", 1, MINUTE),
    (ImpossibleJob("Never."), "failed", 1, None),
]


def one_by_one(works):
    """Each job while no other one waits, because a worker that is woken does several kinds."""
    for job, _ in works:
        type(job).objects.update(state="cancelled")
    for job, place in works:
        type(job).objects.filter(pk=job.pk).update(state="queued")
        yield job, place
        type(job).objects.filter(pk=job.pk).update(state="cancelled", lease_token=None)


def worked(job, error, monkeypatch, place):
    def fail(*_, **__):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(place, fail)
        import_string(job.function)(job.pk)
    job.refresh_from_db()
    return job


@pytest.mark.django_db
def test_each_failure_makes_the_same_of_every_kind_of_job(works, monkeypatch):
    for job, place in one_by_one(works):
        rows = type(job).objects.filter(pk=job.pk)
        for error, state, attempts, delay in ENDS:
            rows.update(state="queued", attempts=0, not_before=None, away_since=None, error="")
            before = timezone.now()
            worked(job, error, monkeypatch, place)
            case = f"{type(job).__name__} after {error!r}"
            assert (job.state, job.attempts) == (state, attempts), case
            assert "secret" not in job.message + job.error, case
            assert job.error if state == "failed" else job.message, case
            if delay:
                assert before + delay <= job.not_before <= timezone.now() + delay, case


@pytest.mark.django_db
def test_what_fails_again_and_again_has_failed_in_the_end(works, monkeypatch):
    for job, place in one_by_one(works):
        rows = type(job).objects.filter(pk=job.pk)
        for attempt in range(1, leases.MAX_ATTEMPTS + 1):
            worked(job, KeyError(), monkeypatch, place)
            assert job.attempts == attempt
            rows.update(not_before=None)
        assert (job.state, bool(job.error)) == ("failed", True)
        assert getattr(job, "outcome", Outcome.INFRASTRUCTURE) == Outcome.INFRASTRUCTURE
        a_day_ago = timezone.now() - leases.MAX_AWAY_TIME
        rows.update(state="queued", attempts=0, away_since=a_day_ago)
        worked(job, ServerAway("Away."), monkeypatch, place)
        assert job.state == "failed"
        assert getattr(job, "outcome", Outcome.AWAY) == Outcome.AWAY


@pytest.mark.django_db
def test_only_what_is_over_is_queued_again_and_as_if_it_were_new(works):
    long_ago = timezone.now() - timedelta(days=3)
    for job, _ in one_by_one(works):
        kind = type(job)
        for state in kind.State.values:
            token = "0" * 32 if state == "running" else None
            past = {"queued_at": long_ago, "not_before": long_ago, "away_since": long_ago}
            spent = {"attempts": 3, "progress": 0.5, "message": "at work", "error": "It failed."}
            kind.objects.update(state=state, lease_token=token, **past, **spent)
            OrmQ.objects.all().delete()
            is_over = state not in UNFINISHED_STATES
            assert requeue_jobs(kind.objects.filter(pk=job.pk)) == is_over
            assert OrmQ.objects.count() == is_over
            job.refresh_from_db()
            if is_over:
                assert (job.state, job.attempts, job.progress) == ("queued", 0, 0.0)
                assert (job.message, job.error) == ("", "")
                assert (job.not_before, job.away_since) == (None, None)
                assert job.queued_at > long_ago
                call_command("check_queue")  # nobody has waited for it for three days
            else:
                assert (job.state, job.attempts) == (state, 3)
