"""Which quota counts: a person's or team's own, else the task's, else the site's."""

from django.conf import settings
from django.db.models import F, Q

from core.accounts.models import User
from evaluation.models import Allowance, Team
from tasks.models import Task


def most_a_day(task: Task, whose: User | Team) -> int:
    """Return how many accepted models a person or team may submit to a task in 24 hours.

    One query.
    """
    theirs = Q(team=whose) if isinstance(whose, Team) else Q(user=whose)
    given = Allowance.objects.filter(theirs | Q(task=task), models_a_day__isnull=False)
    # Theirs first, which has no task.
    found = (
        given.order_by(F("task").desc(nulls_first=True))
        .values_list("models_a_day", flat=True)
        .first()
    )
    return settings.SUBMISSIONS_PER_DAY if found is None else found


def gib_of(owner: User) -> int | None:
    """Return a person's own quota in GiB, in place of the site's; None if there is none."""
    given = Allowance.objects.filter(user=owner).values_list("gib", flat=True)
    return given.first()
