"""Submitted models, and uploads that arrive in pieces."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from core.accounts.models import CountedPerson
from core.days import get_today
from evaluation.kinds import MAX_NAME_CHARS, kind_choices
from evaluation.models.evaluation_sets import EvaluationSetVersion
from evaluation.models.jobs import Job
from evaluation.models.teams import Team
from tasks.models import TargetModel, Task


class Upload(models.Model):
    """A file that arrives in pieces, each of which may be sent again."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="uploads"
    )
    file_name = models.CharField(max_length=200)
    size = models.PositiveBigIntegerField(help_text="Bytes in all.")
    begun_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"{self.file_name} of {self.owner}"


def piece_path(piece: "UploadPiece", name: str) -> str:
    """Return the storage path of a piece."""
    return f"uploads/{piece.upload_id}/{piece.offset:015d}"


class UploadPiece(models.Model):
    """The bytes of an upload that start at `offset`."""

    upload = models.ForeignKey(Upload, on_delete=models.CASCADE, related_name="pieces")
    offset = models.PositiveBigIntegerField()
    size = models.PositiveBigIntegerField()
    file = models.FileField(upload_to=piece_path, max_length=300)

    class Meta:
        ordering = ["offset"]
        constraints = [
            # A piece that is sent again, or from two tabs, is stored once.
            models.UniqueConstraint(fields=["upload", "offset"], name="piece_one_offset")
        ]

    def __str__(self) -> str:
        return f"{self.upload_id} from {self.offset}"


def submission_path(submission: "Submission", name: str) -> str:
    """Return the storage path of a submission's checked files."""
    return f"submissions/{submission.pk}/{name}"


class Submission(Job):
    """A version of a model that takes part in a task. As a job it is the check on arrival.

    Done means accepted, failed means refused (`outcome`, `error`). Its evaluations are runs.
    """

    function = "evaluation.jobs.check_submission"

    class Adapter(models.TextChoices):
        """The protocol by which examples are sent to an image or endpoint."""

        JSONL = "jsonl", _("JSON lines in, JSON lines out")
        DYNALAB = "dynalab", _("dynalab: one example per call")
        DYNABENCH2 = "dynabench2", _("Dynabench 2.0: single_evaluation, batch_evaluation")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="submissions")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="submissions"
    )
    # Who submitted it and whom it counts for: `evaluation.test_sets.submitters`.
    person = models.ForeignKey(
        CountedPerson,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        editable=False,
        related_name="submissions",
    )
    team = models.ForeignKey(
        Team, on_delete=models.SET_NULL, null=True, blank=True, related_name="submissions"
    )
    # A new kind needs no migration, because choices are read when they are needed.
    kind = models.CharField(max_length=MAX_NAME_CHARS, choices=kind_choices)
    adapter = models.CharField(max_length=10, choices=Adapter, default=Adapter.JSONL)
    name = models.CharField(max_length=100)
    upload = models.OneToOneField(Upload, on_delete=models.SET_NULL, null=True, blank=True)
    source = models.CharField(max_length=500, blank=True)  # Hub id, image reference or URL
    revision = models.CharField(max_length=100, blank=True)  # a full commit, or an image's digest
    # For an adapter: Hub id@commit, or a model.
    base = models.CharField(max_length=200, blank=True, default="", db_default="")
    # The GPUs that a submission requires; a target has its own setting.
    gpus = models.PositiveSmallIntegerField(default=0, db_default=0)
    # Never shown, and deleted when the model is withdrawn.
    secret = models.TextField(blank=True)  # encrypted bearer token of an endpoint
    # Of `evaluation.runs.chat.settings.ChatSettings`; llm too.
    chat = models.JSONField(default=dict, db_default={})
    # For training rows: `evaluation.submissions.training_data`.
    data = models.JSONField(default=dict, db_default={})
    # The cap on a chat model's calls, in the currency of its prices.
    spent = models.FloatField(default=0, db_default=0)
    target = models.OneToOneField(
        TargetModel, on_delete=models.CASCADE, null=True, blank=True, related_name="submission"
    )
    evaluation_set = models.ForeignKey(  # the set that a predictions file answers
        EvaluationSetVersion, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    outcome = models.CharField(max_length=20, blank=True)  # of `evaluation.contract.Outcome`
    log = models.TextField(blank=True)  # the log of the check, redacted, for its owner
    digest = models.CharField(max_length=80, blank=True)  # the digest of the submitted files
    size = models.PositiveBigIntegerField(null=True)  # bytes
    file = models.FileField(upload_to=submission_path, max_length=300, blank=True)  # once checked
    told_at = models.DateTimeField(null=True, editable=False)  # when its owner was emailed
    # The model card.
    description = models.TextField(blank=True, help_text="Markdown.")
    languages = models.CharField(max_length=200, blank=True)
    trained_on = models.CharField(
        max_length=200, blank=True
    )  # read by `evaluation.test_sets.overlap.parse_source_names`
    trained_until = models.DateField(null=True, blank=True)  # the last day of its training data
    license = models.CharField(max_length=100, blank=True)
    paper_url = models.URLField(blank=True)
    parameters = models.PositiveBigIntegerField(null=True, blank=True)
    is_published = models.BooleanField(default=False)
    publish_on = models.DateField(null=True, blank=True)  # an embargo: it is published on that day
    anonymous_until = models.DateField(null=True, blank=True)
    withdrawn_at = models.DateTimeField(null=True, blank=True)
    # When its files were deleted (KEEP_MODELS_DAYS).
    emptied_at = models.DateTimeField(null=True, editable=False)

    class Meta(Job.Meta):
        ordering = ["-queued_at"]
        constraints = [
            *Job.Meta.constraints,
            # Its files are the target's.
            models.CheckConstraint(
                condition=~Q(kind="target") | Q(target__isnull=False),
                name="submission_target_named",
            ),
        ]

    def __str__(self) -> str:
        return f"submission {self.name} to {self.task.code}"

    @property
    def is_anonymous(self) -> bool:
        """Whether its owner's name is hidden at present."""
        return self.anonymous_until is not None and get_today() < self.anonymous_until


class TrainedRows(models.Model):
    """Digests of a submission's training rows. Deleted when it is withdrawn."""

    submission = models.OneToOneField(
        Submission, on_delete=models.CASCADE, primary_key=True, related_name="trained_rows"
    )
    digests = models.BinaryField()  # of `evaluation.test_sets.overlap.pack_digests`

    def __str__(self) -> str:
        return f"rows of {self.submission}"
