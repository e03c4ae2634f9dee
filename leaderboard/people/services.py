"""Writes of weekly goals."""

from django.utils import timezone

from core.accounts.models import Annotator
from leaderboard.models import WeeklyGoal
from leaderboard.people.goals import find_monday


def set_weekly_goal(*, annotator: Annotator, amount: int) -> WeeklyGoal:
    """Set the annotator's weekly goal from this week on; 0 pauses it. The last save wins."""
    week = find_monday(timezone.now().date())
    return WeeklyGoal.objects.update_or_create(
        annotator=annotator, week=week, defaults={"amount": amount}
    )[0]


def delete_goals(*, annotator: Annotator) -> None:
    """Delete the weekly goals of a person who has left. Takes no lock."""
    WeeklyGoal.objects.filter(annotator=annotator).delete()
