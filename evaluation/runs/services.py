"""Writes of evaluation runs: requesting and repeating them."""

from collections.abc import Iterable

from django.db import IntegrityError, transaction
from django.db.models import Count, Exists, OuterRef, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from dynabench.accounts.models import User
from dynabench.accounts.services import log
from dynabench.lib.errors import Refused
from dynabench.lib.queue import enqueue
from evaluation.contract import Outcome
from evaluation.models import EvaluationRun, EvaluationSetVersion, Submission
from evaluation.runs.scheduling import EVALUATE
from evaluation.runs.selectors import accepted, is_remote
from evaluation.sets.selectors import newest_versions
from tasks.models import RoundTarget, Task

State, Suite, Kind = EvaluationRun.State, EvaluationRun.Suite, Submission.Kind


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
