"""How much better models are on released rows of a round than on rows held back from it."""

from django.db import models
from django.db.models.functions import Now

from evaluation.models.runs import EvaluationRun
from evaluation.models.submissions import Submission
from tasks.models import Round


class LeakTrial(models.Model):
    """A model that arrived after a release, run on its released and on its held-back rows.

    The numbers are those of `evaluation.scoring.leaks.LeakEstimate`, in shares (0-1). Null: one of
    the halves has too few rows or authors.
    """

    round = models.ForeignKey(Round, on_delete=models.CASCADE, related_name="leak_trials")
    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="leak_trials")
    released_run = models.ForeignKey(EvaluationRun, on_delete=models.CASCADE, related_name="+")
    held_run = models.ForeignKey(EvaluationRun, on_delete=models.CASCADE, related_name="+")
    released_n = models.PositiveIntegerField()
    held_n = models.PositiveIntegerField()
    released_authors = models.PositiveIntegerField()
    held_authors = models.PositiveIntegerField()
    earlier_models = models.PositiveIntegerField(
        help_text="Models from before the release, by which answers are compared."
    )
    difference = models.FloatField(null=True, help_text="Released − held back.")
    error = models.FloatField(null=True)
    degrees_of_freedom = models.FloatField(null=True)
    made_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["submission", "-made_at"]
        constraints = [
            # For two workers whose runs end at once: both find the pair.
            models.UniqueConstraint(fields=["released_run", "held_run"], name="leak_trial_once")
        ]

    def __str__(self) -> str:
        return f"{self.submission_id} on round {self.round_id}"
