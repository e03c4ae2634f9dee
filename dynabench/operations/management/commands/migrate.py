"""Django's own command, without garbage collection and without keeping people waiting.

A migration creates thousands of classes that live until the next one. The garbage collector took
two fifths of the migrations' time to search them again and again. Without it, all migrations take
0.5 GB.

On PostgreSQL, while a migration waits for a table, later queries of that table wait, too. A
deadlock with a migration makes a request fail. So the command soon gives up, lets other queries
run, and tries again. Each migration is a transaction, and finished ones stay.
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

LOCK_TIMEOUT_MS = 500  # less than the second after which PostgreSQL ends one of two
MAX_TRIES = 60
RETRY_SECONDS = 1.0
LOCK_ERROR_CODES = {"55P03", "40P01"}
"""PostgreSQL's codes for a lock timeout and for a deadlock."""

states: Any = ProjectState
_original_add_model = ProjectState.add_model


def make_private(database: Path) -> None:
    """Create SQLite's file readable by its owner only, or remove other users' access to it.

    The journal gets the same mode. Does nothing if this user owns neither the file nor the folder.
    """
    with suppress(OSError):
        os.close(os.open(database, os.O_CREAT | os.O_RDWR, mode=0o600))
        database.chmod(stat.S_IMODE(database.stat().st_mode) & ~stat.S_IRWXO)


@contextmanager
def skip_related_models() -> Iterator[None]:
    """Patch Django so that adding a model does not render all related models again.

    Rendering them took two fifths of the time. Rendering is not needed: no model refers to a new
    one yet, and the models that the new one refers to are updated.
    """
    states.add_model = _add_model_without_related
    try:
        yield
    finally:
        states.add_model = _original_add_model


def _add_model_without_related(state: ProjectState, model: ModelState) -> None:
    # Without it `add_model` only notes the model and renders nothing.
    apps = state.__dict__.pop("apps", None)  # which Django keeps there once it has made them
    _original_add_model(state, model)
    if apps is not None:
        apps.render_multiple([model])
        state.__dict__["apps"] = apps


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        # Rendering models makes next to no garbage and many objects; see above.
        gc.disable()
        database = connections[options["database"]]
        if database.vendor == "sqlite":
            make_private(Path(str(database.settings_dict["NAME"])))
        try:
            with skip_related_models():
                if database.vendor == "postgresql":
                    self._migrate_gently(*args, **options)
                else:
                    super().handle(*args, **options)
        finally:
            gc.enable()

    def _migrate_gently(self, *args: Any, **options: Any) -> None:
        connection = connections[options["database"]]
        with connection.cursor() as cursor:
            # For this session, and reset below: `setup` goes on with the connection.
            cursor.execute("SELECT set_config('lock_timeout', %s, false)", [f"{LOCK_TIMEOUT_MS}ms"])
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
                    self.stdout.write("A table is in use. Trying again.")
                    time.sleep(RETRY_SECONDS)
        finally:
            with suppress(Error), connection.cursor() as cursor:  # it may be what failed
                cursor.execute("RESET lock_timeout")
