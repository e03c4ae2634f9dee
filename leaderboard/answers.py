"""The leaderboard's answers to what tasks ask (`tasks.questions`)."""

from django.db.models import Q

from tasks import questions


@questions.have_contestants.answer
def have_contestants() -> Q:
    """Return the condition that an arena has contestants."""
    return Q(contestants__isnull=False)
