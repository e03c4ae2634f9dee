"""Sets of examples on which models are run, and their versions, which never change."""

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
        SCORING = "scoring", _("Scoring (counts for the leaderboard)")
        STANDARD = "standard", _("Standard (shown next to the leaderboard scores)")
        HIDDEN = "hidden", _("Hidden (only the task's owners see it)")

    class Source(models.TextChoices):
        ROUND = "round", _("Released round")
        UPLOAD = "upload", _("Uploaded file")
        CONTROL = "control", _("Control set (not adversarial)")
        HELD = "held", _("Held back from a release")

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
    )  # the round whose examples were held back
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
            # The name is in URLs and in the API.
            models.UniqueConstraint(
                fields=["task", "name"],
                name="evaluation_set_one_name",
                violation_error_message="This task has an evaluation set of that name already.",
            )
        ]

    def __str__(self) -> str:
        return f"{self.task.code}/{self.name}"


SETS_FOLDER = "evaluation-sets"
"""The storage folder of the files of evaluation sets."""


def set_path(version: "EvaluationSetVersion", name: str) -> str:
    """Return the storage path of an evaluation set's file."""
    return f"{SETS_FOLDER}/{version.evaluation_set_id}/v{version.version}-{name}"


class EvaluationSetVersion(models.Model):
    """A version of an evaluation set. It never changes.

    Inputs and right answers are two gzipped files of JSON lines, with one line per example. So code
    that reads inputs never opens the answers. docs/evaluation.md lists their fields.
    """

    evaluation_set = models.ForeignKey(
        EvaluationSet, on_delete=models.CASCADE, related_name="versions"
    )
    version = models.PositiveIntegerField()
    inputs = models.FileField(upload_to=set_path, max_length=300)
    gold = models.FileField(upload_to=set_path, max_length=300)
    sha256 = models.CharField(max_length=64)  # the digest of both files' lines
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
    settled_at = models.DateTimeField(null=True)  # for a closed round: when judging ended
    # For a closed round, at that time: how many examples that need votes had them.
    judged = models.PositiveIntegerField(null=True, editable=False)
    to_judge = models.PositiveIntegerField(null=True, editable=False)
    left_out = models.PositiveIntegerField(
        null=True,
        editable=False,
        help_text="Examples of its round about which nobody was asked, as people judged a sample.",
    )

    class Meta:
        ordering = ["evaluation_set", "version"]
        constraints = [
            # Versions are numbered under the set's lock; this also catches writers without it.
            models.UniqueConstraint(
                fields=["evaluation_set", "version"], name="evaluation_set_one_version"
            )
        ]

    def __str__(self) -> str:
        return f"{self.evaluation_set} v{self.version}"

    @property
    def is_provisional(self) -> bool:
        """Whether its round was still being judged when the version was made."""
        is_from_round = self.evaluation_set.source == EvaluationSet.Source.ROUND
        return is_from_round and self.dataset_id is None and self.settled_at is None

    @property
    def is_whole_round(self) -> bool:
        """Whether it has all confirmed examples of a round of which people judged a sample.

        The test split of a release has only those of some authors.
        """
        is_from_round = self.evaluation_set.source == EvaluationSet.Source.ROUND
        return is_from_round and self.dataset_id is None and bool(self.left_out)

    @property
    def is_sealed(self) -> bool:
        """Whether its right answers are secret, so that scores must not disclose them.

        They are public if the owners say so, or if a release has published them.
        """
        is_released = self.dataset is not None and not self.dataset.options.get("private_test")
        return not (self.evaluation_set.answers_public or is_released)

    def compute_overlap(self, names: Collection[str] | None = None) -> float | None:
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
