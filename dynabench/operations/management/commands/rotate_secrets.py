"""Encrypt stored secrets with a new SECRET_KEY, so that the former key can be dropped."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from core.accounts.sealed import iterate_sealed_columns
from core.data.encryption import UnreadableSecret, rotate_token
from dynabench.campaigns.place_services import renew_hashes


class Command(BaseCommand):
    help = (
        "Encrypt all stored secrets with the current SECRET_KEY. Then you can empty "
        "SECRET_KEY_FALLBACKS."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        renewed_count, unreadable = 0, []
        for model, field in iterate_sealed_columns():
            rows = model._default_manager.exclude(**{field: ""})
            for pk, old_value in rows.values_list("pk", field):
                try:
                    new_value = rotate_token(old_value)
                except UnreadableSecret:
                    unreadable.append(f"{model._meta.verbose_name} {pk}")
                    continue
                # A row that was changed since it was read has the new key already.
                renewed_count += rows.filter(pk=pk, **{field: old_value}).update(
                    **{field: new_value}
                )
        renew_hashes()
        self.stdout.write(f"{renewed_count} secrets encrypted with the new key.")
        if unreadable:
            raise CommandError(
                f"No key can decrypt: {', '.join(unreadable)}. Enter these secrets again."
            )
