"""Requests to open a task to non-members, about which administrators decide."""

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_noop

validate_code = RegexValidator(
    r"^[a-z0-9]+(-[a-z0-9]+)*$", "Use lower-case letters, digits and single hyphens."
)


class TaskProposal(models.Model):
    """A request to approve a task: its purpose, its participants, and the decision.

    A request from an earlier release, when tasks did not begin as private, has no task until it is
    approved.
    """

    class Kind(models.TextChoices):
        TEMPLATE = "template"
        TASK = "task"

    class State(models.TextChoices):
        WAITING = gettext_noop("waiting")
        APPROVED = gettext_noop("approved")
        DECLINED = gettext_noop("declined")
        WITHDRAWN = gettext_noop("withdrawn")

    proposer = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="task_proposals"
    )
    kind = models.CharField(max_length=10, choices=Kind, blank=True)
    source = models.CharField(
        max_length=40, blank=True, help_text="Code of the template or the task; empty: neither."
    )
    name = models.CharField(max_length=100)
    wanted_code = models.CharField(max_length=40, validators=[validate_code])
    config_text = models.TextField(
        blank=True, default="", db_default="", help_text="Empty: the source's."
    )
    goal = models.TextField(help_text="What the task is for.")
    people = models.TextField(help_text="Who writes and judges.")
    show = models.BooleanField(
        default=True, db_default=True, help_text="Once it is approved everybody sees the task."
    )
    # Administrators list what is waiting, which is little among all that was decided.
    state = models.CharField(max_length=10, choices=State, default=State.WAITING, db_index=True)
    reason = models.TextField(blank=True, help_text="The proposer reads it.")
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    decided_at = models.DateTimeField(null=True)
    # One request for each task: it is asked again in the same row.
    task = models.OneToOneField("tasks.Task", models.SET_NULL, null=True, related_name="proposal")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"proposal {self.pk}"
