"""Keeps what tests need of a release: `python scripts/keep_release.py 0.2.0 CHECKOUT`.

Writes tests/releases/VERSION: the commit of the checkout, digests of its migrations, its pins, and
a dump of a database with rows in every table, by the engine of DATABASE_URL (PostgreSQL needs
pg_dump). Run it once for each engine, with an empty database.
"""

import gzip
import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import uuid
from datetime import date
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# Where a value of the field's type alone is refused.
VALUES: dict[str, dict[str, Any]] = {
    "leaderboard.Comparison": {"left_id": 1, "right_id": 2},
    "leaderboard.Battle": {"gold_id": 1},
    "annotation.Attempt": {"state": "failed"},
    "evaluation.Allowance": {"task_id": 1},
    "annotation.Example": {"inputs": {"hypothesis": "It is so.", "label": "neutral"}},
    "evaluation.Submission": {"kind": "hub"},
    "leaderboard.Snapshot": {"number": 1},
    "tasks.Context": {"fields": {"premise": "Ada left Tarn in 1850."}},
    "tasks.Round": {"number": 1, "state": "closed"},
    "validation.Consensus": {"label": "neutral"},
    "validation.GoldAnswer": {"label": "neutral"},
    "validation.Gold": {"label": "neutral"},
    "validation.OwnerDecision": {"label": "neutral"},
    "validation.Validation": {"label": "neutral"},
}


TWO = {"leaderboard.Contestant": "name"}
"""Tables of which another row points at two rows, which differ in this column."""


def fill() -> None:
    """One row in each table that has none; tables come after those that they point at."""
    from django.apps import apps
    from django.db import connection

    from tasks.services import install_official_tasks

    install_official_tasks()
    left = [model for model in apps.get_models(include_auto_created=True) if model._meta.managed]
    left = [model for model in left if not model._meta.proxy and not model._base_manager.exists()]
    while left:
        ready = [model for model in left if not needed(model) & {*left} - {model}]
        for model in ready:
            rows = [row(model)]
            if column := TWO.get(model._meta.label):
                rows.append(rows[0] | {column: "other"})
            model._base_manager.bulk_create([model(**one) for one in rows])
        left = [model for model in left if model not in ready]
    connection.close()


def needed(model: Any) -> set[Any]:
    """The tables that a row must point at."""
    fields = model._meta.concrete_fields
    return {field.related_model for field in fields if field.is_relation and not field.null}


def row(model: Any) -> dict[str, Any]:
    """Values of the columns that have no default."""
    given = VALUES.get(model._meta.label, {})
    filled = {
        field.attname: value(field)
        for field in model._meta.concrete_fields
        if field.name not in given
        and not (field.null or field.has_default() or field.has_db_default())
        and not (field.primary_key and field.get_internal_type().endswith("AutoField"))
        and not getattr(field, "generated", False)
    }
    return filled | given


def value(field: Any) -> Any:
    """A value of the field's type."""
    from django.utils import timezone

    if field.is_relation:
        return field.related_model._base_manager.values_list("pk", flat=True).first()
    if field.blank and field.empty_strings_allowed:
        return ""
    if field.choices:
        return next(iter(field.flatchoices))[0]
    made = {
        "BooleanField": False,
        "DateField": date(2026, 11, 23),
        "DateTimeField": timezone.now(),
        "JSONField": {},
        "UUIDField": uuid.UUID(int=7),
        "CharField": "row"[: field.max_length],
        "TextField": "row",
        "SlugField": "row",
        "EmailField": "row@example.com",
        "URLField": "https://example.com/",
        "GenericIPAddressField": "127.0.0.1",
        "FileField": "row",
        "BinaryField": b"row",
        "DurationField": None,
    }
    return made.get(field.get_internal_type(), 1)


def dump(folder: Path) -> None:
    """The whole database as SQL that the engine's own tool reads."""
    from django.conf import settings

    one = settings.DATABASES["default"]
    if one["ENGINE"].endswith("sqlite3"):
        with sqlite3.connect(one["NAME"]) as database:
            text = "\n".join(database.iterdump())
        (folder / "sqlite.sql.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
        return
    command = ["pg_dump", "--no-owner", "--no-privileges", "--inserts", os.environ["DATABASE_URL"]]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines = [line for line in text.splitlines() if not line.startswith(("\\", "SET "))]
    (folder / "postgres.sql.gz").write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))


def main(version: str, checkout: Path) -> None:
    sys.path.insert(0, str(checkout))
    os.environ["DJANGO_SETTINGS_MODULE"] = "dynabench.settings"
    folder = ROOT / "tests" / "releases" / version
    folder.mkdir(parents=True, exist_ok=True)
    commit = subprocess.run(
        ["git", "log", "-1", "--format=%H %cs"],
        cwd=checkout,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    told = {
        "version": version,
        "commit": commit[0],
        "date": commit[1],
        "migrations": {
            str(path.relative_to(checkout)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(checkout.glob("**/migrations/0*.py"))
            if ".venv" not in path.parts
        },
    }
    (folder / "release.json").write_text(json.dumps(told, indent=1) + "\n")
    for file in sorted(checkout.glob("requirements*.txt")):
        shutil.copy(file, folder / file.name)

    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)
    fill()
    dump(folder)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]).resolve())
