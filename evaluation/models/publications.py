"""Where a released dataset was published outside of the site."""

from django.db import models
from django.db.models.functions import Now

from evaluation.models.datasets import Dataset


class Publication(models.Model):
    """The publication of a dataset at one place, from its first attempt on.

    A row without `published_at` is a publication that was begun. The next attempt resumes it.
    """

    class Place(models.TextChoices):
        HUB = "hub"
        ZENODO = "zenodo"

    dataset = models.ForeignKey(Dataset, on_delete=models.PROTECT, related_name="publications")
    place = models.CharField(max_length=10, choices=Place)
    repository = models.CharField(max_length=200, blank=True)  # hub: organisation/name
    record = models.CharField(max_length=40, blank=True)  # Zenodo: the id of the draft
    doi = models.CharField(max_length=100, blank=True)  # Zenodo: reserved with the draft
    url = models.CharField(max_length=300, blank=True)
    started_at = models.DateTimeField(db_default=Now(), editable=False)
    # Until then, one process works on it, and others refuse to. It renews this while it works.
    leased_until = models.DateTimeField(null=True, editable=False)
    published_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        ordering = ["dataset", "place"]
        constraints = [
            models.UniqueConstraint(fields=["dataset", "place"], name="publication_once_a_place")
        ]

    def __str__(self) -> str:
        return f"{self.dataset} at {self.place}"

    @property
    def doi_url(self) -> str:
        """Return the URL of the DOI, which leads to the record wherever it moves."""
        return f"https://doi.org/{self.doi}" if self.doi else ""
