"""Notices about tasks, and when each person was last told of theirs."""

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
    """A notice for a task's owners, open from when its cause was noticed until it is over."""

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="notices")
    # A new kind needs no migration: the choices are read when they are needed.
    kind = models.CharField(max_length=MAX_NAME_CHARS, choices=notice_choices)
    round = models.PositiveIntegerField(default=0, help_text="Its number; 0: about the task.")
    numbers = models.JSONField(
        default=dict, help_text="What its sentence says; no names, no texts."
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
    """The time of a person's last digest email, and the kinds of items that they switched off."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    # Of the last digest; null: none was sent yet.
    told_at = models.DateTimeField(null=True)
    is_off = models.BooleanField(default=False)
    seen_at = models.DateTimeField(null=True, help_text="When they last looked at their news.")
    # Kinds, with spaces between them.
    off = models.CharField(
        max_length=MAX_SWITCH_CHARS,
        blank=True,
        default="",
        db_default="",
        help_text="Kinds that are not told.",
    )

    def __str__(self) -> str:
        return f"digest {self.pk}"

    @property
    def wanted(self) -> list[str]:
        """Return the kinds of items that the person wants in the email."""
        if self.is_off:
            return []
        unwanted = self.off.split()
        return [kind for kind in list_switches() if kind not in unwanted]
