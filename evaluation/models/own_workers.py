"""Machines of others that evaluate their own models, and what they handed in."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from evaluation.models.runs import EvaluationRun
from evaluation.models.submissions import Upload
from tasks.models import Task


class OwnWorker(models.Model):
    """A person who may evaluate their own and their teams' models of a task on their own machines.

    needs_second: of each run the site answers a random tenth too, and both must agree.
    """

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="own_workers")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="own_workers"
    )
    needs_second = models.BooleanField(default=True)
    made_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["task", "user"], name="own_worker_once")]

    def __str__(self) -> str:
        return f"own worker {self.pk} of {self.task.code}"


class HandedAnswers(models.Model):
    """What such a machine answered to a run, which the queue scores.

    lease_token: of the attempt, from which the examples' ids follow. ending: the fields of
    `evaluation.contract.Ending`. upload: lines of answers; thrown away when they are scored.
    """

    run = models.OneToOneField(EvaluationRun, on_delete=models.CASCADE, related_name="handed")
    lease_token = models.UUIDField()
    runner = models.CharField(max_length=20)
    ending = models.JSONField()
    upload = models.OneToOneField(Upload, on_delete=models.CASCADE, related_name="+")
    needs_second = models.BooleanField()
    handed_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"answers to {self.run_id}"
