"""Record successes of jobs and incidents of the site."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction
from django.utils import timezone

from core.accounts.models import User
from core.accounts.services import log
from core.jobs.models import Incident, LastSuccess


@contextmanager
def record_job_success(job: str) -> Iterator[None]:
    """Record the success of a scheduled job if the `with` block ends without an error.

    Takes no lock.
    """
    yield
    record_success(job)


def record_success(job: str) -> None:
    """Record that a job succeeded now; monitors warn if this was long ago. Takes no lock."""
    LastSuccess.objects.update_or_create(job=job, defaults={"succeeded_at": timezone.now()})


@transaction.atomic
def report_incident(
    *, actor: User, incident: Incident | None, title: str, text: str, is_over: bool
) -> Incident:
    """Publish an incident, or an update to one, and return it. Takes no lock: the last writer wins.

    incident: the one to update; None for a new one. is_over: whether the problem is solved.
    """
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
