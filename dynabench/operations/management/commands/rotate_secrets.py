"""Encrypt stored secrets again after a new SECRET_KEY, so that the former one may go."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from core.accounts.sealed import sealed_columns
from core.data.encryption import Unreadable, rotated
from dynabench.campaigns.place_services import renew_hashes


class Command(BaseCommand):
    help = "Encrypt stored secrets again with SECRET_KEY; SECRET_KEY_FALLBACKS may be empty then."

    def handle(self, *args: Any, **options: Any) -> None:
        done, unreadable = 0, []
        for model, field in sealed_columns():
            rows = model._default_manager.exclude(**{field: ""})
            for pk, before in rows.values_list("pk", field):
                try:
                    after = rotated(before)
                except Unreadable:
                    unreadable.append(f"{model._meta.verbose_name} {pk}")
                    continue
                # A row that was changed since it was read has the new key already.
                done += rows.filter(pk=pk, **{field: before}).update(**{field: after})
        renew_hashes()
        self.stdout.write(f"{done} secrets are encrypted with the new key.")
        if unreadable:
            raise CommandError(f"No key reads: {', '.join(unreadable)}. Enter these secrets again.")
