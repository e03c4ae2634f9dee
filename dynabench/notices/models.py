"""Notices about tasks, and each person's settings and times of emails."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from dynabench.notices.registry import (
    MAX_NAME_CHARS,
    MAX_SWITCH_CHARS,
    list_switches,
    notice_choices,
)
from tasks.models import Task


class Notice(models.Model):
    """A notice for a task's owners.

    It is open from when its cause is noticed until the cause ends.
    """

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="notices")
    # A new kind needs no migration: the choices are read when they are needed.
    kind = models.CharField(max_length=MAX_NAME_CHARS, choices=notice_choices)
    round = models.PositiveIntegerField(
        default=0, help_text=("Round number. 0: a notice about the task.")
    )
    numbers = models.JSONField(
        default=dict, help_text="Numbers in its sentence, without names and texts."
    )
    began_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [
            # Of two workers that notice the same at once, one opens the notice.
            models.UniqueConstraint(
                fields=["task", "kind", "round"],
                condition=Q(ended_at__isnull=True),
                name="notice_one_open",
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} in {self.task}"


class Digest(models.Model):
    """A person's settings for emails, and when they last got and read their news."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    # Of the last digest; null: none was sent yet.
    told_at = models.DateTimeField(null=True)
    is_off = models.BooleanField(default=False)
    seen_at = models.DateTimeField(null=True, help_text="When the person last read their news.")
    # Of the last catch whose confirmation a page told; null: none was told yet.
    caught_at = models.DateTimeField(null=True)
    # Nobody gets it unasked.
    is_weekly = models.BooleanField(
        default=False, db_default=False, help_text="They want a summary on Mondays."
    )
    weekly_at = models.DateTimeField(null=True, help_text="Of the last summary.")
    # Kinds, with spaces between them.
    off = models.CharField(
        max_length=MAX_SWITCH_CHARS,
        blank=True,
        default="",
        db_default="",
        help_text="Kinds that are turned off.",
    )

    def __str__(self) -> str:
        return f"digest {self.pk}"

    @property
    def wanted_kinds(self) -> list[str]:
        """Return the kinds of items that the person wants in the digest; none if it is off."""
        if self.is_off:
            return []
        unwanted = self.off.split()
        return [kind for kind in list_switches() if kind not in unwanted]
