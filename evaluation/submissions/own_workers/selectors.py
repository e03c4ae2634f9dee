"""Reads about machines of others: who has one, what it may take, and what it did."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from core.accounts.models import User
from evaluation.isolation.queue.attempt_keys import choose_tenth
from evaluation.isolation.queue.leases import MAX_ATTEMPTS, claimable
from evaluation.kinds import kind_names
from evaluation.models import (
    EvaluationRun,
    EvaluationSet,
    EvaluationSetVersion,
    HandedAnswers,
    OwnWorker,
    Second,
    Submission,
)
from evaluation.submissions.teams.selectors import select_team_ids
from tasks.models import Task

HOST_PREFIX = "own worker "
SECOND_WAITS = timedelta(days=1)
"""How long answers wait for a second machine; then the site is the second."""
LAST = 50


def make_host_name(user: User, key: str) -> str:
    """Return the host name that is stored in runs on a person's own machine.

    key: the first characters of its API key.
    """
    return f"{HOST_PREFIX}{user.pk} {key}"


def parse_machine_key(run: EvaluationRun) -> str:
    """Return the first characters of the API key with which a machine leased the run."""
    return run.host.rpartition(" ")[2]


def find_workers(user: User, task: Task) -> Sequence[OwnWorker]:
    """Return a person's permissions to evaluate models of a task on their own machines."""
    return list(OwnWorker.objects.filter(task=task, user=user).select_related("user", "task"))


def find_models_of(user: User, task: Task) -> QuerySet[Submission]:
    """Return the models of a person and their teams in a task that an own machine can evaluate."""
    whose = Q(owner=user) | Q(team__in=select_team_ids(user))
    return find_own_models(task).filter(whose)


def find_own_models(task: Task) -> QuerySet[Submission]:
    """Return all models of a task that an own machine can evaluate, by name."""
    # The site keeps their files, and they need nothing else, such as prompts.
    kinds = kind_names(lambda kind: kind.runs_in_sandbox and not kind.has_prompt)
    able = Q(kind__in=kinds, base="", gpus=0, withdrawn_at=None) & ~Q(file="")
    return task.submissions.filter(able).order_by("name", "queued_at")


def find_own_sets(task: Task) -> QuerySet[EvaluationSet]:
    """Return the sets of a task whose inputs may leave the site."""
    hidden = EvaluationSet.Access.HIDDEN
    return task.evaluation_sets.filter(may_leave=True).exclude(access=hidden)


def _find_covered_runs(workers: Sequence[OwnWorker]) -> QuerySet[EvaluationRun]:
    """Return the plain runs whose model and inputs these permissions give to a machine.

    Perturbed runs are left out, because they are compared with plain ones on the site.
    workers: at least one; all of the same person and task.
    """
    user, task = workers[0].user, workers[0].task
    versions = EvaluationSetVersion.objects.filter(evaluation_set__in=find_own_sets(task))
    listed = versions.select_related("evaluation_set", "dataset").defer("dataset__numbers")
    is_sealed = {version.pk: version.is_sealed for version in listed}
    is_covered = Q(pk__in=())
    for worker in workers:
        # Inputs of a sealed set leave only for those who may have them, as its owners agreed.
        allowed_ids = [pk for pk, sealed in is_sealed.items() if worker.takes_sealed or not sealed]
        queue = Q(version__in=allowed_ids)
        if worker.submission_id:
            queue &= Q(submission=worker.submission_id)
        if worker.evaluation_set_id:
            queue &= Q(version__evaluation_set=worker.evaluation_set_id)
        is_covered |= queue
    return EvaluationRun.objects.filter(
        is_covered,
        submission__in=find_models_of(user, task).order_by(),
        suite=EvaluationRun.Suite.PLAIN,
    )


def find_leasable_runs(
    workers: Sequence[OwnWorker], key: str, model: UUID | None, evaluation_set: str
) -> QuerySet[EvaluationRun]:
    """Return the runs that a machine may lease, oldest first.

    These are runs without answers, unless only the last try is left, which the site keeps for
    itself; and runs for which the machine may be the second.
    """
    is_requested = Q()
    if model is not None:
        is_requested = Q(submission=model)
    if evaluation_set:
        is_requested &= Q(version__evaluation_set__name=evaluation_set)
    handed_answers = HandedAnswers.objects.filter(run=OuterRef("pk"))
    # Not the machine that gave the first answers: it would agree with itself.
    waiting_answers = handed_answers.filter(second=Second.WORKER, is_second=False).exclude(
        token=key
    )
    as_second = claimable(EvaluationRun, timezone.now() + SECOND_WAITS) & Q(
        Exists(waiting_answers), ~Exists(handed_answers.filter(is_second=True))
    )
    as_first = (
        claimable(EvaluationRun) & ~Q(Exists(handed_answers)) & Q(attempts__lt=MAX_ATTEMPTS - 1)
    )
    return (
        _find_covered_runs(workers).filter(is_requested, as_first | as_second).order_by("queued_at")
    )


def find_leased_run(user: User, token: UUID) -> EvaluationRun | None:
    """Return the run that a person's machine holds by this lease.

    None if the machine may no longer hold it.
    """
    leased_runs = EvaluationRun.objects.filter(
        lease_token=token,
        state=EvaluationRun.State.RUNNING,
        host__startswith=make_host_name(user, ""),
    )
    run = leased_runs.select_related("submission__task", "version__evaluation_set").first()
    if run is None:
        return None
    # Looked up at each call: a permission that was removed ends the lease, too.
    workers = find_workers(user, run.submission.task)
    if not workers or not _find_covered_runs(workers).filter(pk=run.pk).exists():
        return None
    return run


def find_first_answers(run: EvaluationRun) -> HandedAnswers | None:
    """Return the first machine's answers to a leased run; None if this machine is the first."""
    waits = run.handed.filter(second=Second.WORKER, is_second=False)
    return waits.exclude(token=parse_machine_key(run)).first()


def choose_asked_examples(run: EvaluationRun) -> list[bool] | None:
    """Return, for each example of a leased run, whether the machine must answer it.

    Returns None if it must answer all of them.
    """
    first_answers = find_first_answers(run)
    if first_answers is None:
        return None
    return choose_tenth(first_answers.lease_token, run.version.size)


@dataclass(frozen=True)
class HeldRun:
    """A run that a submitter's machine holds now. token: the first characters of its API key."""

    run: EvaluationRun
    user: User | None
    token: str


def find_held_runs(task: Task) -> Sequence[HeldRun]:
    """Return the task's runs that submitters' machines hold, longest held first; two queries."""
    runs = EvaluationRun.objects.filter(
        submission__task=task, state=EvaluationRun.State.RUNNING, host__startswith=HOST_PREFIX
    )
    runs = runs.select_related("submission", "version__evaluation_set").order_by("started_at")
    machines = []
    for run in runs:
        user_id, _, token = run.host.removeprefix(HOST_PREFIX).partition(
            " "
        )  # as `make_host_name` wrote it
        machines.append((run, int(user_id), token))
    people = User.objects.in_bulk({user_id for _, user_id, _ in machines})
    return [HeldRun(run, people.get(user_id), token) for run, user_id, token in machines]


def find_submitted_answers(task: Task) -> QuerySet[HandedAnswers]:
    """Return the answers to a task's runs that submitters' machines sent, latest first."""
    rows = HandedAnswers.objects.filter(run__submission__task=task).order_by("-handed_at")
    about = ("user", "run__submission", "run__version__evaluation_set")
    return rows.select_related(*about)
