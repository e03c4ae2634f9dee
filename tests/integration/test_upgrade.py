"""Databases of former releases (`tests/releases`): what an upgrade makes of them."""

import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
from collections import Counter

import pytest
from django.db import connection, models
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.loader import MigrationLoader
from django.utils import timezone

from dynabench.accounts.models import IdempotentAnswer, User
from tests.support.live import ROOT
from tests.support.old_databases import RELEASES, drop_postgres, load_postgres, load_sqlite

each_release = pytest.mark.parametrize("release", RELEASES, ids=lambda folder: folder.name)
UPGRADE = """
from django.apps import apps
from django.core.management import call_command
from django.test import Client
call_command("migrate", verbosity=0)
call_command("migrate", check_unapplied=True)
tables = apps.get_models(include_auto_created=True)
print({table._meta.db_table: len(table._base_manager.all()) for table in tables})
assert Client(headers={"host": "localhost"}).get("/").status_code == 200
"""


@each_release
def test_no_released_migration_was_edited(release):
    for name, digest in json.loads((release / "release.json").read_text())["migrations"].items():
        assert hashlib.sha256((ROOT / name).read_bytes()).hexdigest() == digest, name


def test_what_a_new_site_runs_makes_the_tables_that_older_sites_have():
    new, old = (MigrationLoader(None, replace_migrations=new) for new in (True, False))
    assert len(new.graph.nodes) < len(old.graph.nodes)
    last = [node for node in old.graph.leaf_nodes() if not old.get_migration(*node).replaces]
    states = {new: new.project_state(), old: old.project_state(last)}
    for one, other in ((new, old), (old, new)):
        between = MigrationAutodetector(states[one], states[other])
        assert between.changes(one.graph) == {}


@each_release
def test_a_database_of_a_former_release_keeps_every_row(release, tmp_path):
    is_postgres = connection.vendor == "postgresql"
    dump = release / ("postgres.sql.gz" if is_postgres else "sqlite.sql.gz")
    text = gzip.decompress(dump.read_bytes()).decode()
    rows = Counter(re.findall(r'(?m)^INSERT INTO (?:public\.)?"?(\w+)"? VALUES', text))
    url = (load_postgres if is_postgres else load_sqlite)(text, tmp_path)

    environment = {**os.environ, "DATABASE_URL": url, "DYNABENCH_HOME": str(tmp_path), "DEBUG": "1"}
    try:
        done = subprocess.run(
            [sys.executable, "manage.py", "shell", "--no-imports", "-c", UPGRADE],
            cwd=ROOT, env=environment, capture_output=True, text=True,
        )  # fmt: skip
    finally:
        if is_postgres:
            drop_postgres(url)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout.replace("'", '"'))
    assert {table for table in found if found[table] < rows[table]} == set()
    made = re.findall(r'(?m)^CREATE TABLE (?:public\.)?"?(\w+)"?', text)
    assert {*made} - rows.keys() <= {"sqlite_sequence"}


def body_takes(text: str) -> str:
    """The text, stored as a repeated request's answer and read again."""
    user = User.objects.create(email="a@example.com")
    IdempotentAnswer.objects.create(
        user=user, key="k", digest="d", body=text, begun_at=timezone.now()
    )
    return IdempotentAnswer.objects.get().body


@pytest.mark.django_db(transaction=True)
def test_a_column_that_was_json_becomes_text():
    """Migration accounts/0003 was edited once: sites that had applied it kept a JSON column."""
    loader = MigrationLoader(connection, replace_migrations=False)
    mending = loader.get_migration("accounts", "0004_text_answers")
    json = models.JSONField(null=True)
    json.set_attributes_from_name("body")
    json.model = IdempotentAnswer
    with connection.schema_editor() as editor:
        editor.alter_field(IdempotentAnswer, IdempotentAnswer._meta.get_field("body"), json)
    with connection.schema_editor() as editor:
        mending.apply(loader.project_state(mending.dependencies), editor)
    assert body_takes('{"a": 1,') == '{"a": 1,'
