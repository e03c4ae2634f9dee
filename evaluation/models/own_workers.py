"""Permissions to evaluate models on people's own machines, and the answers from there."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from evaluation.models.evaluation_sets import EvaluationSet
from evaluation.models.runs import EvaluationRun
from evaluation.models.submissions import Submission, Upload
from tasks.models import Task


class SecondOpinion(models.TextChoices):
    """The party that answers a random tenth of a run again, after a machine answered all of it."""

    NOBODY = "nobody", _("No one")
    SITE = "site", _("This site")
    WORKER = "worker", _("Another runner with a different token")


class OwnWorker(models.Model):
    """A person's permission to evaluate their and their teams' models on their own machines.

    It applies to a task: to all these models on every set with downloadable inputs, or to only one
    model, or to only one set. takes_sealed: whether the owner agreed that inputs of sealed sets go
    there. heard_at: when one of the person's machines last requested a run or renewed its lease.
    """

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="own_workers")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="own_workers"
    )
    submission = models.ForeignKey(
        Submission, on_delete=models.CASCADE, null=True, related_name="own_workers"
    )
    evaluation_set = models.ForeignKey(
        EvaluationSet, on_delete=models.CASCADE, null=True, related_name="own_workers"
    )
    takes_sealed = models.BooleanField(default=False, db_default=False)
    second = models.CharField(
        max_length=6,
        choices=SecondOpinion,
        default=SecondOpinion.SITE,
        db_default=SecondOpinion.SITE,
    )
    made_at = models.DateTimeField(db_default=Now())
    heard_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.CheckConstraint(
                condition=Q(submission=None) | Q(evaluation_set=None), name="own_worker_one_queue"
            ),
            # Each right once. NULLs are distinct in the next two, so this one has a condition.
            models.UniqueConstraint(
                fields=["task", "user"],
                condition=Q(submission=None, evaluation_set=None),
                name="own_worker_once",
            ),
            models.UniqueConstraint(fields=["submission", "user"], name="own_worker_model_once"),
            models.UniqueConstraint(fields=["evaluation_set", "user"], name="own_worker_set_once"),
        ]

    def __str__(self) -> str:
        return f"own worker {self.pk} of {self.task.code}"


class HandedAnswers(models.Model):
    """The answers to a run from a person's own machine. The row remains after they are scored.

    lease_token: the lease of the attempt, from which the examples' ids are computed. token: the
    start of the API key. ending: the fields of `evaluation.contract.Ending`. upload: the lines of
    answers, deleted after scoring. is_second: whether these answer only a random tenth, after
    another machine answered all. Of the `compared` answers in that tenth, `differed` differ
    between the machines.
    """

    run = models.ForeignKey(EvaluationRun, on_delete=models.CASCADE, related_name="handed")
    is_second = models.BooleanField(default=False, db_default=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    token = models.CharField(max_length=12, blank=True, default="", db_default="")
    lease_token = models.UUIDField()
    runner = models.CharField(max_length=20)
    ending = models.JSONField()
    upload = models.OneToOneField(Upload, on_delete=models.CASCADE, null=True, related_name="+")
    second = models.CharField(max_length=6, choices=SecondOpinion, db_default=SecondOpinion.SITE)
    compared = models.PositiveIntegerField(null=True)
    differed = models.PositiveIntegerField(null=True)
    handed_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            # If a machine sends its answers twice because it missed the response, the second one
            # is refused.
            models.UniqueConstraint(fields=["run", "is_second"], name="handed_once"),
        ]

    def __str__(self) -> str:
        return f"answers to {self.run_id}"
