"""The quota that counts: a person's or team's own, or else the task's, or else the site's."""

from django.conf import settings
from django.db.models import F, Q

from core.accounts.models import User
from evaluation.models import Allowance, Team
from tasks.models import Task


def max_models_a_day(task: Task, submitter: User | Team) -> int:
    """Return the maximum number of accepted models from a person or team to a task in 24 hours.

    One query.
    """
    own_allowance = Q(user=submitter)
    if isinstance(submitter, Team):
        own_allowance = Q(team=submitter)
    allowances = Allowance.objects.filter(own_allowance | Q(task=task), models_a_day__isnull=False)
    # An own allowance has no task, and so comes first.
    ordered = allowances.order_by(F("task").desc(nulls_first=True))
    max_models = ordered.values_list("models_a_day", flat=True).first()
    if max_models is None:
        return settings.SUBMISSIONS_PER_DAY
    return max_models


def gib_of(owner: User) -> int | None:
    """Return a person's own storage quota in GiB; None if the site's quota applies."""
    return Allowance.objects.filter(user=owner).values_list("gib", flat=True).first()
