"""Invitations to join a task."""

from django.db import models
from django.db.models.functions import Now
from django.utils import timezone


class Invitation(models.Model):
    """A link that makes people members of a task. Only a digest of its key is stored."""

    task = models.ForeignKey("tasks.Task", on_delete=models.CASCADE, related_name="invitations")
    role = models.CharField(max_length=10)
    address = models.EmailField(blank=True, help_text="It was mailed to; empty: a link for many.")
    digest = models.CharField(max_length=64, unique=True)
    # `accept_invitation` looks a link up by the digest of its key, which is unique.
    most = models.PositiveIntegerField(default=1, help_text="So many people may accept it.")
    uses = models.PositiveIntegerField(default=0)
    made_at = models.DateTimeField(db_default=Now())
    ends_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.role} of {self.task}"

    @property
    def state(self) -> str:
        """Return the state: open, used, revoked or ended."""
        # In this order: a link that was used up stays "used", whatever happened to it later.
        if self.uses >= self.most:
            return "used"
        if self.revoked_at:
            return "revoked"
        if self.ends_at > timezone.now():
            return "open"
        return "ended"


class NoInvitations(models.Model):
    """An address that refuses invitations, stored only as a keyed digest."""

    digest = models.CharField(max_length=64, unique=True)
    made_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"no invitations {self.pk}"
