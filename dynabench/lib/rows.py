"""Storing what changed of a row."""

from collections.abc import Mapping
from typing import Any

from django.db.models import Model


def changed_fields(row: Model, values: Mapping[str, Any]) -> list[str]:
    """Store the values that differ; returns their names."""
    changed = [name for name, value in values.items() if getattr(row, name) != value]
    for name in changed:
        setattr(row, name, values[name])
    row.save(update_fields=changed)
    return changed
