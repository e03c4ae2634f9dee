"""Reads of runs and of the models that take part in a task."""

from uuid import UUID

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet

from core.accounts.models import User
from evaluation.contract import Outcome
from evaluation.models import EvaluationRun, Submission
from tasks.models import Task

REMOTE = (Submission.Kind.ENDPOINT, Submission.Kind.CHAT)


def accepted(task: Task) -> QuerySet[Submission]:
    """The models that take part in a task."""
    found = task.submissions.filter(state=Submission.State.DONE, withdrawn_at=None)
    return found.select_related("target", "task")


def is_remote(submission: Submission) -> bool:
    """Whether its examples leave this installation: to an endpoint that is not ours."""
    target = submission.target
    return bool(target.url) if target else submission.kind in REMOTE


def is_served_here(submission: Submission) -> bool:
    """Return whether it is a chat model that our model server runs: it is asked there."""
    target = submission.target
    return target is not None and target.adapter == "openai_chat" and not target.url


def base_named(task: Task, owner: User | None, pk: UUID) -> Submission | None:
    """The whole language model of a task to which the owner of an adapter may add it."""
    mine = Q(is_published=True) | Q(owner=owner, owner__isnull=False)
    whole = accepted(task).filter(mine, kind=Submission.Kind.LLM, base="", emptied_at=None)
    return whole.filter(pk=pk).first()


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
