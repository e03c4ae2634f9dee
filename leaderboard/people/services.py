"""Writes of weekly goals."""

from django.utils import timezone

from core.accounts.models import Annotator
from leaderboard.models import WeeklyGoal
from leaderboard.people.goals import monday


def set_weekly_goal(*, annotator: Annotator, amount: int) -> WeeklyGoal:
    """Set how much the annotator wants to do from this week on; 0 pauses. The last save wins."""
    week = monday(timezone.now().date())
    return WeeklyGoal.objects.update_or_create(
        annotator=annotator, week=week, defaults={"amount": amount}
    )[0]


def forget_goals(*, annotator: Annotator) -> None:
    """Remove the weekly goals of somebody who has left; no lock."""
    WeeklyGoal.objects.filter(annotator=annotator).delete()
