"""Evaluation runs: asking for them, taking the next one, and what waits for how long."""

import socket
from collections.abc import Iterable
from datetime import timedelta
from statistics import fmean
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from dynabench.accounts.models import User
from dynabench.accounts.services import log
from dynabench.lib.errors import Refused
from dynabench.lib.queue import enqueue
from evaluation.contract import Outcome
from evaluation.models import EvaluationRun, EvaluationSetVersion, Submission
from evaluation.queue import leases
from evaluation.runs.scheduling import Served, Waiting, in_turn
from evaluation.sets.selectors import newest_versions
from tasks.models import RoundTarget, Task

EVALUATE = "evaluation.jobs.evaluate_next"
State, Suite, Kind = EvaluationRun.State, EvaluationRun.Suite, Submission.Kind
# Beside the model's own time: writing the inputs, starting, scoring a million answers.
OVERHEAD = timedelta(minutes=30)
GRACE = timedelta(minutes=2)  # after its deadline a run is ended by the sweep
RECENT = timedelta(days=1)  # who was served before that is as good as never served
LAST = 20  # runs that tell how long the next one will take


def accepted(task: Task) -> QuerySet[Submission]:
    """The models that take part in a task."""
    found = task.submissions.filter(state=Submission.State.DONE, withdrawn_at=None)
    return found.select_related("target", "task")


def is_remote(submission: Submission) -> bool:
    """Whether its examples leave this installation: to an endpoint that is not ours."""
    target = submission.target
    return bool(target.url) if target else submission.kind == Kind.ENDPOINT


def suites_of(submission: Submission, version: EvaluationSetVersion) -> tuple[str, ...]:
    """The suites that a model is run on with a version of a set; none where it must not be."""
    if submission.kind == Kind.PREDICTIONS:  # of texts that nobody perturbed
        return (Suite.PLAIN,) if submission.evaluation_set_id == version.pk else ()
    if is_remote(submission) and not version.evaluation_set.may_leave:
        return ()
    return (Suite.PLAIN, *submission.task.config.metrics.deltas)


def request_runs(*, submission: Submission, actor: User | None = None) -> list[EvaluationRun]:
    """Run a model on the newest version of each of its task's sets. No lock: `run_once` holds.

    Returns the runs that are new.
    """
    return _request([submission], newest_versions(submission.task), actor)


def request_for_version(*, version: EvaluationSetVersion) -> list[EvaluationRun]:
    """Run every accepted model and every target of the task on a version of a set.

    No lock: `run_once` holds. Returns the runs that are new.
    """
    task = version.evaluation_set.task
    ensure_targets(task)
    return _request(accepted(task), [version], None)


def request_missing() -> list[EvaluationRun]:
    """Request the runs on new versions of sets, of new targets, and of suites that the task's
    configuration names since; the sweep calls it. No lock.
    """
    made: list[EvaluationRun] = []
    for task in Task.objects.filter(evaluation_sets__versions__isnull=False).distinct():
        ensure_targets(task)
        suites = (Suite.PLAIN, *task.config.metrics.deltas)
        for version in newest_versions(task):
            whole = version.runs.filter(suite__in=suites).values("submission")
            whole = whole.annotate(n=Count("suite", distinct=True)).filter(n=len(suites))
            lacking = accepted(task).exclude(pk__in=whole.values("submission"))
            made += _request(lacking, [version], None)
    return made


@transaction.atomic
def _request(
    submissions: Iterable[Submission],
    versions: Iterable[EvaluationSetVersion],
    actor: User | None,
) -> list[EvaluationRun]:
    submissions, versions = list(submissions), list(versions)
    rounds = [version.evaluation_set.round_id for version in versions]
    loops = set(RoundTarget.objects.filter(round__in=rounds).values_list("target_id", "round_id"))
    asked = EvaluationRun.objects.filter(submission__in=submissions, version__in=versions)
    known = set(asked.values_list("submission", "version", "suite"))
    wanted = [
        EvaluationRun(
            submission=submission,
            version=version,
            suite=suite,
            requested_by=actor,
            in_the_loop=(submission.target_id, version.evaluation_set.round_id) in loops,
        )
        for version in versions
        for submission in submissions
        for suite in suites_of(submission, version)
        if (submission.pk, version.pk, suite) not in known
    ]
    EvaluationRun.objects.bulk_create(wanted, ignore_conflicts=True)
    made = list(EvaluationRun.objects.filter(pk__in=[run.pk for run in wanted]))
    for run in made:
        enqueue(EVALUATE, run.pk)
    return made


@transaction.atomic
def ensure_targets(task: Task) -> list[Submission]:
    """Enter each target of a task that has files or an address, once. No lock: one a target."""
    targets = task.targets.exclude(source="", url="").filter(submission=None)
    return Submission.objects.bulk_create(
        [
            Submission(
                task=task,
                kind=Kind.TARGET,
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
    """Repeat an evaluation that the platform failed. No lock: `run_once` holds.

    Whatever else it came to stands: who may repeat until they are lucky is measured by their luck,
    and who may change answers and look again reads the right ones out. A plain one brings back the
    perturbed ones that ended for lack of it. Raises Refused.
    """
    last = _last_of_each_suite(run).select_related("submission").get(suite=run.suite)
    if not last.is_over:
        raise Refused(_("This evaluation is under way. Wait for its end, or cancel it."))
    if last.submission.withdrawn_at:
        raise Refused(_("This model was withdrawn."))
    if not last.may_repeat:
        raise Refused(
            _("Only an evaluation that failed through our fault is repeated. This result stands.")
        )
    made = _next(last, actor)
    try:
        with transaction.atomic():
            made.save(force_insert=True)
    except IntegrityError:
        raise Refused(_("Somebody else has just asked for it.")) from None
    log(actor, "run.again", made)
    enqueue(EVALUATE, made.pk)
    if last.suite == Suite.PLAIN:
        lacking = _last_of_each_suite(last).filter(outcome=Outcome.INFRASTRUCTURE)
        again = [_next(other, actor) for other in lacking.exclude(suite=Suite.PLAIN)]
        EvaluationRun.objects.bulk_create(again, ignore_conflicts=True)  # the plain one's end rings
    return made


def _next(run: EvaluationRun, actor: User | None) -> EvaluationRun:
    """The same evaluation once more, not stored yet."""
    return EvaluationRun(
        submission=run.submission,
        version=run.version,
        suite=run.suite,
        number=run.number + 1,
        seed=run.seed,
        in_the_loop=run.in_the_loop,
        requested_by=actor,
    )


def _last_of_each_suite(run: EvaluationRun) -> QuerySet[EvaluationRun]:
    """The last run of each suite on the run's set, with its model."""
    same = EvaluationRun.objects.filter(submission=run.submission_id, version=run.version_id)
    later = same.filter(suite=OuterRef("suite"), number__gt=OuterRef("number"))
    return same.filter(~Exists(later))


@transaction.atomic
def cancel_run(*, run: EvaluationRun, actor: User | None) -> bool:
    """End a run that waits or runs; nothing of it is stored. No lock. False: it was over."""
    if ended := leases.cancel(run, outcome=Outcome.CANCELLED):
        log(actor, "run.cancelled", run)
    return ended


def claim_next() -> EvaluationRun | None:
    """Take the run whose turn it is; None when none is ready. No lock.

    Where another worker was quicker the order is looked up anew, because it counts that run now.
    """
    seconds = timedelta(seconds=settings.EVALUATION_SECONDS)
    while turn := _in_turn(EvaluationRun.objects.filter(leases.ready(EvaluationRun))):
        run = leases.claim(
            EvaluationRun,
            turn[0].pk,
            deadline_at=timezone.now() + seconds + OVERHEAD,
            host=socket.gethostname()[:100],
        )
        if run:
            return run
    return None


def _in_turn(runs: QuerySet[EvaluationRun]) -> list[Waiting]:
    """Runs in the order in which workers take them; two queries."""
    rows = runs.values_list("pk", "submission__owner", "priority", "queued_at")
    recent = Q(state=State.RUNNING) | Q(started_at__gt=timezone.now() - RECENT)
    served = (
        EvaluationRun.objects.filter(recent, started_at__isnull=False)
        .order_by()
        .values("submission__owner")
        .annotate(n=Count("pk", filter=Q(state=State.RUNNING)), last=Max("started_at"))
        .values_list("submission__owner", "n", "last")
    )
    return in_turn(
        [Waiting(*row) for row in rows],
        {owner: Served(running, last) for owner, running, last in served},
    )


def queue_positions() -> dict[UUID, int]:
    """By its id for each run that waits: how many are taken until it is, itself counted."""
    queued = EvaluationRun.objects.filter(state=State.QUEUED)
    return {waiting.pk: number for number, waiting in enumerate(_in_turn(queued), 1)}


def expected_wait_seconds(position: int | None) -> float | None:
    """How long until a run at this position begins, as the last runs took; None: not known."""
    last = EvaluationRun.objects.filter(started_at__isnull=False, finished_at__isnull=False)
    times = last.order_by("-finished_at").values_list("started_at", "finished_at")[:LAST]
    took = [(end - start).total_seconds() for start, end in times if start and end]
    if position is None or not took:
        return None
    workers = EvaluationRun.objects.filter(state=State.RUNNING).count()
    return position * fmean(took) / max(1, workers)


def counting(runs: QuerySet[EvaluationRun]) -> QuerySet[EvaluationRun]:
    """Of runs that were repeated, the first one that succeeded: no later one is luckier."""
    earlier = EvaluationRun.objects.filter(
        submission=OuterRef("submission"),
        version=OuterRef("version"),
        suite=OuterRef("suite"),
        number__lt=OuterRef("number"),
        outcome=Outcome.OK,
    )
    return runs.filter(~Exists(earlier), outcome=Outcome.OK)


def cost_cents(cpu_seconds: float | None) -> float | None:
    """What processor time costs, as the installation says; None: it does not, or none is known."""
    price: int = settings.EVALUATION_CPU_HOUR_CENTS
    return price * cpu_seconds / 3600 if price and cpu_seconds is not None else None


def ring_suites(run: EvaluationRun) -> None:
    """Ring for the perturbed runs that waited for this plain one."""
    if run.suite == Suite.PLAIN:
        waiting = EvaluationRun.objects.filter(
            submission=run.submission_id, version=run.version_id, state=State.QUEUED
        )
        for pk in waiting.values_list("pk", flat=True):
            enqueue(EVALUATE, pk)


def overdue() -> dict[str, str]:
    """The columns of a run that had not ended at its deadline."""
    return {
        "outcome": Outcome.TIMEOUT,
        "limit": f"{settings.EVALUATION_SECONDS / 60:g} minutes",
        "measured": gettext_noop("not done at its deadline"),
        "error": gettext_noop("The run had not ended at its deadline and was stopped."),
    }


def end_overdue() -> int:
    """End runs whose deadline passed `GRACE` ago; returns how many. No lock.

    Their worker lives, or its lease would have run out, but did not end them itself.
    """
    late = EvaluationRun.objects.filter(deadline_at__lt=timezone.now() - GRACE)
    return leases.end_overdue(late, **overdue())
