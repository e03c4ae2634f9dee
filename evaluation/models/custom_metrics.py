"""Metrics that a task's owners write as Python files, and their results for each run."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_noop

from evaluation.models.jobs import Job
from evaluation.models.runs import EvaluationRun
from tasks.models import Task


class CustomMetric(Job):
    """A version of a metric's file. It never changes, except for the decision about it.

    As a job it is tried out before the decision, and scores stored answers after it.
    """

    function = "evaluation.jobs.run_custom_metric"

    class Review(models.TextChoices):
        PROPOSED = gettext_noop("proposed")
        APPROVED = gettext_noop("approved")
        REFUSED = gettext_noop("refused")
        RETIRED = gettext_noop("retired")  # another version replaced it, or its owner retired it

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="custom_metrics")
    name = models.CharField(max_length=40)
    number = models.PositiveIntegerField()  # its version
    about = models.CharField(max_length=200)  # what it measures, in a sentence
    higher_is_better = models.BooleanField(default=True)
    source = models.TextField()
    digest = models.CharField(max_length=64)  # SHA-256 of the source
    review = models.CharField(max_length=8, choices=Review, default=Review.PROPOSED)
    reason = models.TextField(blank=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    decided_at = models.DateTimeField(null=True)
    trial = models.JSONField(default=dict)  # of `scoring_services.Trial`; empty: not tried yet

    class Meta(Job.Meta):
        ordering = ["name", "-number"]
        constraints = [
            *Job.Meta.constraints,
            # If two people propose a version at once, they get two numbers, or one is refused.
            models.UniqueConstraint(fields=["task", "name", "number"], name="metric_one_number"),
            # Boards show one version, so the second of two simultaneous approvals fails.
            models.UniqueConstraint(
                fields=["task", "name"], condition=Q(review="approved"), name="metric_one_approved"
            ),
        ]

    def __str__(self) -> str:
        return f"metric {self.name} v{self.number} of {self.task.code}"

    @property
    def column(self) -> str:
        """The metric's name in configurations and on boards, the same for all versions."""
        return f"custom:{self.name}"

    @property
    def key(self) -> str:
        """The metric name of this version's scores."""
        return f"{self.column}:{self.number}"


class CustomOutcome(models.Model):
    """The result of a custom metric for a run: a number for each answer, or the reason for none."""

    metric = models.ForeignKey(
        CustomMetric, on_delete=models.CASCADE, related_name="outcomes", db_index=False
    )
    run = models.ForeignKey(EvaluationRun, on_delete=models.CASCADE, related_name="custom_outcomes")
    failure = models.CharField(max_length=20, blank=True)  # of `running.FAILURE_MESSAGES`
    line = models.PositiveIntegerField(null=True)  # the line of the file where it failed
    seconds = models.FloatField(null=True)
    values = models.BinaryField()  # float32, little-endian, in the order of the set
    scored_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            # If two workers score a run at once, the first one's numbers stay. Also used by the
            # search for runs that a metric lacks, so `metric` needs no index of its own.
            models.UniqueConstraint(fields=["metric", "run"], name="custom_outcome_once")
        ]

    def __str__(self) -> str:
        return f"{self.run_id} by {self.metric}"
