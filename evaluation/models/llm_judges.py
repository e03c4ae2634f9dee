"""Language models that judge free-text answers, their verdicts, and models' scores by them."""

from django.db import models
from django.db.models.functions import Now

from evaluation.models.jobs import ChatJob, Job
from evaluation.models.runs import EvaluationRun
from tasks.models import Task


class LlmJudge(ChatJob):
    """A chat model with a prompt that judges whether an answer is correct. Neither ever changes.

    Another prompt or another version of the model makes another judge, which is calibrated again.
    """

    function = "evaluation.jobs.ask_llm_judge"

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="llm_judges")
    name = models.SlugField(max_length=60)
    most_calls = models.PositiveIntegerField(help_text="Each time that it is asked.")
    report = models.JSONField(default=dict)  # part: of `agreement.Agreement`; calls, failures

    class Meta(Job.Meta):
        ordering = ["-pk"]
        constraints = [
            *Job.Meta.constraints,
            # Configurations name a judge, which never changes.
            models.UniqueConstraint(fields=["task", "name"], name="llm_judge_one_name"),
        ]

    def __str__(self) -> str:
        return f"LLM judge {self.name} of {self.task.code}"


class LlmVerdict(models.Model):
    """A judge's verdict on one answer. Stored immediately, so that nothing is asked twice."""

    judge = models.ForeignKey(
        LlmJudge, on_delete=models.CASCADE, related_name="verdicts", db_index=False
    )
    key = models.CharField(max_length=64)  # a digest of the inputs and the answer
    is_correct = models.BooleanField()
    asked_at = models.DateTimeField(db_default=Now())

    class Meta:
        # Looked up for each answer. An answer judged by two workers counts once.
        constraints = [models.UniqueConstraint(fields=["judge", "key"], name="llm_verdict_once")]

    def __str__(self) -> str:
        return f"{self.judge}: {'correct' if self.is_correct else 'incorrect'}"


class LlmScore(models.Model):
    """The share (0-1) of a run's answers that a judge finds correct."""

    judge = models.ForeignKey(
        LlmJudge, on_delete=models.CASCADE, related_name="scores", db_index=False
    )
    run = models.ForeignKey(EvaluationRun, on_delete=models.CASCADE, related_name="llm_scores")
    value = models.FloatField()
    low = models.FloatField()
    high = models.FloatField()
    n = models.PositiveIntegerField()

    class Meta:
        # A run has one score per judge, which is replaced when it is judged again.
        constraints = [models.UniqueConstraint(fields=["judge", "run"], name="llm_score_once")]

    def __str__(self) -> str:
        return f"{self.value:.3f} of {self.run_id} by {self.judge}"
