"""The only module that knows the queue library."""

from django_q.tasks import async_task


def enqueue(function: str, *ids: int) -> None:
    """Have a worker call a dotted function with row ids; undone with the current transaction.

    A message may come twice, late or never: `function` first claims its row
    (`evaluation.leases.claim`), and `leases.sweep` rings again for rows that nobody claimed.
    """
    async_task(function, *ids)
