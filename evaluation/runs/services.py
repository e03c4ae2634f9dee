"""Request evaluation runs, let workers take them in a fair order, and repeat them."""

import socket
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import product
from statistics import fmean
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from core.accounts.models import User
from core.accounts.services import log
from core.errors import Refused
from core.jobs.queue import enqueue
from evaluation.contract import Outcome
from evaluation.isolation.queue import leases
from evaluation.kinds import KINDS, TARGET_KIND
from evaluation.models import EvaluationRun, EvaluationSetVersion, Submission
from evaluation.models.runs import REPEATABLE_OUTCOMES
from evaluation.runs.selectors import find_accepted_models, is_remote
from evaluation.test_sets.selectors import select_newest_versions
from tasks.models import RoundTarget, Task

State, Suite = EvaluationRun.State, EvaluationRun.Suite
# In addition to the model's time: writing inputs, starting, scoring a million answers.
RUN_OVERHEAD = timedelta(minutes=30)
DEADLINE_GRACE = timedelta(minutes=2)  # after this time past its deadline, the sweep ends a run
SHARE_PERIOD = timedelta(days=1)  # an owner whose last run was earlier counts as never served
WAIT_SAMPLE_RUNS = 20  # the number of runs that predict the time of the next one
LONG_AGO = datetime.min.replace(tzinfo=UTC)


def choose_suites(submission: Submission, version: EvaluationSetVersion) -> tuple[str, ...]:
    """Return the suites to run for a model on a version of a set; none if it must not be run."""
    kind = KINDS[submission.kind]
    if kind.is_file_of_answers:  # a file contains answers only for its own version
        if submission.evaluation_set_id != version.pk:
            return ()
        return (Suite.PLAIN,)
    if is_remote(submission) and not version.evaluation_set.may_leave:
        return ()
    # Its owner asked for short evaluations until they choose otherwise (`evaluate_in_full`).
    if kind.costs_per_call and submission.chat.get("short_only"):
        return ()
    # There are several times as many perturbed examples, and the owner pays for each call.
    if kind.has_prompt and not submission.chat.get("perturbed"):
        return (Suite.PLAIN,)
    return (Suite.PLAIN, *submission.task.config.metrics.deltas)


def request_runs(*, submission: Submission, actor: User | None = None) -> list[EvaluationRun]:
    """Request runs of a model on the newest version of each set of its task. Takes no lock.

    Returns the new runs; `run_once` prevents duplicates.
    """
    return _store_missing_runs([submission], select_newest_versions(submission.task), actor)


def request_missing_runs() -> list[EvaluationRun]:
    """Request and return the missing runs: of new set versions, new targets and new suites.

    Suites are those in the task's configuration. Called by the sweep. Takes no lock.
    """
    new_runs: list[EvaluationRun] = []
    for task in Task.objects.filter(evaluation_sets__versions__isnull=False).distinct():
        ensure_target_submissions(task)
        suites = (Suite.PLAIN, *task.config.metrics.deltas)
        for version in select_newest_versions(task):
            # One query finds the models that lack a run, so that a sweep without work is fast.
            complete_models = version.runs.filter(suite__in=suites).values("submission")
            complete_models = complete_models.annotate(n=Count("suite", distinct=True)).filter(
                n=len(suites)
            )
            incomplete_models = find_accepted_models(task).exclude(
                pk__in=complete_models.values("submission")
            )
            incomplete_models = incomplete_models.filter(
                emptied_at=None
            )  # without files, no new run can start
            new_runs += _store_missing_runs(incomplete_models, [version], None)
    return new_runs


@transaction.atomic
def _store_missing_runs(
    submissions: Iterable[Submission],
    versions: Iterable[EvaluationSetVersion],
    actor: User | None,
) -> list[EvaluationRun]:
    """Store the runs that are missing and wake a worker for each; return the new ones."""
    submissions, versions = list(submissions), list(versions)
    round_by_version = {
        version.pk: version.evaluation_set.round_id or version.evaluation_set.held_of_id
        for version in versions
    }
    loop_pairs = set(
        RoundTarget.objects.filter(round__in=round_by_version.values()).values_list(
            "target_id", "round_id"
        )
    )
    existing_runs = EvaluationRun.objects.filter(submission__in=submissions, version__in=versions)
    existing_keys = set(existing_runs.values_list("submission", "version", "suite"))
    missing_runs = []
    for version, submission in product(versions, submissions):
        is_in_the_loop = (submission.target_id, round_by_version[version.pk]) in loop_pairs
        for suite in choose_suites(submission, version):
            if (submission.pk, version.pk, suite) in existing_keys:
                continue
            run = EvaluationRun(
                submission=submission,
                version=version,
                suite=suite,
                requested_by=actor,
                in_the_loop=is_in_the_loop,
            )
            missing_runs.append(run)
    # Another sweep may request the same now: `run_once` drops the second, and only the
    # runs that were really created here are read back and queued.
    EvaluationRun.objects.bulk_create(missing_runs, ignore_conflicts=True)
    new_runs = list(EvaluationRun.objects.filter(pk__in=[run.pk for run in missing_runs]))
    for run in new_runs:
        enqueue(run.function, run.pk)
    return new_runs


@transaction.atomic
def ensure_target_submissions(task: Task) -> list[Submission]:
    """Create a submission for each target of a task that has files or an address; return new ones.

    Takes no lock: a target has at most one submission.
    """
    targets = task.targets.exclude(source="", url="").filter(submission=None)
    return Submission.objects.bulk_create(
        [
            Submission(
                task=task,
                kind=TARGET_KIND,
                name=target.name,
                target=target,
                source=target.source or target.url,
                revision=target.revision,
                state=Submission.State.DONE,
                is_published=True,
                finished_at=timezone.now(),
            )
            for target in targets
        ],
        # Another process may have created the target's submission since the query.
        ignore_conflicts=True,
    )


@transaction.atomic
def repeat_run(*, run: EvaluationRun, actor: User | None) -> EvaluationRun:
    """Repeat an evaluation that failed for a reason other than the model; return the new run.

    A run that a cap on the cost ended measured nothing, so it may be repeated with a higher cap.
    Every other outcome is final: retries would reward luck, and changed answers would leak the
    labels. Repeating a plain run also repeats the perturbed runs that ended because it failed.
    Takes no lock: `run_once` prevents duplicates. Raises Refused.
    """
    last_run = _find_last_runs(run).select_related("submission").get(suite=run.suite)
    if not last_run.is_over:
        raise Refused(_("This evaluation is running. Wait until it finishes, or cancel it."))
    if last_run.submission.withdrawn_at:
        raise Refused(_("This model has been withdrawn."))
    if last_run.submission.emptied_at:
        raise Refused(_("The model's files have been deleted. Submit the model again."))
    if not last_run.may_repeat:
        raise Refused(
            _(
                "This result is final. You can only repeat evaluations that failed on our side, on "
                "another server, or for lack of budget."
            )
        )
    next_run = _make_next_run(last_run, actor)
    try:
        with transaction.atomic():  # a nested one, so that the outer one survives the error
            next_run.save(force_insert=True)
    except IntegrityError:
        raise Refused(_("Someone else has just requested this evaluation.")) from None
    log(actor, "run.again", next_run)
    enqueue(next_run.function, next_run.pk)
    if last_run.suite == Suite.PLAIN:
        repeatable_runs = _find_last_runs(last_run).filter(outcome__in=REPEATABLE_OUTCOMES)
        next_runs = [
            _make_next_run(other_run, actor)
            for other_run in repeatable_runs.exclude(suite=Suite.PLAIN)
        ]
        # The end of the plain run wakes their workers.
        EvaluationRun.objects.bulk_create(next_runs, ignore_conflicts=True)
    return next_run


def _make_next_run(run: EvaluationRun, actor: User | None) -> EvaluationRun:
    """Build the next run of the same evaluation, without storing it."""
    return EvaluationRun(
        submission=run.submission,
        version=run.version,
        suite=run.suite,
        number=run.number + 1,
        seed=run.seed,
        in_the_loop=run.in_the_loop,
        requested_by=actor,
    )


def _find_last_runs(run: EvaluationRun) -> QuerySet[EvaluationRun]:
    """Return the latest run of each suite of the same model on the same set version."""
    same_runs = EvaluationRun.objects.filter(submission=run.submission_id, version=run.version_id)
    later_runs = same_runs.filter(suite=OuterRef("suite"), number__gt=OuterRef("number"))
    return same_runs.filter(~Exists(later_runs))


# Chooses the next run so that an owner's many runs do not delay others' runs.


@dataclass(frozen=True)
class WaitingRun:
    """A waiting run. owner_id: the id of its owner; None for the platform itself."""

    pk: Any
    owner_id: int | None
    priority: int  # higher first
    queued_at: datetime


@dataclass(frozen=True)
class OwnerShare:
    """An owner's current share: the number of their active runs, and when the last one started."""

    running_count: int = 0
    last_started_at: datetime = LONG_AGO


def order_by_turn(
    waiting_runs: Iterable[WaitingRun], owner_shares: Mapping[int | None, OwnerShare]
) -> list[WaitingRun]:
    """Sort waiting runs into the order in which free workers take them.

    Sorts by priority, then by owner, then by the age of the run. Owners with the fewest active runs
    come first, and among equals those whose last run started earliest.
    """
    keyed_runs: list[tuple[tuple[int, int, datetime, datetime], WaitingRun]] = []
    ahead_counts: Counter[int | None] = Counter()
    for run in sorted(waiting_runs, key=lambda run: (-run.priority, run.queued_at)):
        owner_share = owner_shares.get(run.owner_id, OwnerShare())
        # An owner's second run is ranked as if the first had already started.
        earlier_count = owner_share.running_count + ahead_counts[run.owner_id]
        ahead_counts[run.owner_id] += 1
        keyed_runs.append(
            ((-run.priority, earlier_count, owner_share.last_started_at, run.queued_at), run)
        )
    return [run for _, run in sorted(keyed_runs, key=lambda pair: pair[0])]


def claim_next_run() -> EvaluationRun | None:
    """Claim and return the next run in the order of the queue; None if none is ready.

    If another worker claims it first, the order is computed again, because that run now counts.
    Takes no lock.
    """
    time_limit = timedelta(seconds=settings.EVALUATION_SECONDS)
    while ordered_runs := _order_runs(
        EvaluationRun.objects.filter(leases.build_claimable_condition(EvaluationRun))
    ):
        run = leases.claim_job(
            EvaluationRun,
            ordered_runs[0].pk,
            deadline_at=timezone.now() + time_limit + RUN_OVERHEAD,
            host=socket.gethostname()[:100],
        )
        if run:
            return run
    return None


def _order_runs(runs: QuerySet[EvaluationRun]) -> list[WaitingRun]:
    """Return waiting runs in the order in which workers take them; two queries."""
    rows = runs.values_list("pk", "submission__owner", "priority", "queued_at")
    # Older runs do not matter: `order_by_turn` considers each owner's recent runs.
    is_recent = Q(state=State.RUNNING) | Q(started_at__gt=timezone.now() - SHARE_PERIOD)
    owner_rows = (
        EvaluationRun.objects.filter(is_recent, started_at__isnull=False)
        .order_by()  # the model's default order would be part of the grouping
        .values("submission__owner")
        .annotate(n=Count("pk", filter=Q(state=State.RUNNING)), last=Max("started_at"))
        .values_list("submission__owner", "n", "last")
    )
    return order_by_turn(
        [WaitingRun(*row) for row in rows],
        {
            owner: OwnerShare(running_count, last_started_at)
            for owner, running_count, last_started_at in owner_rows
        },
    )


def find_queue_positions() -> dict[UUID, int]:
    """Return the queue position of each waiting run by its id, counted from 1."""
    queued_runs = EvaluationRun.objects.filter(state=State.QUEUED)
    return {
        waiting_run.pk: number for number, waiting_run in enumerate(_order_runs(queued_runs), 1)
    }


def estimate_wait_seconds(position: int | None) -> float | None:
    """Estimate the seconds until the run at this position starts; None if unknown.

    Based on the durations of recent runs.
    """
    finished_runs = EvaluationRun.objects.filter(
        started_at__isnull=False, finished_at__isnull=False
    )
    run_times = finished_runs.order_by("-finished_at").values_list("started_at", "finished_at")[
        :WAIT_SAMPLE_RUNS
    ]
    durations_seconds = [(end - start).total_seconds() for start, end in run_times if start and end]
    if position is None or not durations_seconds:
        return None
    worker_count = EvaluationRun.objects.filter(state=State.RUNNING).count()  # busy workers
    return position * fmean(durations_seconds) / max(1, worker_count)


def wake_suite_runs(run: EvaluationRun) -> None:
    """Wake workers for the perturbed runs that waited for this plain run."""
    if run.suite == Suite.PLAIN:
        waiting_runs = EvaluationRun.objects.filter(
            submission=run.submission_id, version=run.version_id, state=State.QUEUED
        )
        for pk in waiting_runs.values_list("pk", flat=True):
            enqueue(EvaluationRun.function, pk)


def make_overdue_columns() -> dict[str, str]:
    """Return the columns that mark a run as not finished by its deadline."""
    return {
        "outcome": Outcome.TIMEOUT,
        "limit": f"{settings.EVALUATION_SECONDS / 60:g} minutes",
        "measured": gettext_noop("not finished by the deadline"),
        "error": gettext_noop("The evaluation missed its deadline and was stopped."),
    }


def end_overdue_runs() -> int:
    """End runs whose deadline passed `DEADLINE_GRACE` ago; return how many. Takes no lock.

    Their workers still hold their leases, so they are alive, but they failed to end the runs.
    """
    # Later than the worker itself, which notices the deadline at its next heartbeat.
    overdue_runs = EvaluationRun.objects.filter(deadline_at__lt=timezone.now() - DEADLINE_GRACE)
    return leases.end_overdue_jobs(overdue_runs, **make_overdue_columns())
