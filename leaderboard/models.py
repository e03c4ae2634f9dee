"""Stage 5: rankings, and what people set themselves to do."""

from django.db import models

from dynabench.accounts.models import Annotator


class WeeklyGoal(models.Model):
    """What a person wants to do in a week, from that week on, until the next row; 0 is a pause."""

    annotator = models.ForeignKey(Annotator, on_delete=models.CASCADE, related_name="weekly_goals")
    week = models.DateField(help_text="The Monday it begins on, by UTC.")
    amount = models.PositiveSmallIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["annotator", "week"], name="goal_once_a_week")
        ]

    def __str__(self) -> str:
        return f"{self.annotator}: {self.amount} from {self.week}"
