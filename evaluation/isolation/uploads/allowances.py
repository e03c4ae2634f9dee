"""Find the quota that applies: a person's or team's own, otherwise the task's or the site's."""

from django.conf import settings
from django.db.models import F, Q

from core.accounts.models import User
from evaluation.models import Allowance, Team
from tasks.models import Task


def get_max_models_per_day(task: Task, submitter: User | Team) -> int:
    """Return the maximum number of accepted models from a person or team to a task in 24 hours.

    One query.
    """
    is_own = Q(user=submitter)
    if isinstance(submitter, Team):
        is_own = Q(team=submitter)
    allowances = Allowance.objects.filter(is_own | Q(task=task), models_a_day__isnull=False)
    # A person's own allowance has no task, and so comes first.
    ordered_allowances = allowances.order_by(F("task").desc(nulls_first=True))
    max_models = ordered_allowances.values_list("models_a_day", flat=True).first()
    if max_models is None:
        return settings.SUBMISSIONS_PER_DAY
    return max_models


def get_own_quota_gib(owner: User) -> int | None:
    """Return a person's own storage quota in GiB; None if the site's quota applies."""
    return Allowance.objects.filter(user=owner).values_list("gib", flat=True).first()
