"""Sets of examples that models are run on, whose versions never change."""

from collections.abc import Collection

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from evaluation.models.datasets import Dataset
from tasks.models import Round, Task


class EvaluationSet(models.Model):
    """A set of examples with right answers, on which a task's models are compared."""

    class Access(models.TextChoices):
        SCORING = "scoring", _("scoring: counts for the leaderboard")
        STANDARD = "standard", _("standard: shown next to it")
        HIDDEN = "hidden", _("hidden: for the task's owners only")

    class Source(models.TextChoices):
        ROUND = "round", _("a released round")
        UPLOAD = "upload", _("uploaded")
        CONTROL = "control", _("not adversarial: the control set")
        HELD = "held", _("held back from a release")

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="evaluation_sets")
    name = models.SlugField(max_length=60)
    access = models.CharField(max_length=8, choices=Access, default=Access.SCORING)
    source = models.CharField(max_length=7, choices=Source, default=Source.UPLOAD)
    # Of `evaluation.test_sets.overlap`; null: unknown
    round = models.ForeignKey(
        Round, on_delete=models.CASCADE, null=True, blank=True, related_name="evaluation_sets"
    )
    held_of = models.OneToOneField(
        Round, on_delete=models.CASCADE, null=True, editable=False, related_name="held_set"
    )  # whose examples were held back
    description = models.TextField(blank=True, help_text="Markdown.")
    may_leave = models.BooleanField(
        default=False,
        help_text="Its inputs may be sent to remote endpoints and downloaded for predictions.",
    )
    answers_public = models.BooleanField(
        default=False,
        help_text="Its right answers are no secret: scores are shown exactly, and by slice.",
    )

    class Meta:
        ordering = ["task_id", "name"]
        constraints = [
            # The name is in addresses and in the API.
            models.UniqueConstraint(
                fields=["task", "name"],
                name="evaluation_set_one_name",
                violation_error_message="This task has an evaluation set of that name already.",
            )
        ]

    def __str__(self) -> str:
        return f"{self.task.code}/{self.name}"


SETS = "evaluation-sets"
"""The folder of their files in the storage."""


def set_path(version: "EvaluationSetVersion", name: str) -> str:
    """Return the storage path of an evaluation set's file."""
    return f"{SETS}/{version.evaluation_set_id}/v{version.version}-{name}"


class EvaluationSetVersion(models.Model):
    """A version of an evaluation set. It never changes.

    Inputs and right answers are two gzipped JSON lines files with one line per example, so that
    code that reads inputs never opens the answers. docs/evaluation.md lists their fields.
    """

    evaluation_set = models.ForeignKey(
        EvaluationSet, on_delete=models.CASCADE, related_name="versions"
    )
    version = models.PositiveIntegerField()
    inputs = models.FileField(upload_to=set_path, max_length=300)
    gold = models.FileField(upload_to=set_path, max_length=300)
    sha256 = models.CharField(max_length=64)  # of both files' lines
    size = models.PositiveIntegerField(help_text="Examples.")
    slices = models.JSONField(default=dict)  # {slice field: {value: examples}}
    dataset = models.ForeignKey(
        Dataset, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    overlap = models.JSONField(null=True, editable=False)
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    made_at = models.DateTimeField(db_default=Now())
    # While sealed, its inputs were first sent to a remote model or downloaded; null: never.
    exposed_at = models.DateTimeField(null=True, editable=False)
    settled_at = models.DateTimeField(null=True)  # of a closed round: when its judging was over
    # Of a closed round, when it was taken: how many of its examples that need votes had them.
    judged = models.PositiveIntegerField(null=True, editable=False)
    to_judge = models.PositiveIntegerField(null=True, editable=False)

    class Meta:
        ordering = ["evaluation_set", "version"]
        constraints = [
            # Versions are counted under the set's lock; this refuses what does not take it.
            models.UniqueConstraint(
                fields=["evaluation_set", "version"], name="evaluation_set_one_version"
            )
        ]

    def __str__(self) -> str:
        return f"{self.evaluation_set} v{self.version}"

    @property
    def is_provisional(self) -> bool:
        """Whether its round was still being judged when the version was made."""
        is_round = self.evaluation_set.source == EvaluationSet.Source.ROUND
        return is_round and self.dataset_id is None and self.settled_at is None

    @property
    def is_sealed(self) -> bool:
        """Whether its right answers are secret, so that scores must not disclose them.

        They are public if the owners say so, or if a release has published them.
        """
        is_released = self.dataset is not None and not self.dataset.options.get("private_test")
        return not (self.evaluation_set.answers_public or is_released)

    def overlap_with(self, names: Collection[str] | None = None) -> float | None:
        """Return the share (0-1) of its examples that are in these sources of training rows.

        names: the sources; None for all sources. Returns None before the first comparison.
        """
        if self.overlap is None:
            return None
        if not self.size:
            return 0.0
        sources = set(self.overlap["sources"] if names is None else names)
        count = 0
        for source_names, rows in self.overlap["rows"].items():
            if sources & set(source_names.split()):
                count += rows
        return count / self.size
