"""The base class of all work for queue workers."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_noop

from tasks.models import TargetModel


class Job(models.Model):
    """Work for a queue worker. This row holds the state; the queue's message only wakes a worker.

    Only `evaluation.isolation.queue` changes the state; `lifecycle` there says how. Lost means that
    the end is unknown, which is not a failure.
    """

    function: ClassVar[str]
    """The dotted name of the function that a worker calls with the row's id."""

    class State(models.TextChoices):
        QUEUED = gettext_noop("queued")
        RUNNING = gettext_noop("running")
        DONE = gettext_noop("done")
        FAILED = gettext_noop("failed")
        # Translators: a worker stopped before the job ended
        LOST = gettext_noop("lost")
        CANCELLED = gettext_noop("cancelled")

    state = models.CharField(max_length=9, choices=State, default=State.QUEUED)
    attempts = models.PositiveSmallIntegerField(default=0)
    lease_token = models.UUIDField(null=True, editable=False)
    lease_until = models.DateTimeField(null=True, editable=False)
    not_before = models.DateTimeField(null=True, editable=False)  # a queued job waits until then
    # Since when a third party's server that the job needs has been down; null: it is up.
    away_since = models.DateTimeField(null=True, editable=False)
    progress = models.FloatField(default=0)  # 0-1
    message = models.CharField(max_length=200, blank=True)  # what it is doing now
    error = models.TextField(blank=True)  # why it failed, for the person who requested it
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    queued_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        abstract = True
        constraints = [
            # A running job without a lease could never be found as lost.
            models.CheckConstraint(
                condition=Q(state="running", lease_token__isnull=False) | ~Q(state="running"),
                name="%(class)s_running_has_lease",
            )
        ]
        # The sweep looks for running jobs with an expired lease, and for queued ones.
        indexes = [models.Index(fields=["state", "lease_until"], name="%(class)s_state")]

    @classmethod
    def build_ready_condition(cls) -> Q:
        """Return the condition for queued jobs that need not wait for another one."""
        return Q()

    @property
    def is_over(self) -> bool:
        """Whether the job has ended. It then stays unchanged unless somebody requests it again."""
        return self.state not in UNFINISHED_STATES


class ChatJob(Job):
    """A job that asks one of a task's chat models with a prompt of its own.

    Neither the model nor the prompt changes while the job lasts.
    """

    target = models.ForeignKey(TargetModel, on_delete=models.CASCADE, related_name="+")
    prompt = models.TextField()
    asked_with = models.JSONField()  # the target's URL and options when the job was created
    fingerprint = models.JSONField(default=dict)  # the model's fingerprint from its first answer

    class Meta(Job.Meta):
        abstract = True


UNFINISHED_STATES = (Job.State.QUEUED, Job.State.RUNNING)
"""The states of jobs that wait for a worker or have one."""
