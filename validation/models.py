"""Stage 3: others say whether an example is right."""

from django.db import models
from django.db.models.functions import Now

from annotation.models import Example
from dynabench.accounts.models import Annotator


class Validation(models.Model):
    """One vote on one example: the validator's own label, or a verdict on the author's."""

    class Verdict(models.TextChoices):
        CORRECT = "correct"
        INCORRECT = "incorrect"
        FLAGGED = "flagged"

    example = models.ForeignKey(Example, on_delete=models.PROTECT, related_name="validations")
    validator = models.ForeignKey(Annotator, on_delete=models.PROTECT, related_name="validations")
    label = models.CharField(max_length=200, blank=True)
    verdict = models.CharField(max_length=10, choices=Verdict, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["example", "validator"], name="validation_one_vote")
        ]

    def __str__(self) -> str:
        return f"{self.validator} on {self.example}"
