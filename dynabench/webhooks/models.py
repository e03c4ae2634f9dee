"""Webhooks: URLs of people's programs, and the events sent to each."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from evaluation.models import Submission
from tasks.models import Task


class Webhook(models.Model):
    """A URL to which events are sent, if its owner may know them."""

    class Event(models.TextChoices):
        ROUND_CLOSED = "round.closed", _("A round closed")
        ROUND_RELEASED = "round.released", _("A round's data was released")
        SUBMISSION_FINISHED = "submission.finished", _("A model was checked and evaluated")
        NOTICE_BEGAN = "notice.began", _("One of my tasks needs attention")
        SNAPSHOT_MADE = "snapshot.made", _("A leaderboard snapshot was taken")

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="webhooks"
    )
    task = models.ForeignKey(Task, on_delete=models.CASCADE, null=True)  # null: all of them
    url = models.CharField(max_length=500)
    events = models.JSONField()
    secret = models.TextField()  # encrypted; signs what is sent
    created_at = models.DateTimeField(db_default=Now())
    on_since = models.DateTimeField(null=True)  # null: switched off; only later events are sent
    looked_to = models.DateTimeField(null=True)  # events until then were looked for
    failing_since = models.DateTimeField(null=True)  # nothing has arrived since

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"webhook {self.pk}"  # an address may hold a secret

    @property
    def event_titles(self) -> list[str]:
        """Return the events in words. Events of later versions keep their names."""
        # A copy restored from a later version may have events that this one lacks.
        titles = dict(self.Event.choices)
        return [str(titles.get(name, name)) for name in self.events]

    @property
    def is_on(self) -> bool:
        """Return whether the webhook is switched on."""
        return self.on_since is not None


class Delivery(models.Model):
    """The delivery of an event to a webhook.

    Only the module `delivery` changes its state, by conditional updates. Its id is the `webhook-id`
    of the Standard Webhooks specification and the same for each try.
    """

    class State(models.TextChoices):
        WAITING = "waiting"
        SENT = "sent"
        GIVEN_UP = "given_up"
        WITHHELD = "withheld"  # its person may not know of it any more

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    event = models.CharField(max_length=40)
    key = models.CharField(max_length=200)  # of the event, which a webhook gets once
    task = models.ForeignKey(Task, on_delete=models.CASCADE, null=True)
    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, null=True)
    data = models.JSONField()  # ids and links, and nothing else
    happened_at = models.DateTimeField()
    state = models.CharField(max_length=8, choices=State, default=State.WAITING)
    due_at = models.DateTimeField()  # the next try; while one is made, when its lease ends
    lease_token = models.UUIDField(null=True)
    tries = models.PositiveSmallIntegerField(default=0)
    status = models.PositiveSmallIntegerField(null=True)  # of the last answer
    error = models.CharField(max_length=500, blank=True)  # why the last try failed
    created_at = models.DateTimeField(db_default=Now())
    tried_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "deliveries"
        ordering = ["-created_at", "-id"]
        constraints = [
            # Of several workers that find the same event, one stores it.
            models.UniqueConstraint(fields=["webhook", "key"], name="delivery_once"),
        ]
        indexes = [
            # What is due, each minute.
            models.Index(fields=["state", "due_at"], name="delivery_due"),
            # What is old enough to be deleted.
            models.Index(fields=["created_at"], name="delivery_age"),
        ]

    def __str__(self) -> str:
        return f"{self.event} for {self.webhook}"
