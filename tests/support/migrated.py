"""A migrated SQLite database that all test processes copy, kept as long as no migration changes."""

import fcntl
import hashlib
import os
import shutil
import sqlite3
from pathlib import Path

import django
from django.conf import settings
from django.db import connection

ROOT = Path(__file__).parents[2]
_locks = []


def kept() -> Path:
    """Return where it lies: in `var/`, which git ignores, by a digest of what made it."""
    digest = hashlib.sha256(django.__version__.encode())
    for file in sorted(ROOT.glob("*/migrations/*.py")) + sorted(ROOT.glob("*/*/migrations/*.py")):
        digest.update(file.read_bytes())
    for file in sorted(ROOT.glob("requirements*.txt")):  # other applications' tables
        digest.update(file.read_bytes())
    folder = ROOT / "var"
    folder.mkdir(exist_ok=True)
    return folder / f"migrated-{digest.hexdigest()[:16]}.sqlite3"


def copy() -> bool:
    """Put a copy where the test database will be; False if none is kept, and others wait for it."""
    name = settings.DATABASES["default"]["TEST"]["NAME"]
    for suffix in ("", "-wal", "-shm"):  # a killed run leaves side files, which fit no new database
        Path(f"{name}{suffix}").unlink(missing_ok=True)
    file = kept()
    lock = file.with_suffix(".lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    if not file.exists():
        _locks.append(lock)
        return False
    lock.close()
    shutil.copyfile(file, name)
    return True


def keep() -> None:
    """Keep a copy of the test database, as a whole or not at all."""
    file = kept()
    new = file.with_suffix(f".{os.getpid()}")
    target = sqlite3.connect(new)
    connection.ensure_connection()
    connection.connection.backup(target)
    target.close()
    new.replace(file)
    _locks.pop().close()
