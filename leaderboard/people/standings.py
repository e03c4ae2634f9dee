"""The people who may be in the ranking, and the counts of those who chose to appear."""

from collections.abc import Collection

from django.db.models import Count, Q

from annotation.models import Example
from core.accounts.models import Annotator
from leaderboard.people.ranking import Standing
from tasks.models import Task


def may_use_rankings(annotator: Annotator) -> bool:
    """Return whether the person may use rankings, goals and badges: not if a panel pays them."""
    return annotator.source == Annotator.Source.SITE


def list_standings(tasks: Collection[Task]) -> list[Standing]:
    """Return the people who chose to appear and have tried to fool a model in the tasks. One query.

    Retracted tries count: otherwise withdrawing failed tries would raise the rate.
    """
    tries = Example.objects.filter(
        round__task__in=tasks,
        by_program=False,
        annotator__in_ranking=True,
        # People who are paid by a panel work under other conditions.
        annotator__source=Annotator.Source.SITE,
        outcome__in=[
            Example.Outcome.FOOLED,
            Example.Outcome.NOT_FOOLED,
            Example.Outcome.UNDECIDED,
        ],
    )
    counts = tries.values_list("annotator__pseudonym").annotate(
        tries=Count("pk"),
        fooled=Count("pk", filter=Q(consensus__is_validated_error=True, retracted_at__isnull=True)),
    )
    return [Standing(*row) for row in counts.order_by()]
