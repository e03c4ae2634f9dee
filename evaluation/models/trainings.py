"""Training runs for tasks' next targets."""

from django.db import models

from evaluation.models.jobs import Job
from tasks.models import Round, TargetModel, Task


class TrainingRun(Job):
    """A training run for a task's next target, with its report."""

    function = "evaluation.jobs.run_training"

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="training_runs")
    round = models.ForeignKey(
        Round, on_delete=models.SET_NULL, null=True, blank=True, related_name="+",
        help_text="The round whose target the trained model becomes.",
    )  # fmt: skip
    options = models.JSONField()  # rounds, weights, base, seed …
    rows = models.JSONField(null=True, help_text="Labelled ones of the owners, if any.")
    report = models.JSONField(default=dict)
    target = models.ForeignKey(TargetModel, on_delete=models.SET_NULL, null=True, related_name="+")

    class Meta(Job.Meta):
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"training {self.pk} of {self.task.code}"
