"""Trial restorations of a backup, to see whether it works and how long it takes."""

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

from core.env import read_env_secret
from core.files.storage.disk import open_scratch_folder
from dynabench.operations.backups.errors import BackupError

SITE_VARIABLES = ("STORAGE_URL", "CACHE_URL", "CACHE_URL_FILE", "DATABASE_URL_FILE", "POOLER")
"""Environment variables that the rehearsal must not use, or sets itself."""
CHECKED_PARTS = ("database", "secrets")
"""The doctor's checks that concern the restored site. Files were compared as they were restored."""


def rehearse_restore(folder_address: str, *, without_log: bool) -> list[str]:
    """Restore a backup into a scratch site, check and remove that site; return the output's lines.

    The site itself is not changed. Needs disk space for the unpacked backup. Raises BackupError.
    """
    started_at = time.monotonic()
    with open_scratch_folder() as folder, _create_scratch_database(folder) as url:
        environment = dict(os.environ)
        for name in SITE_VARIABLES:
            environment.pop(name, None)
        environment["DYNABENCH_HOME"] = str(folder)
        environment["DATABASE_URL"] = url
        environment["ERASURE_LOG"] = str(Path(settings.ERASURE_LOG).resolve())
        command = ["restore", folder_address]
        if not folder_address.startswith("s3://"):  # the command runs in another folder
            command = ["restore", str(Path(folder_address).resolve())]
        if without_log:
            command.append("--without-log")
        printed_lines = _run_command(command, environment, is_checked=True).splitlines()[:-1]
        report = json.loads(_run_command(["doctor", "--quick", "--json"], environment))
    lines, problem_lines = [], []
    for finding in report["findings"]:
        if finding["what"] in CHECKED_PARTS:
            line = f"{finding['what']}: {finding['message']}"
            lines.append(line)
            if finding["state"] == "bad":
                problem_lines.append(line)
    if problem_lines:
        raise BackupError("\n".join(problem_lines))
    seconds = time.monotonic() - started_at
    return [*printed_lines, *lines, f"{seconds:.0f} seconds"]


def _run_command(
    words: list[str], environment: Mapping[str, str], *, is_checked: bool = False
) -> str:
    """Return the output of a command in the scratch site. Raises BackupError.

    words: the command and its arguments. is_checked: whether to raise if the command fails.
    """
    command = [sys.executable, str(settings.BASE_DIR / "manage.py"), *words]
    process = subprocess.run(
        command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True
    )
    if process.returncode and is_checked:
        raise BackupError(process.stderr.strip().removeprefix("CommandError: "))
    return process.stdout


@contextmanager
def _create_scratch_database(folder: Path) -> Iterator[str]:
    """Yield the URL of an empty database of the same kind as the site's. Raises BackupError."""
    if connection.vendor == "sqlite":
        yield f"sqlite:///{folder}/db.sqlite3"
        return
    name = f"rehearsal_{os.getpid()}"
    try:
        with connection.cursor() as cursor:
            cursor.execute(f'CREATE DATABASE "{name}"')
    except DatabaseError as error:
        role = connection.settings_dict["USER"]
        raise BackupError(f"{error} Run as a superuser: ALTER ROLE {role} CREATEDB.") from None
    try:
        yield urlsplit(read_env_secret("DATABASE_URL"))._replace(path=f"/{name}").geturl()
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
