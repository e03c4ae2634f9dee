"""Evaluation runs: requested, taken by workers in a fair order, repeated."""

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
from evaluation.kinds import KINDS, TARGET
from evaluation.models import EvaluationRun, EvaluationSetVersion, Submission
from evaluation.models.runs import REPEATABLE_OUTCOMES
from evaluation.runs.selectors import find_accepted_models, is_remote
from evaluation.test_sets.selectors import select_newest_versions
from tasks.models import RoundTarget, Task

State, Suite = EvaluationRun.State, EvaluationRun.Suite
# On top of the model's own time: writing the inputs, starting, scoring a million answers.
RUN_OVERHEAD = timedelta(minutes=30)
DEADLINE_GRACE = timedelta(minutes=2)  # after its deadline a run is ended by the sweep
SHARE_PERIOD = timedelta(days=1)  # an owner served before that counts as never served
WAIT_SAMPLE_RUNS = 20  # runs that tell how long the next one will take
LONG_AGO = datetime.min.replace(tzinfo=UTC)


def choose_suites(submission: Submission, version: EvaluationSetVersion) -> tuple[str, ...]:
    """Return the suites to run for a model on a version of a set; none if it must not be run."""
    kind = KINDS[submission.kind]
    if kind.is_file_of_answers:  # a file answers only the texts of its own version
        if submission.evaluation_set_id != version.pk:
            return ()
        return (Suite.PLAIN,)
    if is_remote(submission) and not version.evaluation_set.may_leave:
        return ()
    # Perturbed examples are several times as many, and their owner pays for each call.
    if kind.has_prompt and not submission.chat.get("perturbed"):
        return (Suite.PLAIN,)
    return (Suite.PLAIN, *submission.task.config.metrics.deltas)


def request_runs(*, submission: Submission, actor: User | None = None) -> list[EvaluationRun]:
    """Request runs of a model on the newest version of each set of its task. Takes no lock.

    Returns the new runs; `run_once` prevents duplicates.
    """
    return _request([submission], select_newest_versions(submission.task), actor)


def request_missing_runs() -> list[EvaluationRun]:
    """Request and return the missing runs: of new set versions, new targets and new suites.

    Suites are those in the task's configuration. Called by the sweep. Takes no lock.
    """
    new_runs: list[EvaluationRun] = []
    for task in Task.objects.filter(evaluation_sets__versions__isnull=False).distinct():
        ensure_targets(task)
        suites = (Suite.PLAIN, *task.config.metrics.deltas)
        for version in select_newest_versions(task):
            # One query says which models lack a run, so that a sweep with nothing to do is quick.
            whole = version.runs.filter(suite__in=suites).values("submission")
            whole = whole.annotate(n=Count("suite", distinct=True)).filter(n=len(suites))
            lacking = find_accepted_models(task).exclude(pk__in=whole.values("submission"))
            lacking = lacking.filter(emptied_at=None)  # without files no new run can begin
            new_runs += _request(lacking, [version], None)
    return new_runs


@transaction.atomic
def _request(
    submissions: Iterable[Submission],
    versions: Iterable[EvaluationSetVersion],
    actor: User | None,
) -> list[EvaluationRun]:
    """Store the runs that are missing and wake a worker for each; return the new ones."""
    submissions, versions = list(submissions), list(versions)
    rounds = {
        version.pk: version.evaluation_set.round_id or version.evaluation_set.held_of_id
        for version in versions
    }
    loops = set(
        RoundTarget.objects.filter(round__in=rounds.values()).values_list("target_id", "round_id")
    )
    existing = EvaluationRun.objects.filter(submission__in=submissions, version__in=versions)
    existing_keys = set(existing.values_list("submission", "version", "suite"))
    missing_runs = []
    for version, submission in product(versions, submissions):
        is_in_the_loop = (submission.target_id, rounds[version.pk]) in loops
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
    # Another sweep may request the same at this moment: `run_once` drops the second, and only the
    # runs that are really ours are read back and queued.
    EvaluationRun.objects.bulk_create(missing_runs, ignore_conflicts=True)
    new_runs = list(EvaluationRun.objects.filter(pk__in=[run.pk for run in missing_runs]))
    for run in new_runs:
        enqueue(run.function, run.pk)
    return new_runs


@transaction.atomic
def ensure_targets(task: Task) -> list[Submission]:
    """Create a submission for each target of a task that has files or an address; return new ones.

    Takes no lock: a target has at most one submission.
    """
    targets = task.targets.exclude(source="", url="").filter(submission=None)
    return Submission.objects.bulk_create(
        [
            Submission(
                task=task,
                kind=TARGET,
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
        ignore_conflicts=True,
    )


@transaction.atomic
def run_again(*, run: EvaluationRun, actor: User | None) -> EvaluationRun:
    """Repeat an evaluation that failed for a reason other than the model; return the new run.

    A run that a cap on the cost ended measured nothing, so it may be repeated with a higher cap.
    Every other outcome is final: retries would reward luck, and changed answers would leak the
    labels. Repeating a plain run also repeats the perturbed runs that ended because it failed.
    Takes no lock: `run_once` prevents duplicates. Raises Refused.
    """
    last_run = _find_last_runs(run).select_related("submission").get(suite=run.suite)
    if not last_run.is_over:
        raise Refused(_("This evaluation is under way. Wait for its end, or cancel it."))
    if last_run.submission.withdrawn_at:
        raise Refused(_("This model was withdrawn."))
    if last_run.submission.emptied_at:
        raise Refused(_("The model's files are gone."))
    if not last_run.may_repeat:
        raise Refused(
            _(
                "Only an evaluation that failed through our fault or that of another server, or "
                "for which too little money was left, is repeated. This result stands."
            )
        )
    next_run = _make_next_run(last_run, actor)
    try:
        with transaction.atomic():  # of its own, so that the outer one survives the error
            next_run.save(force_insert=True)
    except IntegrityError:
        raise Refused(_("Somebody else has just asked for it.")) from None
    log(actor, "run.again", next_run)
    enqueue(next_run.function, next_run.pk)
    if last_run.suite == Suite.PLAIN:
        repeatable_runs = _find_last_runs(last_run).filter(outcome__in=REPEATABLE_OUTCOMES)
        next_runs = [
            _make_next_run(other, actor) for other in repeatable_runs.exclude(suite=Suite.PLAIN)
        ]
        # The end of the plain one wakes their workers.
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
    same = EvaluationRun.objects.filter(submission=run.submission_id, version=run.version_id)
    later = same.filter(suite=OuterRef("suite"), number__gt=OuterRef("number"))
    return same.filter(~Exists(later))


# Whose run comes next: nobody's many runs keep another's waiting.


@dataclass(frozen=True)
class WaitingRun:
    """A waiting run. owner: the id of its owner; None for the platform itself."""

    pk: Any
    owner: int | None
    priority: int  # higher first
    queued_at: datetime


@dataclass(frozen=True)
class OwnerShare:
    """An owner's current share: the number of their active runs, and when the last one started."""

    running: int = 0
    last: datetime = LONG_AGO


def order_by_turn(
    waiting_runs: Iterable[WaitingRun], owner_shares: Mapping[int | None, OwnerShare]
) -> list[WaitingRun]:
    """Sort waiting runs into the order in which free workers take them.

    By priority; then by owner: the fewest active runs first, then the earliest last start; then
    by the age of the run.
    """
    keyed_runs: list[tuple[tuple[int, int, datetime, datetime], WaitingRun]] = []
    ahead: Counter[int | None] = Counter()
    for run in sorted(waiting_runs, key=lambda run: (-run.priority, run.queued_at)):
        share = owner_shares.get(run.owner, OwnerShare())
        # An owner's second run stands where it would if the first were under way already.
        place = share.running + ahead[run.owner]
        ahead[run.owner] += 1
        keyed_runs.append(((-run.priority, place, share.last, run.queued_at), run))
    return [run for _, run in sorted(keyed_runs, key=lambda pair: pair[0])]


def claim_next() -> EvaluationRun | None:
    """Claim and return the next run in the order of the queue; None if none is ready. No lock.

    If another worker claims it first, the order is computed again, because that run now counts.
    """
    seconds = timedelta(seconds=settings.EVALUATION_SECONDS)
    while turn := _order_runs(EvaluationRun.objects.filter(leases.claimable(EvaluationRun))):
        run = leases.claim_job(
            EvaluationRun,
            turn[0].pk,
            deadline_at=timezone.now() + seconds + RUN_OVERHEAD,
            host=socket.gethostname()[:100],
        )
        if run:
            return run
    return None


def _order_runs(runs: QuerySet[EvaluationRun]) -> list[WaitingRun]:
    """Return waiting runs in the order in which workers take them; two queries."""
    rows = runs.values_list("pk", "submission__owner", "priority", "queued_at")
    # Older runs do not matter any more: `order_by_turn` looks at what each owner has had of late.
    recent = Q(state=State.RUNNING) | Q(started_at__gt=timezone.now() - SHARE_PERIOD)
    owner_rows = (
        EvaluationRun.objects.filter(recent, started_at__isnull=False)
        .order_by()  # the model's own order would be grouped by, too
        .values("submission__owner")
        .annotate(n=Count("pk", filter=Q(state=State.RUNNING)), last=Max("started_at"))
        .values_list("submission__owner", "n", "last")
    )
    return order_by_turn(
        [WaitingRun(*row) for row in rows],
        {owner: OwnerShare(running, last) for owner, running, last in owner_rows},
    )


def find_queue_positions() -> dict[UUID, int]:
    """Return the queue position of each waiting run by its id, counted from 1."""
    queued = EvaluationRun.objects.filter(state=State.QUEUED)
    return {waiting.pk: number for number, waiting in enumerate(_order_runs(queued), 1)}


def estimate_wait_seconds(position: int | None) -> float | None:
    """Estimate the seconds until the run at this position starts; None if unknown.

    Based on the durations of recent runs.
    """
    last = EvaluationRun.objects.filter(started_at__isnull=False, finished_at__isnull=False)
    times = last.order_by("-finished_at").values_list("started_at", "finished_at")[
        :WAIT_SAMPLE_RUNS
    ]
    took = [(end - start).total_seconds() for start, end in times if start and end]
    if position is None or not took:
        return None
    workers = EvaluationRun.objects.filter(state=State.RUNNING).count()  # as many are at work
    return position * fmean(took) / max(1, workers)


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
        "measured": gettext_noop("not done at its deadline"),
        "error": gettext_noop("The run had not ended at its deadline and was stopped."),
    }


def end_overdue() -> int:
    """End runs whose deadline passed `DEADLINE_GRACE` ago; return how many. Takes no lock.

    Their workers still hold their leases, so they are alive, but they failed to end the runs.
    """
    # Later than the worker itself, which notices the deadline at its next heartbeat.
    late = EvaluationRun.objects.filter(deadline_at__lt=timezone.now() - DEADLINE_GRACE)
    return leases.end_overdue(late, **make_overdue_columns())
