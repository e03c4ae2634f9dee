"""Feedback to judges about their work, which reveals nobody's single vote."""

from dataclasses import dataclass

from django import template
from django.utils import timezone

from core.accounts.models import User
from core.accounts.services import get_annotator
from core.days import get_midnight
from tasks.models import Task
from validation.judging.queue import UNDO_TIME
from validation.models import Consensus, Validation
from validation.rewards.scores import MIN_JUDGEMENTS, compute_agreement_by_task

register = template.Library()
EACH_JUDGEMENTS = 10
"""The number of judgements in a day after which the agreement is shown again."""


@dataclass(frozen=True)
class DecidedToday:
    """The numbers of examples decided today.

    own: those with a vote of the person; None if the number could reveal others' votes.
    """

    total: int
    own: int | None


@register.simple_tag
def find_agreement_to_show(user: User, task: Task, judged_count: int) -> float | None:
    """Return the share of matching judgements of the person, after every tenth judgement of a day.

    None at other times, in sensitive tasks, and while too few of the judgements are decided. Two
    queries at a tenth judgement.
    """
    if not judged_count or judged_count % EACH_JUDGEMENTS or task.is_sensitive:
        return None
    agreement = compute_agreement_by_task(get_annotator(user)).get(task.pk)
    return agreement.agreement.value if agreement else None


@register.simple_tag
def decided_today(user: User, task: Task) -> DecidedToday | None:
    """Return how many examples of the task were decided by votes today. Two queries.

    Only decisions whose votes can no longer be undone count. None if there are fewer than
    MIN_JUDGEMENTS, or if the task is sensitive.
    """
    if task.is_sensitive:
        return None
    # Owners' decisions are not votes. A decision counts once no vote before it can change.
    # Otherwise a person could try both answers and infer others' from the number.
    final_before = timezone.now() - UNDO_TIME
    decided = Consensus.objects.filter(
        round__task=task,
        state=Consensus.State.DECIDED,
        decided_by=Consensus.DecidedBy.VOTES,
        decided_at__gte=get_midnight(),
        decided_at__lt=final_before,
        example__retracted_at=None,
    )
    total = decided.count()
    if total < MIN_JUDGEMENTS:
        return None
    # Only votes that can no longer be undone, and only in large numbers: a few would
    # reveal how others voted on an example, as with the agreement.
    final_votes = Validation.objects.filter(
        validator=get_annotator(user),
        example__round__task=task,
        created_at__gte=get_midnight(),
        created_at__lt=final_before,
    )
    own_ids = list(final_votes.values_list("example", flat=True))
    if len(own_ids) < MIN_JUDGEMENTS:
        return DecidedToday(total, None)
    return DecidedToday(total, decided.filter(example__in=own_ids).count())
