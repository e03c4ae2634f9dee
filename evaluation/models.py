"""Stage 4: frozen datasets, trainings, and the jobs that make them."""

import secrets

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from annotation.models import Example
from tasks.models import Round, TargetModel, Task


class Job(models.Model):
    """Work for a queue worker. This row is the truth; the queue's message is only a doorbell.

    Moved by `evaluation.leases` alone. Lost: nobody saw the end, which is not the same as failed.
    """

    class State(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        LOST = "lost"

    state = models.CharField(max_length=7, choices=State, default=State.QUEUED)
    attempts = models.PositiveSmallIntegerField(default=0)
    lease_token = models.UUIDField(null=True, editable=False)
    lease_until = models.DateTimeField(null=True, editable=False)
    progress = models.FloatField(default=0)  # 0-1
    message = models.CharField(max_length=200, blank=True)  # what it does now
    error = models.TextField(blank=True)  # why it failed, for the person who asked for it
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    queued_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        abstract = True
        constraints = [
            models.CheckConstraint(
                condition=Q(state="running", lease_token__isnull=False) | ~Q(state="running"),
                name="%(class)s_running_has_lease",
            )
        ]
        indexes = [models.Index(fields=["state", "lease_until"], name="%(class)s_state")]

    @property
    def is_over(self) -> bool:
        """Whether nothing will change any more unless somebody asks for it again."""
        return self.state not in (self.State.QUEUED, self.State.RUNNING)


class Dataset(Job):
    """One version of a round's data: frozen rows in three splits, and the files made of them.

    The row is a job until it is done; from then on neither it nor its items and files change.
    """

    round = models.ForeignKey(Round, on_delete=models.PROTECT, related_name="datasets")
    version = models.PositiveIntegerField()
    options = models.JSONField(default=dict)  # the fields of `evaluation.release.Options`
    numbers = models.JSONField(default=dict)  # counted when it was made: rows, labels, rates …

    class Meta(Job.Meta):
        ordering = ["round", "version"]
        constraints = [
            *Job.Meta.constraints,
            models.UniqueConstraint(fields=["round", "version"], name="dataset_one_version"),
        ]

    def __str__(self) -> str:
        return f"{self.round.task.code}-round{self.round.number}-v{self.version}"


class DatasetItem(models.Model):
    """A row of a dataset as it was released, or the tombstone of one that was withdrawn."""

    class Split(models.TextChoices):
        TRAIN = "train"
        DEV = "dev"
        TEST = "test"

    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="items")
    position = models.PositiveIntegerField()
    split = models.CharField(max_length=5, choices=Split)
    uid = models.CharField(max_length=200)
    example = models.ForeignKey(
        Example, on_delete=models.SET_NULL, null=True, related_name="dataset_items"
    )
    line = models.TextField()  # of the JSONL file, byte for byte; docs/datasets.md has its fields
    label = models.CharField(max_length=200, blank=True)  # what the splits are balanced by
    is_validated = models.BooleanField(default=False)
    is_withdrawn = models.BooleanField(default=False)

    class Meta:
        ordering = ["dataset", "position"]
        constraints = [
            models.UniqueConstraint(fields=["dataset", "position"], name="item_one_position"),
            models.UniqueConstraint(fields=["dataset", "uid"], name="item_one_uid"),
        ]

    def __str__(self) -> str:
        return f"{self.uid} in {self.dataset}"


def new_key() -> str:
    """256 bits by chance, in hexadecimal digits."""
    return secrets.token_hex(32)


def release_path(file: "DatasetFile", name: str) -> str:
    """Where a file of a dataset is kept in the storage."""
    return f"releases/{file.dataset}/{name}"


class DatasetFile(models.Model):
    """A file of a dataset, made once; what is downloaded has this digest."""

    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="files")
    name = models.CharField(max_length=100)
    file = models.FileField(upload_to=release_path, max_length=300)
    size = models.PositiveBigIntegerField(help_text="Bytes.")
    sha256 = models.CharField(max_length=64)
    is_public = models.BooleanField(default=True)  # otherwise for the task's members

    class Meta:
        ordering = ["dataset", "name"]
        constraints = [
            models.UniqueConstraint(fields=["dataset", "name"], name="file_one_name"),
        ]

    def __str__(self) -> str:
        return f"{self.dataset}/{self.name}"


class PseudonymKey(models.Model):
    """Turns people into the names that a task's datasets give them; it never leaves.

    A key by chance for each task: a name is the same in all its datasets, says nothing in
    another task, and cannot be undone without this row. SECRET_KEY may change meanwhile.
    """

    task = models.OneToOneField(Task, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=64, default=new_key, editable=False)

    def __str__(self) -> str:
        return f"pseudonyms of {self.task_id}"


class TrainingRun(Job):
    """A training of a task's next target, and its report."""

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="training_runs")
    round = models.ForeignKey(
        Round, on_delete=models.SET_NULL, null=True, blank=True, related_name="+",
        help_text="The round whose target the trained model becomes.",
    )  # fmt: skip
    options = models.JSONField()  # rounds, weights, base, seed …
    report = models.JSONField(default=dict)
    target = models.ForeignKey(TargetModel, on_delete=models.SET_NULL, null=True, related_name="+")

    class Meta(Job.Meta):
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"training {self.pk} of {self.task.code}"
