"""Released datasets: the frozen data of a round."""

import secrets
from datetime import date

from django.db import models
from django.db.models.functions import Now

from annotation.models import Example
from evaluation.models.jobs import Job
from tasks.models import Round, Task


class Dataset(Job):
    """A version of a round's data: frozen rows in their splits, and the files made from them.

    It is a job until it is built. From then on, neither it nor its items and files change.
    """

    function = "evaluation.jobs.build_dataset"

    round = models.ForeignKey(Round, on_delete=models.PROTECT, related_name="datasets")
    version = models.PositiveIntegerField()
    # The fields of `evaluation.dataset_releases.build.Options`.
    options = models.JSONField(default=dict)
    numbers = models.JSONField(default=dict)  # counted when it was built: rows, labels, rates …
    # When its rows were first shown or one of its files downloaded. Datasets from before this
    # column count as downloaded, as do those that the previous release builds while this one is
    # installed.
    downloaded_at = models.DateTimeField(null=True, default=None, db_default=Now(), editable=False)

    class Meta(Job.Meta):
        ordering = ["round", "version"]
        constraints = [
            *Job.Meta.constraints,
            # Requests lock the round; this also covers rows that are created otherwise.
            models.UniqueConstraint(fields=["round", "version"], name="dataset_one_version"),
        ]

    def __str__(self) -> str:
        return f"{self.round.task.code}-round{self.round.number}-v{self.version}"

    @property
    def held_until(self) -> date | None:
        """The first day on which a new version publishes the held-back rows; None without any."""
        held_until = self.options.get("held_until")
        is_published = "held" in self.numbers.get("rows", ())
        if not held_until or is_published:
            return None
        return date.fromisoformat(held_until)


class DatasetItem(models.Model):
    """A row of a dataset as it was released, or the tombstone of a withdrawn one."""

    class Split(models.TextChoices):
        TRAIN = "train"
        DEV = "dev"
        TEST = "test"
        PROGRAM = "program"
        HELD = "held"

    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="items")
    position = models.PositiveIntegerField()
    split = models.CharField(max_length=7, choices=Split)
    uid = models.CharField(max_length=200)
    example = models.ForeignKey(
        Example, on_delete=models.SET_NULL, null=True, related_name="dataset_items"
    )
    line = models.TextField()  # of the JSONL file, byte for byte; docs/datasets.md has its fields
    label = models.CharField(max_length=200, blank=True)  # the label by which splits are balanced
    is_validated = models.BooleanField(default=False)
    is_withdrawn = models.BooleanField(default=False)

    class Meta:
        ordering = ["dataset", "position"]
        constraints = [
            # Downloads and later versions read rows by position.
            models.UniqueConstraint(fields=["dataset", "position"], name="item_one_position"),
            # People cite a row by its uid, so it names one row of a dataset.
            models.UniqueConstraint(fields=["dataset", "uid"], name="item_one_uid"),
        ]

    def __str__(self) -> str:
        return f"{self.uid} in {self.dataset}"


def new_key() -> str:
    """Return 256 random bits as hexadecimal digits."""
    return secrets.token_hex(32)


def release_path(file: "DatasetFile", name: str) -> str:
    """Return the storage path of a dataset's file."""
    return f"releases/{file.dataset}/{name}"


class DatasetFile(models.Model):
    """A file of a dataset. It never changes, so downloads always have its digest."""

    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="files")
    name = models.CharField(max_length=100)
    file = models.FileField(upload_to=release_path, max_length=300)
    size = models.PositiveBigIntegerField(help_text="Bytes.")
    sha256 = models.CharField(max_length=64)
    is_public = models.BooleanField(default=True)  # otherwise only for the task's members

    class Meta:
        ordering = ["dataset", "name"]
        constraints = [
            models.UniqueConstraint(fields=["dataset", "name"], name="file_one_name"),
        ]

    def __str__(self) -> str:
        return f"{self.dataset}/{self.name}"


class PseudonymKey(models.Model):
    """A secret key from which the pseudonyms in a task's datasets are computed.

    Each task has a random key: pseudonyms are the same in all its datasets, say nothing in another
    task, and cannot be resolved without this row. The key does not depend on SECRET_KEY, which may
    change.
    """

    task = models.OneToOneField(Task, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=64, default=new_key, editable=False)

    def __str__(self) -> str:
        return f"pseudonyms of {self.task_id}"
