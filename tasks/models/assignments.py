"""Assignments, the work that owners request from people. The table is called Duty."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _


class AssignmentQuerySet(models.QuerySet["Duty"]):
    def select_current(self) -> "AssignmentQuerySet":
        """Return the assignments that have not ended."""
        return self.filter(ended_at=None)


class Duty(models.Model):
    """An assignment to write or judge examples until a day, for one member or for everybody.

    It has either a number of examples per person, or a member's share of all judgements.
    """

    class Kind(models.TextChoices):
        # Translators: verb: what an assignment asks people to do
        WRITE = "write", _("write")
        # Translators: verb: what an assignment asks people to do
        JUDGE = "judge", _("judge")

    task = models.ForeignKey("tasks.Task", on_delete=models.CASCADE, related_name="duties")
    round = models.ForeignKey(
        "tasks.Round", on_delete=models.CASCADE, null=True, related_name="duties",
        help_text="Empty: all rounds.",
    )  # fmt: skip
    kind = models.CharField(max_length=5, choices=Kind)
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, related_name="duties",
        help_text="Empty: everybody.",
    )  # fmt: skip
    amount = models.PositiveIntegerField(null=True, help_text="So many of each person.")
    share = models.FloatField(null=True, help_text="Of the judgements, from 0 to 1.")
    overlap = models.PositiveSmallIntegerField(
        default=1, help_text="So many of those with a share judge the same example."
    )
    due_on = models.DateField(null=True, help_text="The last day (UTC).")
    set_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    set_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)

    objects = AssignmentQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "duties"
        ordering = ["-pk"]
        constraints = [
            models.CheckConstraint(
                # Either a number for each person, or a share of what is judged, which only a named
                # judge has.
                condition=Q(amount__gt=0, share=None)
                | Q(amount=None, share__gt=0, share__lte=1, kind="judge", person__isnull=False),
                name="duty_amount_or_share",
            ),
            # Shares are laid around a circle `overlap` times, so it is never 0.
            models.CheckConstraint(condition=Q(overlap__gt=0), name="duty_overlap"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} in {self.task}"
