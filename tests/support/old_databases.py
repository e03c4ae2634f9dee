"""Databases of former releases, as dumps made them."""

import os
import sqlite3
from pathlib import Path

from django.conf import settings

from tests.support.live import ROOT

RELEASES = sorted((ROOT / "tests" / "releases").iterdir())


def load_sqlite(text: str, home: Path) -> str:
    with sqlite3.connect(home / "db.sqlite3") as database:
        database.executescript(text)
    return f"sqlite:///{home}/db.sqlite3"


def load_postgres(text: str, home: Path) -> str:
    import psycopg

    one = settings.DATABASES["default"]
    server = f"{one['USER']}:{one['PASSWORD']}@{one['HOST']}:{one['PORT']}"
    name = f"upgrade_{os.getpid()}"
    with psycopg.connect(f"postgres://{server}/postgres", autocommit=True) as connected:
        connected.execute(f'CREATE DATABASE "{name}"')
    with psycopg.connect(f"postgres://{server}/{name}") as connected:
        connected.execute(text)
    return f"postgres://{server}/{name}"


def drop_postgres(url: str) -> None:
    import psycopg

    server, _, name = url.rpartition("/")
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connected:
        connected.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
