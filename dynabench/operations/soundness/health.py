"""Checks whether each part of the site responds, for the doctor and for monitors (/readyz/)."""

import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, NamedTuple

from django.apps import apps
from django.conf import settings
from django.contrib.staticfiles.storage import ManifestFilesMixin
from django.core.cache import cache
from django.core.files.storage import default_storage, storages
from django.db import DatabaseError, InterfaceError, connection
from django.db.migrations.recorder import MigrationRecorder

from core.errors import Unavailable
from core.outside import ServiceHanging, ThreadSlots
from evaluation.isolation.queue.leases import find_stuck_jobs
from tasks.models import Round, TargetModel
from tasks.targets.endpoints.base import EndpointError
from tasks.targets.endpoints.client import SHARED_TRANSPORT
from tasks.targets.endpoints.transport import RETRY_IDEMPOTENT, parse_url

State = Literal["ok", "note", "bad"]
"""The state of a part. note: nothing is broken, but the operator should know something."""
STUCK_AGE = timedelta(minutes=5)
MODEL_SERVER_SECONDS = 2.0
TRIAL_BYTES = 2**20
MAX_SHOWN = 3
_slots = ThreadSlots()  # of threads that wait for the model server


class Finding(NamedTuple):
    """The result of a check. what: the checked part. message: an explanation for the operator."""

    what: str
    state: State
    message: str


def check_database() -> Finding:
    """Check that the database answers."""
    try:
        with connection.cursor() as cursor:
            # A connection that was kept open may be dead, which shows only when it is used.
            cursor.execute("SELECT 1")
    except (DatabaseError, InterfaceError) as error:
        return Finding("database", "bad", f"Not responding: {error}")
    return Finding("database", "ok", connection.vendor)


def check_schema() -> Finding:
    """Check that the database's tables belong to this version or a later one.

    The newest migration of each of the site's own apps must have been applied.
    """
    # None in an empty database.
    applied_migrations = MigrationRecorder(connection).applied_migrations().keys()
    newest_names: dict[str, str] = {}
    # Only our own: a library's migrations come with its version.
    for app in apps.get_app_configs():
        if Path(app.path).is_relative_to(settings.BASE_DIR):
            for file in sorted(Path(app.path, "migrations").glob("0*.py")):
                newest_names[app.label] = file.stem
    if missing_migrations := sorted(newest_names.items() - applied_migrations):
        names = ", ".join(" ".join(migration) for migration in missing_migrations)
        return Finding("schema", "bad", f"Run manage.py migrate: {names}.")
    return Finding("schema", "ok", "all migrations applied")


def check_static_files() -> Finding:
    """Check that the collected static files belong to this version or a later one.

    A page that refers to a missing file fails. With DEBUG, files are served from their sources.
    """
    # A storage of its own, which reads the list as it is now and not as this process read it.
    storage = storages.create_storage(settings.STORAGES["staticfiles"])
    if not isinstance(storage, ManifestFilesMixin):
        return Finding("static files", "ok", "served from their sources")
    collected_files = storage.hashed_files
    sources = settings.BASE_DIR / "static"
    names = (path.relative_to(sources) for path in sources.glob("**/*") if path.is_file())
    missing_names = sorted(
        name.as_posix() for name in names if name.as_posix() not in collected_files
    )
    if missing_names:
        listed_names = ", ".join(missing_names[:MAX_SHOWN])
        return Finding(
            "static files", "bad", f"Run manage.py collectstatic: {listed_names} is missing."
        )
    return Finding("static files", "ok", f"{len(collected_files)} are collected")


def check_cache() -> Finding:
    """Check that a written value can be read, and that a shared cache itself responds.

    While a shared cache is down, a local substitute responds in its place.
    """
    shared_cache: Any = cache
    try:
        if settings.CACHE_URL:
            shared_cache.ping()
        # Ten seconds are enough to read it back.
        cache.set("doctor", "well", 10)
        value = cache.get("doctor")
    except Exception as error:  # whatever the backend's library raises
        return Finding("cache", "bad", f"Not responding: {error}")
    if value != "well":
        return Finding("cache", "bad", "A written value could not be read.")
    scope = "shared" if settings.CACHE_URL else "separate in each process"
    return Finding("cache", "ok", scope)


def check_disk() -> Finding:
    """Check that the home folder is writable."""
    try:
        with tempfile.TemporaryFile(dir=settings.HOME) as file:
            file.write(bytes(TRIAL_BYTES))
    except OSError as error:
        return Finding("disk", "bad", f"{settings.HOME} is not writable: {error.strerror}")
    return Finding("disk", "ok", f"{settings.HOME} is writable")


def check_stored_files() -> Finding:
    """Check that the file storage responds: the bucket or the media folder."""
    store_kind = "a bucket" if settings.STORAGE_URL else "a folder"
    try:
        # Whether it is there does not matter, only that the store answers.
        default_storage.exists("doctor")
    except Unavailable as error:
        return Finding("stored files", "bad", error.detail or str(error))
    return Finding("stored files", "ok", f"{store_kind} responds")


def check_model_server() -> Finding:
    """Check that the model server answers, or that no open round needs it."""
    url = parse_url(f"{settings.MODEL_SERVER_URL}/health")
    try:
        # Not more than some threads wait for it while it hangs.
        with _slots.take_slot():
            reply = SHARED_TRANSPORT.request(
                "GET", url, seconds=MODEL_SERVER_SECONDS, max_bytes=2**16,
                allowed_hosts=(url.host,), secret=None, payload=None, retry=RETRY_IDEMPOTENT,
            )  # fmt: skip
        trouble = ""
        if reply.status != 200:
            trouble = f"Responded with status {reply.status}."
    except EndpointError as error:
        trouble = str(error)
    except ServiceHanging:
        trouble = "Not responding to any of the waiting requests."
    if not trouble:
        return Finding("model server", "ok", settings.MODEL_SERVER_URL)
    # Away, but nobody writes for a model that it serves.
    open_targets = TargetModel.objects.filter(rounds__state=Round.State.OPEN)
    if open_targets.filter(url="").exclude(source="").exists():
        return Finding("model server", "bad", trouble)
    return Finding("model server", "ok", "no open round needs it")


def check_queue() -> Finding:
    """Check that no job is stuck, like `manage.py check_queue`."""
    problems = find_stuck_jobs(STUCK_AGE)
    if problems:
        return Finding("queue", "bad", "\n".join(problems))
    return Finding("queue", "ok", "no job is stuck")


PART_CHECKS: dict[str, Callable[[], Finding]] = {
    "database": check_database,
    "schema": check_schema,
    "cache": check_cache,
    "disk": check_disk,
    "stored files": check_stored_files,
    "model server": check_model_server,
    "queue": check_queue,
}


def read_part_states() -> dict[str, str]:
    """Return the state of each part by name: "ok", "down" or "unknown".

    A state is unknown if it is in the database and the database is down.
    """
    states = {}
    for name, check in PART_CHECKS.items():
        try:
            states[name] = "down" if check().state == "bad" else "ok"
        except (DatabaseError, InterfaceError):
            states[name] = "unknown"
    return states
