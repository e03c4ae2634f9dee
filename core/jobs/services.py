"""Writing down what happens to the site."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction
from django.utils import timezone

from core.accounts.models import User
from core.accounts.services import log
from core.jobs.models import Incident, LastSuccess


@contextmanager
def noted(job: str) -> Iterator[None]:
    """Record the success of a scheduled job if the context ends without an error. No lock."""
    yield
    note_success(job)


def note_success(job: str) -> None:
    """Record that a job succeeded now; monitors warn if this was long ago. Takes no lock."""
    LastSuccess.objects.update_or_create(job=job, defaults={"succeeded_at": timezone.now()})


@transaction.atomic
def tell_incident(
    *, actor: User, incident: Incident | None, title: str, text: str, is_over: bool
) -> Incident:
    """Publish an incident or an update to one; return it. No lock: the last writer wins."""
    now = timezone.now()
    is_new = incident is None
    if incident is None:
        incident = Incident(began_at=now)
    incident.title = title
    incident.text = text
    if not is_over:
        incident.ended_at = None
    elif incident.ended_at is None:
        incident.ended_at = now
    if is_new:
        incident.save(force_insert=True)
    else:
        incident.save(update_fields=["title", "text", "ended_at"])
    log(actor, "site.incident", "site", title=title, is_over=is_over)
    return incident
