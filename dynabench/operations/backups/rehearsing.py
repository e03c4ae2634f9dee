"""Restoring a backup beside the site, to see that it would work and how long it takes."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings
from django.db import DatabaseError, connection

from core.env import env_secret
from core.files.storage.disk import scratch
from dynabench.operations.backups.errors import BackupError

OF_THE_SITE = ("STORAGE_URL", "CACHE_URL", "CACHE_URL_FILE", "DATABASE_URL_FILE", "POOLER")
"""What the rehearsal must not touch, or has of its own."""
LOOKED_AT = ("database", "secrets")
"""Lines of the doctor that tell of it; each file was compared with its digest as it came."""


def rehearse(where: str, *, without_log: bool) -> list[str]:
    """Restore a backup into a scratch site, look at it, and remove it; return what was said.

    The site stays as it is. Needs as much room as the backup takes unpacked. Raises BackupError.
    """
    began = time.monotonic()
    with scratch() as folder, _scratch_database(folder) as url:
        environment = {
            name: value for name, value in os.environ.items() if name not in OF_THE_SITE
        } | {
            "DYNABENCH_HOME": str(folder),
            "DATABASE_URL": url,
            "ERASURE_LOG": str(Path(settings.ERASURE_LOG).resolve()),
        }
        place = where if where.startswith("s3://") else str(Path(where).resolve())
        options = ["--without-log"] if without_log else []
        printed = _run(["restore", place, *options], environment, is_checked=True).splitlines()[:-1]
        report = json.loads(_run(["doctor", "--quick", "--json"], environment))
    lines = [finding for finding in report["findings"] if finding["what"] in LOOKED_AT]
    if wrong := [finding for finding in lines if finding["state"] == "bad"]:
        raise BackupError(
            "\n".join(f"{finding['what']}: {finding['message']}" for finding in wrong)
        )
    seconds = time.monotonic() - began
    return [
        *printed,
        *(f"{finding['what']}: {finding['message']}" for finding in lines),
        f"{seconds:.0f} seconds",
    ]


def _run(words: list[str], environment: Mapping[str, str], *, is_checked: bool = False) -> str:
    """Return what a command of the scratch site prints. Raises BackupError.

    is_checked: it has to end well.
    """
    command = [sys.executable, str(settings.BASE_DIR / "manage.py"), *words]
    done = subprocess.run(
        command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True
    )
    if done.returncode and is_checked:
        raise BackupError(done.stderr.strip().removeprefix("CommandError: "))
    return done.stdout


@contextmanager
def _scratch_database(folder: Path) -> Iterator[str]:
    """Give the address of an empty database of the site's kind. Raises BackupError."""
    if connection.vendor == "sqlite":
        yield f"sqlite:///{folder}/db.sqlite3"
        return
    name = f"rehearsal_{os.getpid()}"
    try:
        with connection.cursor() as cursor:
            cursor.execute(f'CREATE DATABASE "{name}"')
    except DatabaseError as error:
        role = connection.settings_dict["USER"]
        raise BackupError(f"{error} As a superuser: ALTER ROLE {role} CREATEDB.") from None
    try:
        yield urlsplit(env_secret("DATABASE_URL"))._replace(path=f"/{name}").geturl()
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
