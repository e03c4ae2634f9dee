"""Short evaluations: estimates of a paid model's score on a set from some of its questions."""

import uuid

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from evaluation.models.evaluation_sets import EvaluationSetVersion
from evaluation.models.jobs import UNFINISHED_STATES, Job
from evaluation.models.submissions import Submission


class ShortEvaluation(Job):
    """An evaluation of a submission on questions that are drawn from a version of a set.

    It is an estimate: boards and runs never contain it. See docs/statistics.md, "Shorter
    evaluations". Rates are 0-1, costs in the currency of the model's prices.
    """

    function = "evaluation.jobs.evaluate_short"

    class StopReason(models.TextChoices):
        WIDTH = "width", _("the interval is as narrow as wanted")
        QUESTIONS = "questions", _("the maximum number of questions is reached")
        COST = "cost", _("the maximum cost is reached")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    submission = models.ForeignKey(
        Submission, on_delete=models.CASCADE, related_name="short_evaluations"
    )
    version = models.ForeignKey(
        EvaluationSetVersion, on_delete=models.PROTECT, related_name="short_evaluations"
    )
    half_width = models.FloatField(help_text="Of the interval that is wanted.")
    most_questions = models.PositiveIntegerField()
    most_cost = models.FloatField(null=True)
    seed = models.PositiveIntegerField()  # of the draws
    outcome = models.CharField(max_length=20, blank=True)  # of `evaluation.contract.Outcome`
    stop_reason = models.CharField(max_length=9, choices=StopReason, blank=True)
    value = models.FloatField(null=True)
    low = models.FloatField(null=True)
    high = models.FloatField(null=True)
    asked = models.PositiveIntegerField(default=0)
    unanswered = models.PositiveIntegerField(default=0)  # count as wrong, as in runs
    lost = models.PositiveIntegerField(default=0)  # answers that a stopped worker did not store
    spent = models.FloatField(default=0)
    # In how many short evaluations of the version its most asked question was asked, and of how
    # many, this one included.
    most_exposed = models.PositiveIntegerField(null=True)
    exposed_in = models.PositiveIntegerField(null=True)

    class Meta(Job.Meta):
        ordering = ["-queued_at", "pk"]
        constraints = [
            *Job.Meta.constraints,
            # For two tabs that request the same at once: the owner would pay twice.
            models.UniqueConstraint(
                fields=["submission", "version"],
                condition=Q(state__in=UNFINISHED_STATES),
                name="short_evaluation_once",
            ),
        ]

    def __str__(self) -> str:
        return f"short evaluation of {self.submission.name} on {self.version}"


class ShortAnswer(models.Model):
    """A drawn question of a short evaluation, with whether its answer is right once it is known.

    Stored before it is asked, with what the estimate needs: see
    `evaluation.scoring.shorter.drawing.DrawnQuestion`.
    """

    evaluation = models.ForeignKey(
        ShortEvaluation, on_delete=models.CASCADE, related_name="answers"
    )
    number = models.PositiveIntegerField()  # in the order of the draws, from 0
    position = models.PositiveIntegerField()  # in the set, from 0
    chance = models.FloatField()
    prediction = models.FloatField()
    rest = models.FloatField()
    # Set before the call, so that a question whose worker was killed is never asked again.
    sent_at = models.DateTimeField(null=True)
    is_right = models.BooleanField(null=True)
    is_unanswered = models.BooleanField(default=False)

    class Meta:
        ordering = ["evaluation", "number"]
        constraints = [
            # Two workers that both believe to have the lease draw a question only once.
            models.UniqueConstraint(fields=["evaluation", "number"], name="short_answer_number"),
            models.UniqueConstraint(fields=["evaluation", "position"], name="short_answer_once"),
        ]

    def __str__(self) -> str:
        return f"question {self.position} of {self.evaluation_id}"
