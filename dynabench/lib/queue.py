"""The only module that knows the queue library."""

from uuid import UUID

from django_q.brokers import get_broker
from django_q.models import Schedule
from django_q.tasks import async_task


def enqueue(function: str, *ids: int | UUID) -> None:
    """Have a worker call a dotted function with row ids; undone with the current transaction.

    A message may come twice, late or never: `function` first claims its row
    (`evaluation.leases.claim`), and `leases.sweep` rings again for rows that nobody claimed.
    """
    async_task(function, *ids)


def is_empty() -> bool:
    """Whether no message waits to be fetched by a worker."""
    return not get_broker().queue_size()


def every_minute(function: str) -> None:
    """Have a worker call a dotted function each minute, from now on."""
    Schedule.objects.get_or_create(func=function, schedule_type=Schedule.MINUTES, minutes=1)
