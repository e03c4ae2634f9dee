"""Rulers: anchors that every model of a task answers, and what models would score on each set.

docs/statistics.md, "One ruler", has the method.
"""

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from evaluation.models.evaluation_sets import EvaluationSetVersion
from evaluation.models.jobs import Job
from evaluation.models.submissions import Submission
from tasks.models import Task


class Ruler(Job):
    """A version of a task's ruler: its anchors never change, and stay secret until it is retired.

    It is a job until its anchors are chosen.
    """

    function = "evaluation.jobs.choose_ruler"

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="rulers")
    version = models.PositiveIntegerField()
    anchor_count = models.PositiveIntegerField()
    seed = models.PositiveIntegerField(help_text="Draws half of the anchors.")
    # The models whose answers decided which items became anchors.
    teachers = models.ManyToManyField(Submission, related_name="+")
    retired_at = models.DateTimeField(null=True)
    retired_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )

    class Meta(Job.Meta):
        ordering = ["task", "-version"]
        constraints = [
            *Job.Meta.constraints,
            models.UniqueConstraint(fields=["task", "version"], name="ruler_one_version"),
            # Two owners who choose at once get one ruler.
            models.UniqueConstraint(
                fields=["task"], condition=Q(retired_at=None), name="ruler_one_serves"
            ),
        ]

    def __str__(self) -> str:
        return f"ruler v{self.version} of {self.task.code}"


class RulerAnchor(models.Model):
    """An item of a control or held-back set that every model answers."""

    ruler = models.ForeignKey(Ruler, on_delete=models.CASCADE, related_name="anchors")
    number = models.PositiveIntegerField(help_text="Its place among the anchors, from 0.")
    # Restricted: a release that is undone would delete anchors with the held-back set.
    version = models.ForeignKey(EvaluationSetVersion, on_delete=models.RESTRICT, related_name="+")
    uid = models.CharField(max_length=200)

    class Meta:
        ordering = ["ruler", "number"]
        constraints = [
            models.UniqueConstraint(fields=["ruler", "number"], name="ruler_anchor_once")
        ]

    def __str__(self) -> str:
        return f"{self.uid} of {self.ruler}"


class RulerLink(models.Model):
    """How the anchors predict scores on a version of a set, learned from models that ran both."""

    ruler = models.ForeignKey(Ruler, on_delete=models.CASCADE, related_name="links")
    version = models.ForeignKey(EvaluationSetVersion, on_delete=models.CASCADE, related_name="+")
    model_count = models.PositiveIntegerField()
    # Of `evaluation.scoring.ruler.packing`; null: these models are too few different ones.
    fit = models.BinaryField(null=True)
    half_width = models.FloatField(
        null=True, help_text="Half a 95 % interval (0-1) that is the same for all models."
    )
    value = models.FloatField(null=True, help_text="The mean (0-1) that all models would have.")
    item_error = models.FloatField(
        null=True, help_text="Standard error (0-1) of the models' mean that its items cause."
    )
    fitted_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["ruler", "pk"]
        constraints = [models.UniqueConstraint(fields=["ruler", "version"], name="ruler_link_once")]

    def __str__(self) -> str:
        return f"{self.version} on {self.ruler}"


class RulerStanding(models.Model):
    """A model on a ruler: its answers to the anchors, and its expected score over all linked sets.

    value, low, high: shares (0-1); null before a set is linked.
    """

    ruler = models.ForeignKey(Ruler, on_delete=models.CASCADE, related_name="standings")
    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="+")
    answers = models.BinaryField()  # a bit for each anchor, as `numpy.packbits` orders them
    value = models.FloatField(null=True)
    low = models.FloatField(null=True)
    high = models.FloatField(null=True)

    class Meta:
        ordering = ["ruler", F("value").desc(nulls_last=True), "pk"]
        constraints = [
            models.UniqueConstraint(fields=["ruler", "submission"], name="ruler_standing_once")
        ]

    def __str__(self) -> str:
        return f"{self.submission.name} on {self.ruler}"


class ExpectedScore(models.Model):
    """The share (0-1) of a set that a model is expected to have right, with its 95 % interval."""

    standing = models.ForeignKey(RulerStanding, on_delete=models.CASCADE, related_name="scores")
    link = models.ForeignKey(RulerLink, on_delete=models.CASCADE, related_name="scores")
    value = models.FloatField()
    low = models.FloatField()
    high = models.FloatField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["standing", "link"], name="expected_score_once")
        ]

    def __str__(self) -> str:
        return f"{self.standing}, {self.link.version}"
