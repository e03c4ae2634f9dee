"""Read runs, and the models that take part in a task."""

from uuid import UUID

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet

from core.accounts.models import User
from evaluation.contract import Outcome
from evaluation.kinds import KINDS, list_kind_names
from evaluation.models import EvaluationRun, Submission
from tasks.models import Task


def find_accepted_models(task: Task) -> QuerySet[Submission]:
    """Return the models of a task that are evaluated: accepted and not withdrawn."""
    models = task.submissions.filter(state=Submission.State.DONE, withdrawn_at=None)
    return models.select_related("target", "task")


def is_remote(submission: Submission) -> bool:
    """Return whether the model runs elsewhere, so that examples leave this installation."""
    if submission.target:  # a target without a URL runs on our model server
        return bool(submission.target.url)
    return KINDS[submission.kind].is_remote


def is_served_here(submission: Submission) -> bool:
    """Return whether the submission is a chat model that our model server runs."""
    target = submission.target
    return target is not None and target.adapter == "openai_chat" and not target.url


def find_base(task: Task, owner: User | None, pk: UUID) -> Submission | None:
    """Return the language model with this id if the owner may submit an adapter for it, or None."""
    is_usable = Q(is_published=True) | Q(owner=owner, owner__isnull=False)
    writing_kinds = list_kind_names(lambda kind: kind.writes_here)
    whole_models = find_accepted_models(task).filter(
        is_usable, kind__in=writing_kinds, base="", emptied_at=None
    )
    return whole_models.filter(pk=pk).first()


def filter_counting_runs(runs: QuerySet[EvaluationRun]) -> QuerySet[EvaluationRun]:
    """Filter runs to those that count: of each repeated evaluation, the first that succeeded.

    Counting a later run would reward luck.
    """
    earlier_runs = EvaluationRun.objects.filter(
        submission=OuterRef("submission"),
        version=OuterRef("version"),
        suite=OuterRef("suite"),
        number__lt=OuterRef("number"),
        outcome=Outcome.OK,
    )
    return runs.filter(~Exists(earlier_runs), outcome=Outcome.OK)


def compute_cost_cents(cpu_seconds: float | None) -> float | None:
    """Return the cost of processor time in cents.

    None if the site has no price, or if the time is unknown.
    """
    price_cents: int = settings.EVALUATION_CPU_HOUR_CENTS
    if not price_cents or cpu_seconds is None:
        return None
    return price_cents * cpu_seconds / 3600
