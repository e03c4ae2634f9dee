"""Reads about machines of others: who has one, and what it may take."""

from uuid import UUID

from django.db.models import Q, QuerySet

from dynabench.accounts.models import User
from evaluation.models import EvaluationRun, EvaluationSet, OwnWorker, Submission
from evaluation.queue.leases import ready
from evaluation.teams.selectors import team_ids
from tasks.models import Task

KINDS = (
    Submission.Kind.DIRECTORY,
    Submission.Kind.HUB,
    Submission.Kind.ROWS,
    Submission.Kind.IMAGE,
)
"""Models whose files the site keeps and that need nothing else."""
HOST = "own worker "


def host_of(user: User) -> str:
    """How a run names a person's machine."""
    return f"{HOST}{user.pk}"


def worker_of(user: User, task: Task) -> OwnWorker | None:
    """What a person may do in a task; None: nothing of this kind."""
    return OwnWorker.objects.filter(task=task, user=user).first()


def takeable(worker: OwnWorker, model: UUID | None, evaluation_set: str) -> QuerySet[EvaluationRun]:
    """Runs that a machine may take, the oldest first, with what its lease tells.

    Of models of its person and their teams alone, for it is given their files; on sets whose inputs
    may leave; unchanged, for what is perturbed is compared here.
    """
    user = worker.user
    of_whom = Q(submission__owner=user) | Q(submission__team__in=team_ids(user))
    asked = Q() if model is None else Q(submission=model)
    if evaluation_set:
        asked &= Q(version__evaluation_set__name=evaluation_set)
    runs = EvaluationRun.objects.filter(
        ready(EvaluationRun),
        of_whom,
        asked,
        submission__task=worker.task,
        submission__kind__in=KINDS,
        submission__base="",
        submission__gpus=0,
        submission__withdrawn_at=None,
        version__evaluation_set__may_leave=True,
        suite=EvaluationRun.Suite.PLAIN,
        handed=None,
    ).exclude(version__evaluation_set__access=EvaluationSet.Access.HIDDEN)
    return runs.exclude(submission__file="").order_by("queued_at")


def leased_to(user: User, token: UUID) -> EvaluationRun | None:
    """The run that a person's machine holds by this lease, while it may still hold it."""
    may = Q(submission__task__own_workers__user=user)
    held = EvaluationRun.objects.filter(
        may, lease_token=token, state=EvaluationRun.State.RUNNING, host=host_of(user)
    )
    leaves = Q(version__evaluation_set__may_leave=True)
    return held.filter(leaves).select_related("submission__task", "version__evaluation_set").first()
