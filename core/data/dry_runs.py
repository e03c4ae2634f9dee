"""Run a service as a rehearsal: with all its checks, and without a trace in the database."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction


@contextmanager
def rehearse(is_dry_run: bool) -> Iterator[None]:
    """Run the block in a transaction, and undo everything that it stored if this is a dry run.

    So a dry run makes exactly the checks of the real run. Functions registered with `on_commit` are
    dropped with it, so no mail or webhook leaves.
    """
    with transaction.atomic():
        yield
        if is_dry_run:
            transaction.set_rollback(True)
