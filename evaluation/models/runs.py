"""Evaluations of a model on a set, and their scores."""

import uuid

from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext_lazy as _

from evaluation.contract import UNMEASURED_OUTCOMES, Outcome
from evaluation.models.evaluation_sets import EvaluationSetVersion
from evaluation.models.jobs import UNFINISHED_STATES, Job
from evaluation.models.submissions import Submission


def predictions_path(run: "EvaluationRun", name: str) -> str:
    """Return the storage path of a run's predictions."""
    return f"predictions/{run.pk}-{run.lease_token}.jsonl.gz"


REPEATABLE_OUTCOMES = (*UNMEASURED_OUTCOMES, Outcome.OVER_BUDGET)


class EvaluationRun(Job):
    """One evaluation of a submission on a version of a set, or on its perturbed variants.

    It produces at most one set of scores, stored in the transaction that ends it.
    """

    function = "evaluation.jobs.evaluate_next"

    class Suite(models.TextChoices):
        # The other labels say that examples are perturbed.
        PLAIN = "plain", _("unchanged")
        ROBUSTNESS = "robustness", _("perturbed: robustness")
        FAIRNESS = "fairness", _("perturbed: fairness")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="runs")
    version = models.ForeignKey(EvaluationSetVersion, on_delete=models.PROTECT, related_name="runs")
    suite = models.CharField(max_length=10, choices=Suite, default=Suite.PLAIN)
    number = models.PositiveSmallIntegerField(default=1)  # higher: repeated after our failure
    priority = models.SmallIntegerField(default=0)  # higher first
    in_the_loop = models.BooleanField(default=False)  # it was a target of the set's round
    seed = models.PositiveIntegerField(default=0)  # for the perturbations and the bootstrap
    deadline_at = models.DateTimeField(null=True, editable=False)  # of this attempt
    runner = models.CharField(max_length=20, blank=True)  # docker, docker-runsc, process, …
    host = models.CharField(max_length=100, blank=True)  # the host of the worker that runs it
    outcome = models.CharField(max_length=20, blank=True)  # of `evaluation.contract.Outcome`
    limit = models.CharField(max_length=100, blank=True)  # the exceeded limit, in words
    measured = models.CharField(max_length=100, blank=True)  # what was measured against it
    warnings = models.JSONField(default=list)  # sentences
    log = models.TextField(blank=True)  # the end of its log, redacted, for the model's owner
    usage = models.JSONField(default=dict)  # the fields of `evaluation.contract.Usage`
    # What its speed and memory were computed from, as in `evaluation.scoring.measured`; empty: of
    # a run before they were kept, or of answers that were uploaded.
    measurements = models.JSONField(default=dict, db_default={}, editable=False)
    predictions = models.FileField(upload_to=predictions_path, max_length=300, blank=True)
    # False: the set is sealed, and its person has seen as many results as the bound allows.
    is_shown = models.BooleanField(default=True)
    # The number of the set's examples in the model's training rows; null: unknown.
    seen = models.PositiveIntegerField(null=True, editable=False)

    class Meta(Job.Meta):
        ordering = ["-queued_at"]
        constraints = [
            *Job.Meta.constraints,
            # Sweeps and people may request the same run at once; one of them creates it.
            models.UniqueConstraint(
                fields=["submission", "version", "suite", "number"], name="run_once"
            ),
        ]
        indexes = [
            *Job.Meta.indexes,
            # Boards look up the newest run of their sets to see whether anything is new.
            models.Index(fields=["version", "finished_at"], name="run_ends"),
        ]

    @classmethod
    def build_ready_condition(cls) -> Q:
        """Return the condition for plain runs, and for perturbed runs whose plain run has ended.

        Perturbed runs are compared with the plain one.
        """
        plain_runs = cls.objects.filter(
            submission=OuterRef("submission"),
            version=OuterRef("version"),
            suite=cls.Suite.PLAIN,
            state__in=UNFINISHED_STATES,
        )
        return Q(suite=cls.Suite.PLAIN) | Q(~Exists(plain_runs))

    @property
    def may_repeat(self) -> bool:
        """Whether the run may be repeated.

        It may if it failed because of the platform, another server or its cost cap.
        """
        return self.is_over and self.outcome in REPEATABLE_OUTCOMES

    def __str__(self) -> str:
        return f"run of {self.submission.name} on {self.version}, {self.suite}"


class Score(models.Model):
    """The value of a metric for a run, with its interval. Rates are 0-1.

    Perturbed suites have a score for each kind of perturbation.
    """

    run = models.ForeignKey(EvaluationRun, on_delete=models.CASCADE, related_name="scores")
    metric = models.CharField(max_length=60)  # accuracy, consistency, worst_case …
    metric_version = models.PositiveSmallIntegerField(default=1)
    slice = models.CharField(max_length=200, blank=True)  # field=value; empty: all
    kind = models.CharField(max_length=60, blank=True)  # the kind of perturbation; empty: all
    value = models.FloatField(null=True)  # null: cannot be computed
    is_rounded = False  # not stored: `evaluation.test_sets.shown_scores.round_stored_score` sets it
    low = models.FloatField(null=True)
    high = models.FloatField(null=True)
    n = models.PositiveIntegerField()

    class Meta:
        constraints = [
            # A worker that lost its lease cannot store a second set of scores.
            models.UniqueConstraint(fields=["run", "metric", "slice", "kind"], name="score_once")
        ]

    def __str__(self) -> str:
        return f"{self.metric} of {self.run_id}"
