"""The shared columns of models that are called at a URL: the secret and the last contact."""

from django.core.validators import RegexValidator
from django.db import models

validate_secret_name = RegexValidator(
    r"^TARGET_[A-Z0-9_]+$", "Use a name like TARGET_MYMODEL_SECRET: TARGET_ comes first."
)


class RemoteModel(models.Model):
    """A model that is called at a URL, perhaps with a bearer secret."""

    secret_env = models.CharField(
        max_length=100,
        blank=True,
        help_text="Name of the environment variable that holds its bearer secret.",
        validators=[validate_secret_name],
    )
    sealed_secret = models.TextField(
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="Encrypted; what its editors gave for this address.",
    )
    contact_at = models.DateTimeField(
        null=True,
        editable=False,
        help_text="When somebody last asked it to see whether it answers.",
    )
    contact_reason = models.CharField(
        max_length=20,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="Why it gave no answer then; empty: it answered.",
    )
    contact_detail = models.CharField(
        max_length=500,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="In its own words, without secrets.",
    )

    class Meta:
        abstract = True
