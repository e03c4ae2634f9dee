"""Django's own command, with the garbage collector at rest and without keeping people waiting.

A migration makes thousands of classes that live as long as the next ones: looking through them
again and again took two fifths of its time. All migrations from nothing on take 0.5 GB so.

On PostgreSQL whoever comes after a migration that waits for a table waits as well, and two that
wait for each other cost somebody a request. So it gives up soon, lets them through, and tries
again: each migration is a transaction, and those before it stay.
"""

import gc
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from django.core.management.commands import migrate
from django.db import Error, OperationalError, connections
from django.db.migrations.state import ModelState, ProjectState

LOCK_MS = 500  # less than the second after which PostgreSQL ends one of two
MAX_TRIES = 60
RETRY_SECONDS = 1.0
LOCK_ERROR_CODES = {"55P03", "40P01"}
"""PostgreSQL's codes of a lock that could not be had, and of two that wait for each other."""

states: Any = ProjectState
_add_model = ProjectState.add_model


def keep_private(database: Path) -> None:
    """Create SQLite's file readable by its owner only, or remove other users' access to it.

    Its journal gets the same mode. Does nothing if we own neither the file nor the folder.
    """
    with suppress(OSError):
        os.close(os.open(database, os.O_CREAT | os.O_RDWR, mode=0o600))
        database.chmod(stat.S_IMODE(database.stat().st_mode) & ~stat.S_IRWXO)


@contextmanager
def skip_related_models() -> Iterator[None]:
    """Patch Django so that adding a model does not render all related models again.

    Rendering them took two fifths of the time. No model refers to a new one yet, and the models
    that it refers to learn of it.
    """
    states.add_model = _add_without_related
    try:
        yield
    finally:
        states.add_model = _add_model


def _add_without_related(state: ProjectState, model: ModelState) -> None:
    # Without it `add_model` only notes the model and renders nothing.
    apps = state.__dict__.pop("apps", None)  # which Django keeps there once it has made them
    _add_model(state, model)
    if apps is not None:
        apps.render_multiple([model])
        state.__dict__["apps"] = apps


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        # Rendering models makes next to no garbage and many objects; see above.
        gc.disable()
        database = connections[options["database"]]
        if database.vendor == "sqlite":
            keep_private(Path(str(database.settings_dict["NAME"])))
        try:
            with skip_related_models():
                if database.vendor == "postgresql":
                    self._gently(*args, **options)
                else:
                    super().handle(*args, **options)
        finally:
            gc.enable()

    def _gently(self, *args: Any, **options: Any) -> None:
        connection = connections[options["database"]]
        with connection.cursor() as cursor:
            # For this session, and reset below: `setup` goes on with the connection.
            cursor.execute("SELECT set_config('lock_timeout', %s, false)", [f"{LOCK_MS}ms"])
        try:
            for tries_left in reversed(range(MAX_TRIES)):
                try:
                    super().handle(*args, **options)
                    return
                except OperationalError as error:
                    if (
                        getattr(error.__cause__, "sqlstate", "") not in LOCK_ERROR_CODES
                        or not tries_left
                    ):
                        raise
                    self.stdout.write("A table is in use; again.")
                    time.sleep(RETRY_SECONDS)
        finally:
            with suppress(Error), connection.cursor() as cursor:  # it may be what failed
                cursor.execute("RESET lock_timeout")
