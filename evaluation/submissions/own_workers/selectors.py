"""Read about people's own machines: who has one, what it may lease, and what it did."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from core.accounts.models import User
from evaluation.isolation.queue.attempt_keys import choose_tenth
from evaluation.isolation.queue.leases import MAX_ATTEMPTS, build_claimable_condition
from evaluation.kinds import list_kind_names
from evaluation.models import (
    EvaluationRun,
    EvaluationSet,
    EvaluationSetVersion,
    HandedAnswers,
    OwnWorker,
    SecondOpinion,
    Submission,
)
from evaluation.submissions.teams.selectors import select_team_ids
from tasks.models import Task

HOST_PREFIX = "own worker "
SECOND_WAIT_TIME = timedelta(days=1)
"""How long answers wait for a second machine. After that, the site is the second."""
MAX_LISTED_RUNS = 50


def make_host_name(user: User, key: str) -> str:
    """Return the host name that is stored in runs on a person's own machine.

    key: the first characters of its API key.
    """
    return f"{HOST_PREFIX}{user.pk} {key}"


def parse_machine_key(run: EvaluationRun) -> str:
    """Return the first characters of the API key with which a machine leased the run."""
    # In the format of `make_host_name`: the key contains no space.
    return run.host.rpartition(" ")[2]


def find_workers(user: User, task: Task) -> Sequence[OwnWorker]:
    """Return a person's permissions to evaluate models of a task on their own machines."""
    return list(OwnWorker.objects.filter(task=task, user=user).select_related("user", "task"))


def find_person_models(user: User, task: Task) -> QuerySet[Submission]:
    """Return the models of a person and their teams that the person's own machines can evaluate."""
    is_own = Q(owner=user) | Q(team__in=select_team_ids(user))
    return find_own_models(task).filter(is_own)


def find_own_models(task: Task) -> QuerySet[Submission]:
    """Return all models of a task that their owners' machines can evaluate, by name."""
    # The site stores their files, and they need nothing else, such as prompts.
    kind_names = list_kind_names(lambda kind: kind.runs_in_sandbox and not kind.has_prompt)
    can_run_elsewhere = Q(kind__in=kind_names, base="", gpus=0, withdrawn_at=None) & ~Q(file="")
    return task.submissions.filter(can_run_elsewhere).order_by("name", "queued_at")


def find_own_sets(task: Task) -> QuerySet[EvaluationSet]:
    """Return the sets of a task, except hidden ones, whose inputs may leave the site."""
    hidden_access = EvaluationSet.Access.HIDDEN
    return task.evaluation_sets.filter(may_leave=True).exclude(access=hidden_access)


def _find_covered_runs(workers: Sequence[OwnWorker]) -> QuerySet[EvaluationRun]:
    """Return the plain runs whose model and inputs these permissions allow a machine to download.

    Perturbed runs are left out, because they are compared with plain ones on the site.
    workers: at least one; all of the same person and task.
    """
    user, task = workers[0].user, workers[0].task
    versions = EvaluationSetVersion.objects.filter(evaluation_set__in=find_own_sets(task))
    # Whether a version is sealed does not depend on its dataset's numbers.
    versions_with_datasets = versions.select_related("evaluation_set", "dataset").defer(
        "dataset__numbers"
    )
    is_sealed_by_version = {version.pk: version.is_sealed for version in versions_with_datasets}
    is_covered = Q(pk__in=())
    for worker in workers:
        # Inputs of a sealed set are sent only to people whom its owners have permitted.
        allowed_ids = [
            pk for pk, sealed in is_sealed_by_version.items() if worker.takes_sealed or not sealed
        ]
        is_allowed = Q(version__in=allowed_ids)
        if worker.submission_id:
            is_allowed &= Q(submission=worker.submission_id)
        if worker.evaluation_set_id:
            is_allowed &= Q(version__evaluation_set=worker.evaluation_set_id)
        is_covered |= is_allowed
    return EvaluationRun.objects.filter(
        is_covered,
        submission__in=find_person_models(user, task).order_by(),
        suite=EvaluationRun.Suite.PLAIN,
    )


def find_leasable_runs(
    workers: Sequence[OwnWorker], key: str, model: UUID | None, evaluation_set: str
) -> QuerySet[EvaluationRun]:
    """Return the runs that a machine may lease, oldest first.

    These are runs that have no answers yet. Runs with only one attempt left are excluded, because
    the site reserves it for itself. Runs for which this machine may be the second one are included.
    """
    is_requested = Q()
    if model is not None:
        is_requested = Q(submission=model)
    if evaluation_set:
        is_requested &= Q(version__evaluation_set__name=evaluation_set)
    handed_answers = HandedAnswers.objects.filter(run=OuterRef("pk"))
    # Not the machine of the first answers, which would agree with itself.
    waiting_answers = handed_answers.filter(second=SecondOpinion.WORKER, is_second=False).exclude(
        token=key
    )
    second_answer_condition = build_claimable_condition(
        EvaluationRun, timezone.now() + SECOND_WAIT_TIME
    ) & Q(Exists(waiting_answers), ~Exists(handed_answers.filter(is_second=True)))
    first_answer_condition = (
        build_claimable_condition(EvaluationRun)
        & ~Q(Exists(handed_answers))
        & Q(attempts__lt=MAX_ATTEMPTS - 1)
    )
    return (
        _find_covered_runs(workers)
        .filter(is_requested, first_answer_condition | second_answer_condition)
        .order_by("queued_at")
    )


def find_leased_run(user: User, token: UUID) -> EvaluationRun | None:
    """Return the run that a person's machine leased with this token.

    None if the lease has ended, or if the person may no longer evaluate this run.
    """
    leased_runs = EvaluationRun.objects.filter(
        lease_token=token,
        state=EvaluationRun.State.RUNNING,
        host__startswith=make_host_name(user, ""),
    )
    run = leased_runs.select_related("submission__task", "version__evaluation_set").first()
    if run is None:
        return None
    # Looked up on each call, so that removing a permission also ends the lease.
    workers = find_workers(user, run.submission.task)
    if not workers or not _find_covered_runs(workers).filter(pk=run.pk).exists():
        return None
    return run


def find_first_answers(run: EvaluationRun) -> HandedAnswers | None:
    """Return the first machine's answers to a leased run; None if this machine is the first."""
    waiting_answers = run.handed.filter(second=SecondOpinion.WORKER, is_second=False)
    return waiting_answers.exclude(token=parse_machine_key(run)).first()


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
    """A run that a submitter's machine is evaluating.

    token: the first characters of the machine's API key.
    """

    run: EvaluationRun
    user: User | None
    token: str


def find_held_runs(task: Task) -> Sequence[HeldRun]:
    """Return the task's runs that submitters' machines evaluate now, oldest first; two queries."""
    runs = EvaluationRun.objects.filter(
        submission__task=task, state=EvaluationRun.State.RUNNING, host__startswith=HOST_PREFIX
    )
    runs = runs.select_related("submission", "version__evaluation_set").order_by("started_at")
    runs_with_machines = []
    for run in runs:
        user_id, _, token = run.host.removeprefix(HOST_PREFIX).partition(
            " "
        )  # in the format of `make_host_name`
        runs_with_machines.append((run, int(user_id), token))
    people = User.objects.in_bulk({user_id for _, user_id, _ in runs_with_machines})
    return [HeldRun(run, people.get(user_id), token) for run, user_id, token in runs_with_machines]


def find_submitted_answers(task: Task) -> QuerySet[HandedAnswers]:
    """Return the answers to a task's runs that submitters' machines sent, latest first."""
    rows = HandedAnswers.objects.filter(run__submission__task=task).order_by("-handed_at")
    related_rows = ("user", "run__submission", "run__version__evaluation_set")
    return rows.select_related(*related_rows)
