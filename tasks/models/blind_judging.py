"""Owners who judge their own task blind."""

from django.db import models
from django.db.models.functions import Now


class BlindJudging(models.Model):
    """A period in which an owner judges and sees no labels or votes of the task.

    Rows are kept, so that a release can say when owners were judges.
    """

    task = models.ForeignKey("tasks.Task", models.CASCADE, related_name="blind_judgings")
    annotator = models.ForeignKey("accounts.Annotator", models.CASCADE, related_name="+")
    began_at = models.DateTimeField(db_default=Now())
    noted_at = models.DateTimeField(
        null=True, help_text="What they could read before was noted by then; they judge from now."
    )
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            # An owner has at most one open time, so that of two tabs that begin one, one gets the
            # other's.
            models.UniqueConstraint(
                fields=["task", "annotator"],
                condition=models.Q(ended_at=None),
                name="blind_once_at_a_time",
            )
        ]

    def __str__(self) -> str:
        return f"{self.annotator} in {self.task}"
