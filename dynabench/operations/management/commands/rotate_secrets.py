"""Encrypt stored secrets again after a new SECRET_KEY, so that the former one may go."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from core.accounts.sealed import sealed_columns
from core.data.encryption import Unreadable, rotated
from dynabench.campaigns.place_services import renew_hashes


class Command(BaseCommand):
    help = "Encrypt stored secrets again with SECRET_KEY; SECRET_KEY_FALLBACKS may be empty then."

    def handle(self, *args: Any, **options: Any) -> None:
        renewed_count, unreadable = 0, []
        for model, field in sealed_columns():
            rows = model._default_manager.exclude(**{field: ""})
            for pk, old_value in rows.values_list("pk", field):
                try:
                    new_value = rotated(old_value)
                except Unreadable:
                    unreadable.append(f"{model._meta.verbose_name} {pk}")
                    continue
                # A row that was changed since it was read has the new key already.
                renewed_count += rows.filter(pk=pk, **{field: old_value}).update(
                    **{field: new_value}
                )
        renew_hashes()
        self.stdout.write(f"{renewed_count} secrets are encrypted with the new key.")
        if unreadable:
            raise CommandError(f"No key reads: {', '.join(unreadable)}. Enter these secrets again.")
