"""Writes about publications. A publication is resumed, and worked on by one process at a time."""

from datetime import timedelta

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from core.accounts.services import log
from core.errors import Refused
from evaluation.dataset_releases.undo_services import note_download
from evaluation.models import Dataset, Publication

LEASE = timedelta(minutes=15)
"""How long a process may work without saying so. Longer than one file takes to upload."""


def claim_publication(dataset: Dataset, place: str, repository: str = "") -> Publication:
    """Return the publication of a dataset at a place, for this process alone.

    Raises Refused if another process works on it, if it was published in another repository, or if
    the release was undone. Takes no lock: a conditional update decides between two processes.
    """
    # From now on, the release is final, as if somebody had downloaded it.
    if not note_download(dataset):
        raise Refused(f"{dataset} was undone.")
    publication, _ = Publication.objects.get_or_create(
        dataset=dataset, place=place, defaults={"repository": repository}
    )
    if publication.repository != repository:
        raise Refused(
            f"{dataset} is published as {publication.repository}. Use this name again, or release "
            "a new version."
        )
    now = timezone.now()
    is_free = Q(leased_until=None) | Q(leased_until__lt=now)
    free_rows = Publication.objects.filter(is_free, pk=publication.pk)
    if not free_rows.update(leased_until=now + LEASE):
        raise Refused(f"Another process is publishing {dataset}. Try again in 15 minutes.")
    publication.refresh_from_db()
    return publication


def store_progress(publication: Publication, **columns: str) -> None:
    """Store what a place has told, such as the id of a draft, and renew the lease."""
    now = timezone.now()
    rows = Publication.objects.filter(pk=publication.pk)
    rows.update(leased_until=now + LEASE, **columns)
    publication.refresh_from_db()


def end_work(publication: Publication) -> None:
    """Give the publication back without having published it, so that it can be resumed at once."""
    Publication.objects.filter(pk=publication.pk).update(leased_until=None)


@transaction.atomic
def finish_publication(publication: Publication, *, url: str, doi: str = "") -> None:
    """Store that a dataset is published, and log it."""
    publication.url, publication.doi = url, doi or publication.doi
    publication.published_at, publication.leased_until = timezone.now(), None
    publication.save(update_fields=["url", "doi", "published_at", "leased_until"])
    log(None, "dataset.published", publication.dataset, place=publication.place, url=url)
