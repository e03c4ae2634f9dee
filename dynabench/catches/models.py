"""The authors' consents to show catches, and the first catch of each kind."""

from django.db import models
from django.db.models.functions import Now

from annotation.models import Example
from core.accounts.models import Annotator
from tasks.models import Round


class SharedCatch(models.Model):
    """An author's consent that a catch has a page of its own with their pseudonym.

    Withdrawing the consent deletes the row.
    """

    example = models.OneToOneField(
        Example, models.CASCADE, primary_key=True, related_name="shared_catch"
    )
    annotator = models.ForeignKey(Annotator, models.CASCADE, related_name="shared_catches")
    shared_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"shared {self.example_id}"


class FirstCatch(models.Model):
    """The first catch of a round in a slice, such as a challenge. It is never replaced."""

    round = models.ForeignKey(Round, models.CASCADE, related_name="+", db_index=False)
    slice = models.CharField(max_length=60, help_text="`challenge`, `tag` or a field of labels.")
    value = models.CharField(max_length=200)
    example = models.ForeignKey(Example, models.CASCADE, related_name="firsts")
    found_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["pk"]
        constraints = [
            # Of two workers that find a first catch at once, one stores it.
            models.UniqueConstraint(fields=["round", "slice", "value"], name="first_catch_once")
        ]

    def __str__(self) -> str:
        return f"first with {self.slice}={self.value}"
