"""Notices about tasks, and when each person was last told of theirs."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from tasks.models import Task


class Notice(models.Model):
    """Something that a task's owners should know, from when it was noticed until it is over."""

    class Kind(models.TextChoices):
        CONTEXTS = "contexts", _("contexts run out")
        JUDGING = "judging", _("judging lags")
        BUDGET = "budget", _("a budget nears its end")
        END = "end", _("a round ends soon")
        TARGET = "target", _("a target fails")
        REPORTS = "reports", _("reports wait")
        MODELS = "models", _("models were submitted")
        STUDIES = "studies", _("a study runs out of work")
        READING = "reading", _("judges answer faster than they can read")

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="notices")
    kind = models.CharField(max_length=10, choices=Kind)
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


TOLD_APART = (Notice.Kind.TARGET, Notice.Kind.REPORTS)
"""These have mails (`tasks.targets.failures`, `annotation.mails`) and lines of their own."""


class About(models.TextChoices):
    """The kinds of news in a digest; each can be switched off."""

    TASKS = "tasks", _("what your tasks and assignments need")
    INVITED = "invited", _("you are invited to a study")
    CONSENT = "consent", _("a study asks for your consent again")
    INVALID = "invalid", _("people did not agree with an example of yours")
    SENT_BACK = "sent-back", _("an example of yours was sent back")
    CLOSING = "closing", _("a round in which you write closes tomorrow")
    PAID = "paid", _("you were paid")
    APPEAL = "appeal", _("an appeal of yours was answered")


class Digest(models.Model):
    """The time of a person's last digest, and the kinds that they do not want."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    # Of the last digest; null: none was sent yet.
    told_at = models.DateTimeField(null=True)
    is_off = models.BooleanField(default=False)
    seen_at = models.DateTimeField(null=True, help_text="When they last looked at their news.")
    # Kinds, with spaces between them.
    off = models.CharField(
        max_length=80, blank=True, default="", db_default="", help_text="Kinds that are not told."
    )

    def __str__(self) -> str:
        return f"digest {self.pk}"

    @property
    def wanted(self) -> list[str]:
        """Return the kinds that the person wants to be told."""
        if self.is_off:
            return []
        unwanted = self.off.split()
        return [kind for kind in About.values if kind not in unwanted]
