"""Contexts, which people write about, and the pictures and recordings in them."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from core.accounts.models import Annotator
from tasks.models.rounds import Round
from tasks.models.task import Task


def _media_path(media: "Media", name: str) -> str:
    return f"tasks/{media.task_id}/media/{media.digest[:2]}/{name}"


class Media(models.Model):
    """A picture or a recording of a task in its stored form, identified by its digest.

    Contexts, examples and drafts refer to it by digest within their JSON, which no foreign key can
    show. So storing them sets `is_used`; unused files are deleted after a day.
    """

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="media")
    digest = models.CharField(max_length=64, help_text="SHA-256 of the file.")
    mime = models.CharField(max_length=20)
    size = models.PositiveIntegerField(help_text="In bytes.")
    about = models.JSONField(default=dict, help_text="width and height, or seconds.")
    file = models.FileField(upload_to=_media_path, max_length=200)
    sent_by = models.ForeignKey(Annotator, on_delete=models.SET_NULL, null=True, related_name="+")
    kept_from = models.DateTimeField(db_default=Now(), help_text="The day of an unused one begins.")
    is_used = models.BooleanField(default=False, help_text="A context, example or vote names it.")
    is_withdrawn = models.BooleanField(
        default=False, help_text="Nothing that stands names it any more: not for everybody."
    )

    class Meta:
        # Two people who send the same file at once get one row: the second insert fails, and
        # `store_decoded` takes the first one's.
        constraints = [models.UniqueConstraint(fields=["task", "digest"], name="media_once")]
        indexes = [
            # `serve_media_file` looks a file up by its digest, in whatever task it is.
            models.Index(fields=["digest"], name="media_digest"),
            # `tidy_media` looks for the oldest unused files, of which there are few among many
            # rows.
            models.Index(fields=["kept_from"], condition=Q(is_used=False), name="media_unused"),
        ]

    def __str__(self) -> str:
        return f"{self.mime} {self.digest[:12]} of {self.task}"

    @property
    def ending(self) -> str:
        """Return the ending of the file name, which depends only on the type."""
        return self.mime.partition("/")[2]


class ContextBatch(models.Model):
    """An import of contexts."""

    round = models.ForeignKey(Round, on_delete=models.CASCADE, related_name="batches")
    file_name = models.CharField(max_length=200)
    imported_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True
    )
    imported_at = models.DateTimeField(db_default=Now())
    license = models.CharField(max_length=100, blank=True, default="", db_default="")
    citation = models.TextField(blank=True, default="", db_default="")
    origin = models.CharField(max_length=400, blank=True, default="", db_default="")
    """The URL from which the file was taken, at a commit."""

    class Meta:
        verbose_name = "import of contexts"
        verbose_name_plural = "imports of contexts"

    def __str__(self) -> str:
        return f"{self.file_name} in {self.round}"


class Context(models.Model):
    """A text or picture that people write about. The configuration defines its fields."""

    round = models.ForeignKey(Round, on_delete=models.CASCADE, related_name="contexts")
    batch = models.ForeignKey(ContextBatch, on_delete=models.SET_NULL, null=True, blank=True)
    fields = models.JSONField(default=dict)
    tag = models.CharField(max_length=100, blank=True)
    metadata = models.JSONField(default=dict, blank=True)
    # Of the fields only: contexts that differ in tag or metadata alone are the same text to write
    # about.
    digest = models.CharField(max_length=32, editable=False)
    is_retired = models.BooleanField(default=False, help_text="Not handed out any more.")

    class Meta:
        constraints = [
            # `store_contexts` inserts with `ignore_conflicts`: a context that the round has
            # already, also by another import at this moment, is left out here.
            models.UniqueConstraint(
                fields=["round", "digest"],
                name="context_once",
                violation_error_message="This round has this context already.",
            )
        ]

    def __str__(self) -> str:
        return f"context {self.pk} of {self.round}"
