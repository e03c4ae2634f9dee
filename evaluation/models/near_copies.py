"""Pairs of models that answer nearly alike."""

from django.db import models

from evaluation.models.runs import EvaluationRun


class NearCopy(models.Model):
    """Two plain runs on the same version of a set, whose answers are nearly the same.

    run: the one that ended later. The counts are those of `evaluation.scoring.likeness.Likeness`.
    """

    run = models.ForeignKey(EvaluationRun, on_delete=models.CASCADE, related_name="near_copies")
    other = models.ForeignKey(EvaluationRun, on_delete=models.CASCADE, related_name="+")
    n = models.PositiveIntegerField()
    equal = models.PositiveIntegerField()
    expected = models.FloatField()
    both_wrong = models.PositiveIntegerField()
    equal_wrong = models.PositiveIntegerField()

    class Meta:
        ordering = ["run", "-equal"]
        # For two workers that compare the same runs at once.
        constraints = [models.UniqueConstraint(fields=["run", "other"], name="near_copy_once")]

    def __str__(self) -> str:
        return f"{self.run_id} is like {self.other_id}"
