"""Former releases: their databases as dumps made them, and their code."""

import json
import os
import sqlite3
import subprocess
import tomllib
from pathlib import Path

from django.conf import settings
from packaging.version import Version

from tests.support.live import ROOT

VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
KEPT = {Version(folder.name): folder for folder in (ROOT / "tests" / "releases").iterdir()}
RELEASES = [KEPT[one] for one in sorted(KEPT) if one < Version(VERSION)]
"""Folders of what was released before this version, the last release at the end."""


def check_out(release: Path, folder: Path) -> bool:
    """Put the release's code there; False where git cannot find it.

    A shallow clone asks where it came from for this one commit.
    """
    commit = json.loads((release / "release.json").read_text())["commit"]
    archive = ["git", "archive", commit]
    found = subprocess.run(archive, cwd=ROOT, capture_output=True)
    if found.returncode:
        fetch = ["git", "fetch", "--depth", "1", "origin", commit]
        subprocess.run(fetch, cwd=ROOT, capture_output=True, timeout=120)
        found = subprocess.run(archive, cwd=ROOT, capture_output=True)
    if found.returncode:
        return False
    folder.mkdir()
    subprocess.run(["tar", "-x", "-C", str(folder)], input=found.stdout, check=True)
    return True


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
