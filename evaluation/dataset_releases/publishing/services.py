"""Writes about publications. A publication is resumed, and worked on by one process at a time."""

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from core.accounts.services import log
from core.errors import Refused
from evaluation.dataset_releases.undo_services import note_download
from evaluation.heartbeat import call_with_beat
from evaluation.models import Dataset, Publication

T = TypeVar("T")

LEASE = timedelta(minutes=1)
"""How long a process may be silent. If it was killed, the next attempt begins after this time."""
RENEWAL = timedelta(seconds=10)
"""The time between two renewals, so that beats each second cost few queries."""


def claim_publication(dataset: Dataset, place: str, repository: str = "") -> Publication:
    """Return the publication of a dataset at a place, for this process alone.

    Raises Refused if another process works on it, if it was published in another repository, or if
    the release was undone. Takes no lock: a conditional update decides between two processes.
    """
    # It does not become final here, because a wrong token must not prevent an undo.
    if not Dataset.objects.filter(pk=dataset.pk, state=Dataset.State.DONE).exists():
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
        raise Refused(f"Another process is publishing {dataset}. Try again in a minute.")
    publication.refresh_from_db()
    return publication


def make_final(publication: Publication) -> None:
    """Make a release final, as a download does. Call it before its first bytes leave.

    Raises Refused if it was undone. Takes no lock, like `note_download`.
    """
    if not note_download(publication.dataset):
        raise Refused(f"{publication.dataset} was undone.")


def store_progress(publication: Publication, **columns: str) -> None:
    """Store what a place has told, such as the id of a draft, and renew the lease.

    Raises Refused if the lease is lost, because this process was silent for too long. Then another
    one works on it. Takes no lock: a conditional update decides.
    """
    until = timezone.now() + LEASE
    # The end of the lease tells whose it is: each renewal sets another one, to the microsecond.
    held_rows = Publication.objects.filter(pk=publication.pk, leased_until=publication.leased_until)
    if not held_rows.update(leased_until=until, **columns):
        raise Refused(f"Another process has taken over publishing {publication.dataset}.")
    publication.refresh_from_db()


def keep_lease(publication: Publication) -> None:
    """Renew the lease if it is time to. Call it at least every few seconds. Raises Refused."""
    assert publication.leased_until is not None
    if publication.leased_until - timezone.now() < LEASE - RENEWAL:
        store_progress(publication)


def send_patiently(publication: Publication, send: Callable[[], T]) -> T:
    """Return the result of a request to a place, keeping the lease for as long as it takes.

    The request runs in a thread and must not use the database. Raises Refused if the lease is lost.
    """
    keep_lease(publication)
    return call_with_beat(send, lambda: keep_lease(publication))


def end_work(publication: Publication) -> None:
    """Give the publication back without having published it, so that it can be resumed at once.

    Does nothing if the lease is lost.
    """
    held_rows = Publication.objects.filter(pk=publication.pk, leased_until=publication.leased_until)
    held_rows.update(leased_until=None)


@transaction.atomic
def finish_publication(publication: Publication, *, url: str, doi: str = "") -> None:
    """Store that a dataset is published, and log it.

    Locks the publication. Raises Refused if the lease is lost: whoever has it will store the same.
    """
    row = Publication.objects.select_for_update(of=("self",)).get(pk=publication.pk)
    if row.leased_until != publication.leased_until:
        raise Refused(f"Another process has taken over publishing {publication.dataset}.")
    publication.url, publication.doi = url, doi or publication.doi
    publication.published_at, publication.leased_until = timezone.now(), None
    publication.save(update_fields=["url", "doi", "published_at", "leased_until"])
    log(None, "dataset.published", publication.dataset, place=publication.place, url=url)
