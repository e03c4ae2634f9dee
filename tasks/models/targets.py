"""The models that people write against: access, versions, use and failures."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from tasks.models.remote_model import RemoteModel
from tasks.models.task import Task


class TargetModel(RemoteModel):
    """A model that can be called, as a target in rounds or as an entrant on the leaderboard."""

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="targets")
    name = models.SlugField(
        max_length=60, help_text="Unique in its task; part of the model server's URL."
    )
    adapter = models.CharField(max_length=40, default="http")
    url = models.URLField(
        max_length=500, blank=True, help_text="Empty: our own model server, which loads `source`."
    )
    source = models.CharField(
        max_length=500,
        blank=True,
        help_text="A folder, a hub id with a pinned revision, or package:NAME.",
    )
    allowed_folder = models.CharField(
        max_length=500,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="The source, where an administrator allowed a folder outside the models' folder.",
    )
    revision = models.CharField(max_length=64, blank=True)
    options = models.JSONField(default=dict, blank=True, help_text="Of the adapter.")
    serving = models.JSONField(
        default=dict,
        blank=True,
        help_text="How our model server loads it: backend, precision, fields, output, labels.",
    )
    gpus = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="That it is evaluated on: 0 or 1."
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["name"]
        verbose_name = "target"
        constraints = [
            models.UniqueConstraint(
                fields=["task", "name"],
                name="target_one_name_in_task",
                violation_error_message="Another target of this task has this name.",
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def base_url(self) -> str:
        """Return the URL at which the target answers.

        Language models on our model server share one URL.
        """
        default_path = "v1"
        if self.adapter != "openai_chat":
            default_path = f"models/{self.name}"
        return self.url or f"{settings.MODEL_SERVER_URL}/{default_path}"


class TargetVersion(models.Model):
    """An exact version of a target, identified by the digest of its fingerprint.

    The fingerprint includes weights, tokenizer, backend and precision.
    """

    target = models.ForeignKey(TargetModel, on_delete=models.CASCADE, related_name="versions")
    digest = models.CharField(max_length=64)
    fingerprint = models.JSONField(default=dict)
    first_seen_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            # Threads that see a new version at once create one row (`note_version`).
            models.UniqueConstraint(fields=["target", "digest"], name="version_one_digest")
        ]

    def __str__(self) -> str:
        return f"{self.target} {self.digest}"


class TargetFailure(models.Model):
    """The recent failures of a target while people were writing."""

    target = models.OneToOneField(
        TargetModel, on_delete=models.CASCADE, primary_key=True, related_name="failure"
    )
    count = models.PositiveIntegerField(default=0)
    since = models.DateTimeField()
    # Pages and the sweeper ask for the failures of the last day.
    last_at = models.DateTimeField(db_index=True)
    reason = models.CharField(max_length=20)  # of an EndpointError
    detail = models.CharField(max_length=500, blank=True)
    told_at = models.DateTimeField(null=True)  # when its owners were mailed

    def __str__(self) -> str:
        return f"{self.target}: {self.count} failures"


class ModelUse(models.Model):
    """The use of a target on one day (UTC), in one round or outside all rounds."""

    target = models.ForeignKey(TargetModel, on_delete=models.CASCADE, related_name="uses")
    round = models.ForeignKey(
        "Round", on_delete=models.CASCADE, null=True, related_name="model_uses"
    )
    day = models.DateField()
    requests = models.PositiveBigIntegerField(default=0)
    tokens_in = models.PositiveBigIntegerField(default=0)
    tokens_out = models.PositiveBigIntegerField(default=0)
    cost = models.FloatField(default=0, help_text="In whole money, at the prices of that day.")

    class Meta:
        constraints = [
            # `_note_use` creates the row of the day without a lock, then adds to it by an update.
            models.UniqueConstraint(fields=["target", "round", "day"], name="modeluse_one_a_day"),
            models.UniqueConstraint(
                # NULLs are never equal, so calls outside of rounds need a constraint of their own.
                fields=["target", "day"],
                condition=Q(round=None),
                name="modeluse_outside",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.target} in {self.round} on {self.day}"


class Generator(RemoteModel):
    """A model that suggests texts to the writers of a task. It is not a target."""

    task = models.OneToOneField(Task, on_delete=models.CASCADE, related_name="generator")
    name = models.SlugField(max_length=60, help_text="People read it with a suggestion.")
    adapter = models.CharField(max_length=40, default="openai_chat")
    url = models.URLField(max_length=500)
    options = models.JSONField(default=dict, blank=True, help_text="Of the adapter.")

    class Meta:
        ordering = ["task"]

    def __str__(self) -> str:
        return f"{self.name} for {self.task}"
