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
    """Note when a job of the clock ends well; monitors tell when that is long ago. No lock."""
    yield
    LastSuccess.objects.update_or_create(job=job, defaults={"succeeded_at": timezone.now()})


@transaction.atomic
def tell_incident(
    *, actor: User, incident: Incident | None, title: str, text: str, is_over: bool
) -> Incident:
    """Tell everybody of trouble, or what is new of an incident. No lock: the last word stands."""
    now = timezone.now()
    told = incident or Incident(began_at=now)
    told.title, told.text = title, text
    told.ended_at = (told.ended_at or now) if is_over else None
    if incident is None:
        told.save(force_insert=True)
    else:
        told.save(update_fields=["title", "text", "ended_at"])
    log(actor, "site.incident", "site", title=title, is_over=is_over)
    return told
