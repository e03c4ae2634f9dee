"""Taking an example out of everything that is counted or released from now on."""

from django.db import transaction
from django.utils import timezone

from annotation.models import Example
from dynabench.accounts.models import User
from dynabench.accounts.services import log


@transaction.atomic
def withdraw_example(*, example: Example, actor: User | None, reason: str) -> Example:
    """Retract an example even when it is judged or released; twice is once. Locks the example.

    For moderators, and for authors who delete their data. It leaves the numbers of its round at
    once. A version that is released keeps it; the next version has a tombstone in its place.
    `reason` stands in the log and is never public. Who may do it is the caller's question.
    """
    locked = Example.objects.select_for_update(of=("self",)).get(pk=example.pk)
    if locked.retracted_at is None:
        locked.retracted_at = timezone.now()
        locked.save(update_fields=["retracted_at"])
        log(actor, "example.withdrawn", locked, reason=reason)
    return locked
