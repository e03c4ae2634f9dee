"""The versions of a task's configuration."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class ConfigVersion(models.Model):
    """A version of a task's configuration. Rows never change.

    The first version is stored together with the second, so a task whose configuration never
    changed has none.
    """

    task = models.ForeignKey("Task", models.CASCADE, related_name="config_versions")
    number = models.PositiveIntegerField(help_text="From 1; `Task.config_number` is in force.")
    text = models.TextField()
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["-number"]
        constraints = [
            # Versions are read by task and number, and two writers can never give one number twice.
            models.UniqueConstraint(fields=["task", "number"], name="configversion_one_number")
        ]

    def __str__(self) -> str:
        return f"configuration {self.number} of {self.task}"
