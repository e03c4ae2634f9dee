"""Django's own command, with the garbage collector at rest.

A migration makes thousands of classes that live as long as the next ones: looking through them
again and again took two fifths of its time. All migrations from nothing on take 0.5 GB so.
"""

import gc
from typing import Any

from django.core.management.commands import migrate


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        gc.disable()
        try:
            super().handle(*args, **options)
        finally:
            gc.enable()
