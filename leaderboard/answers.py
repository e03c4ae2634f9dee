"""The leaderboard's answers to what tasks ask (`tasks.questions`)."""

from django.db.models import Q

from tasks import questions


@questions.build_contestants_condition.answer
def build_contestants_condition() -> Q:
    """Return the condition that an arena has contestants."""
    return Q(contestants__isnull=False)
