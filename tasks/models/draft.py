"""Configurations that somebody is still putting together, step by step."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from tasks.models.proposal import TaskProposal, validate_code


class TaskDraft(models.Model):
    """A configuration in progress, for a new or an existing task. Its text may be invalid."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="task_drafts")
    name = models.CharField(max_length=100, blank=True, help_text="As its text says.")
    text = models.TextField()
    kind = models.CharField(max_length=10, choices=TaskProposal.Kind, blank=True)
    source = models.CharField(max_length=40, blank=True, help_text="What it began as, if anything.")
    code = models.CharField(max_length=40, validators=[validate_code], blank=True)
    task = models.ForeignKey("tasks.Task", models.CASCADE, null=True, related_name="drafts")
    base = models.CharField(
        max_length=32, blank=True, help_text="Digest of the task's text that it began as."
    )
    created_at = models.DateTimeField(db_default=Now())
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["-changed_at"]
        # A person has one draft of a task's next configuration, which `begin_change` relies on
        # instead of a lock. Drafts of new tasks have no task, and NULLs are never equal.
        constraints = [models.UniqueConstraint(fields=["owner", "task"], name="draft_one_a_task")]

    def __str__(self) -> str:
        return f"draft {self.pk}"
