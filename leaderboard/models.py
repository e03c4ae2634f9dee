"""Stage 5: rankings of models and of people, and what people set themselves to do."""

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from dynabench.accounts.models import Annotator
from evaluation.models import EvaluationRun
from tasks.models import Task


class WeeklyGoal(models.Model):
    """What a person wants to do in a week, from that week on, until the next row; 0 is a pause."""

    annotator = models.ForeignKey(Annotator, on_delete=models.CASCADE, related_name="weekly_goals")
    week = models.DateField(help_text="The Monday it begins on, by UTC.")
    amount = models.PositiveSmallIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["annotator", "week"], name="goal_once_a_week")
        ]

    def __str__(self) -> str:
        return f"{self.annotator}: {self.amount} from {self.week}"


class Board(models.Model):
    """What a task's leaderboard needs and no request may compute; `leaderboard.jobs` renews it.

    The exchange rates are frozen on a named pool of models: a new model never moves the others.
    """

    task = models.OneToOneField(Task, on_delete=models.CASCADE, related_name="board")
    rates = models.JSONField(default=dict)  # by metric; empty: none frozen yet
    pool = models.JSONField(default=list)  # names of the models that the rates rest on
    runner = models.CharField(max_length=20, blank=True)  # whose costs the rates rest on
    frozen_at = models.DateTimeField(null=True)
    is_sensitive = models.BooleanField(default=False)  # leaving a model out changes the order
    renewed_to = models.DateTimeField(null=True)  # runs that ended until then are in it
    looked_on = models.DateField(null=True)  # the last day of which a snapshot was thought of

    def __str__(self) -> str:
        return f"board of {self.task.code}"


class Resample(models.Model):
    """A run's metric on resamples of its examples: the same resamples for all models on a set.

    So differences of two models' values are paired. float32, little-endian.
    """

    run = models.ForeignKey(EvaluationRun, on_delete=models.CASCADE, related_name="resamples")
    metric = models.CharField(max_length=60)
    values = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "metric"], name="resample_once")]

    def __str__(self) -> str:
        return f"{self.metric} of {self.run_id}, resampled"


class Weights(models.Model):
    """Named weights of a task's leaderboard (a fork); the board opens with them at their name."""

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="forks")
    name = models.SlugField(max_length=60)
    description = models.CharField(max_length=300, blank=True)
    metrics = models.JSONField(default=dict)  # by metric, 0-8
    evaluation_sets = models.JSONField(default=dict)  # by name of the set, 0-8
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="forks"
    )
    made_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name_plural = "weights"
        ordering = ["task", "name"]
        constraints = [
            models.UniqueConstraint(
                fields=["task", "name"],
                name="weights_one_name",
                violation_error_message="This task has weights of that name already.",
            )
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.task.code}"


class Snapshot(models.Model):
    """A leaderboard as it was shown, for citations; never changes, never goes."""

    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="snapshots")
    number = models.PositiveIntegerField()
    title = models.CharField(max_length=150, blank=True)
    description = models.CharField(max_length=500, blank=True)
    table = models.JSONField()  # all that is shown: rows, weights, rates, sets and versions, code
    sha256 = models.CharField(max_length=64, validators=[RegexValidator("^[0-9a-f]{64}$")])
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    made_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["task", "-number"]
        constraints = [
            models.UniqueConstraint(fields=["task", "number"], name="snapshot_one_number"),
            models.CheckConstraint(condition=Q(number__gt=0), name="snapshot_from_one"),
        ]

    def __str__(self) -> str:
        return f"snapshot {self.number} of {self.task.code}"


class Contestant(models.Model):
    """A model that is compared with others in an arena."""

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="contestants")
    name = models.CharField(max_length=100)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["task", "name"], name="contestant_once")]

    def __str__(self) -> str:
        return self.name


class Comparison(models.Model):
    """A voter's choice between the answers of two models, who did not know which was whose."""

    class Winner(models.TextChoices):
        LEFT = "left"
        RIGHT = "right"
        TIE = "tie"
        BOTH_BAD = "both_bad"

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="comparisons")
    uid = models.CharField(max_length=100, help_text="Of the source; unique in the task.")
    voter = models.ForeignKey(Annotator, on_delete=models.PROTECT, related_name="+")
    left = models.ForeignKey(Contestant, on_delete=models.CASCADE, related_name="+")
    right = models.ForeignKey(Contestant, on_delete=models.CASCADE, related_name="+")
    winner = models.CharField(max_length=8, choices=Winner)
    stored_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["task", "uid"], name="comparison_once"),
            models.CheckConstraint(condition=~Q(left=F("right")), name="comparison_of_two"),
        ]

    def __str__(self) -> str:
        return f"{self.left} or {self.right}: {self.winner}"
