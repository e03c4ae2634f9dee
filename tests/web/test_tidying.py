"""Rows that are kept no longer go, a day after the other and some at a time."""

import uuid
from datetime import timedelta

import pytest
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.utils import timezone

from annotation.models import Assignment, Attempt, Suggestion
from core.accounts.models import LogEntry
from core.accounts.services import get_annotator, log
from core.errors import Refused, Unavailable
from core.jobs import periodic
from core.jobs.models import LastSuccess
from core.jobs.periodic import TIDY_WORK, tidy_daily
from dynabench.operations.soundness.doctor import count_connections_needed
from evaluation.isolation.uploads.chunked import begin_upload
from evaluation.models import Submission
from evaluation.runs.services import repeat_run, request_missing_runs
from tests.support.evaluations import accepted_model, queued_run, set_version
from tests.support.factories import ContextFactory, RoundFactory, TaskFactory, UserFactory
from tests.support.judging import write
from validation.models import JudgeLease

pytestmark = pytest.mark.django_db


def days_ago(days: float):
    return timezone.now() - timedelta(days=days)


def session(key: str, expires, user, made_at) -> None:
    Session.objects.create(session_key=key, session_data="", expire_date=expires)
    one = UserSession.objects.create(user=user, ip="10.0.0.1", session_key=key, user_agent="x")
    UserSession.objects.filter(pk=one.pk).update(created_at=made_at)


def test_sessions_that_ended_go_with_their_traces(alice):
    session("over", days_ago(1), alice, days_ago(15))
    session("lives", days_ago(-1), alice, days_ago(13))
    UserSession.objects.create(user=alice, ip="10.0.0.1", session_key="being-made", user_agent="x")
    tidy_daily()
    assert [one.session_key for one in Session.objects.all()] == ["lives"]
    assert {one.session_key for one in UserSession.objects.all()} == {"lives", "being-made"}


def test_old_actions_on_oneself_go(alice):
    for action in ("token.created", "submission.handed_in", "task.changed", "consensus.overridden"):
        LogEntry.objects.filter(pk=log(alice, action, "x").pk).update(created_at=days_ago(366))
    log(alice, "token.created", "of today")
    tidy_daily()
    left = LogEntry.objects.values_list("action", flat=True)
    assert sorted(left) == ["consensus.overridden", "task.changed", "token.created"]


def test_what_was_handed_out_and_not_used_goes_long_after_the_round():
    task = TaskFactory(code="nli")
    rounds = {
        days: RoundFactory(
            task=task, number=number, state="closed" if days else "open",
            closed_at=days_ago(days) if days else None,
        )
        for number, days in enumerate((89, 91, 0), start=1)
    }  # fmt: skip
    handed = {}
    for days, round in rounds.items():
        context = ContextFactory(round=round)
        for use in ("nothing", "attempt", "suggestion"):
            handed[days, use] = Assignment.objects.create(
                annotator=get_annotator(UserFactory()), round=round, context=context
            )
        Attempt.objects.create(
            annotator=handed[days, "attempt"].annotator, assignment=handed[days, "attempt"],
            key=uuid.uuid4(), inputs={}, state="failed", asked_at=days_ago(99),
        )  # fmt: skip
        Suggestion.objects.create(assignment=handed[days, "suggestion"], text="x")
    tidy_daily()
    gone = {key for key, one in handed.items() if not Assignment.objects.filter(pk=one.pk).exists()}
    assert gone == {(91, "nothing")}


def test_once_a_day_and_as_much_as_fits(monkeypatch):
    monkeypatch.setattr(periodic, "MAX_TIDIED_ROWS", 2)

    def over(count: int) -> None:
        for n in range(count):
            key = f"{Session.objects.count()}-{n}-{count}"
            Session.objects.create(session_key=key, session_data="", expire_date=days_ago(1))

    over(3)
    assert [tidy_daily() for _ in range(3)] == [2, 1, 0]
    over(1)
    assert tidy_daily() == 0
    LastSuccess.objects.filter(job=TIDY_WORK).update(succeeded_at=days_ago(1.01))
    assert tidy_daily() == 1
    assert LastSuccess.objects.filter(job=TIDY_WORK, succeeded_at__gt=days_ago(1)).exists()


def test_leases_of_judges_go_once_they_take_no_place(settings, nli):
    settings.KEEP_LEASES_DAYS = 10
    example = write(nli, UserFactory())
    for days, takes_place in ((11, False), (11, True), (9, False)):
        JudgeLease.objects.create(
            example=example, validator=get_annotator(UserFactory()), takes_place=takes_place,
            leased_at=days_ago(days), until=days_ago(days),
        )  # fmt: skip
    tidy_daily()
    left = JudgeLease.objects.order_by("until").values_list("takes_place", flat=True)
    assert list(left) == [True, False]


def test_files_of_models_go_long_after_their_last_use(
    settings, client, nli, django_capture_on_commit_callbacks
):
    version = set_version(nli.task)

    def stored(name, days, **fields):
        model = accepted_model(nli.task, name=name, is_published=True, **fields)
        model.file.save("model.tar", ContentFile(b"weights"), save=False)
        model.finished_at = days_ago(days)
        model.save()
        return model

    old, used, young = stored("old", 31), stored("used", 31), stored("young", 29)
    base = stored("base", 31, kind="llm")
    stored("adapter", 1, kind="llm", base=str(base.pk))
    queued_run(used, version)
    tidy_daily()
    assert not Submission.objects.exclude(emptied_at=None).exists()  # kept for ever by default
    settings.KEEP_MODELS_DAYS = 30
    LastSuccess.objects.filter(job=TIDY_WORK).delete()
    with django_capture_on_commit_callbacks(execute=True):
        tidy_daily()
    (emptied,) = Submission.objects.exclude(emptied_at=None)
    assert (emptied, emptied.file.name) == (old, "")
    assert not default_storage.exists(old.file.name)
    assert default_storage.exists(young.file.name)
    assert client.get(f"/m/{old.pk}/").context["submission"].emptied_at
    assert {run.submission for run in request_missing_runs()} >= {young, base}
    assert not old.runs.exists()
    with pytest.raises(Refused):
        repeat_run(
            run=queued_run(old, version, state="failed", outcome="infrastructure"), actor=None
        )


def test_an_upload_beyond_the_sites_budget_is_refused(settings, alice, nli):
    accepted_model(nli.task, size=90, file="x")
    settings.MODELS_BYTES = 100
    with pytest.raises(Unavailable) as refused:
        begin_upload(owner=alice, file_name="model.zip", size=11)
    assert refused.value.status == 507
    assert begin_upload(owner=alice, file_name="model.zip", size=10).size == 10


def test_the_connections_that_a_machine_may_hold():
    assert count_connections_needed(web=1, live_calls=8, queue=2) == 33
    assert count_connections_needed(web=4, live_calls=8, queue=2) == 108
