"""The ledger of campaigns, whose rows the database keeps as they are."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

import pytest
from django.db import IntegrityError, connection, transaction

from dynabench.campaigns.models import LedgerRow

triggers = import_module("dynabench.campaigns.migrations.0007_ledger_only_grows")


@contextmanager
def without_triggers() -> Iterator[None]:
    """Rows can be deleted, as between two tests; costs nothing where there are none."""
    if not LedgerRow.objects.exists():
        yield
        return
    with connection.schema_editor() as editor:
        triggers.drop(None, editor)
    yield
    with connection.schema_editor() as editor:
        triggers.make(None, editor)


def assert_refused() -> None:
    """Whatever writes: a row that is there is neither changed nor deleted."""
    rows = LedgerRow.objects.all()
    before = list(rows.values())
    assert before
    for write in (lambda: rows.update(amount=1), rows.delete):
        with pytest.raises(IntegrityError), transaction.atomic():
            write()
    assert list(rows.values()) == before
