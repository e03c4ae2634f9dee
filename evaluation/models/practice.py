"""Submitted models that answer people who practise."""

import uuid

from django.db import models
from django.db.models import Q

from evaluation.models.jobs import UNFINISHED_STATES, Job
from evaluation.models.submissions import Submission

UNDER_WAY_CONDITION = Q(state__in=UNFINISHED_STATES)


class PracticeRun(Job):
    """A submitted model that stays in the sandbox while people practise with it.

    What they write is not kept: a question is stored only until its answer has been read.
    """

    function = "evaluation.jobs.serve_practice"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    submission = models.ForeignKey(
        Submission, on_delete=models.CASCADE, related_name="practice_runs"
    )
    slot = models.PositiveSmallIntegerField()  # one of the site's slots
    deadline_at = models.DateTimeField()
    ready_at = models.DateTimeField(null=True)  # since when it accepts questions
    asked_at = models.DateTimeField(null=True)  # when the last question was asked
    question_id = models.UUIDField(null=True)  # the question that is being answered
    question = models.TextField(blank=True)
    answer = models.TextField(blank=True)

    class Meta(Job.Meta):
        ordering = ["-queued_at"]
        constraints = [
            *Job.Meta.constraints,
            # People may start one model at once, and models compete for the site's few slots.
            models.UniqueConstraint(
                fields=["submission"], condition=UNDER_WAY_CONDITION, name="practice_one_run"
            ),
            models.UniqueConstraint(
                fields=["slot"], condition=UNDER_WAY_CONDITION, name="practice_one_slot"
            ),
        ]

    def __str__(self) -> str:
        return f"practice with {self.submission}"

    @property
    def is_ready(self) -> bool:
        """Whether the model answers. It does not while it is being restarted."""
        return self.state == self.State.RUNNING and self.ready_at is not None


class PracticeHost(models.Model):
    """A machine with a container engine and a process that waits for practice runs."""

    name = models.CharField(max_length=255, unique=True)
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
