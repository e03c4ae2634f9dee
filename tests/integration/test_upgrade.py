"""Databases of former releases (`tests/releases`): what an upgrade makes of them."""

import gzip
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter

import httpx
import pytest
from django.db import connection, models
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.loader import MigrationLoader
from django.test import Client
from django.utils import timezone

from annotation.models import Example
from dynabench.accounts.models import IdempotentAnswer, User
from tests.support.factories import (
    ContextFactory,
    RoundFactory,
    TaskFactory,
    UserFactory,
    scripted_target,
)
from tests.support.live import ROOT, wait_until, web_server
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
    assert found["communities_community"] == rows["tasks_taskgroup"]
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


FIRST = "3b40b848bfd2aa92ef375d7fdadd5dd5e377c71a"
"""The commit from which on versions follow each other without a pause; 0.2.0 has to stop."""


def last_version() -> str:
    """The commit of the last release, if it serves while migrations run."""
    found = json.loads((RELEASES[-1] / "release.json").read_text())
    return FIRST if found["version"] == "0.2.0" else found["commit"]


class Writer(threading.Thread):
    """Somebody who writes one example after the other, and looks at what became of them."""

    def __init__(self, url: str, name: str) -> None:
        super().__init__(daemon=True)
        user = UserFactory(email=f"{name}@example.com")
        browser = Client()
        browser.force_login(user)
        cookies = {key: morsel.value for key, morsel in browser.cookies.items()}
        self._web = httpx.Client(base_url=url, cookies=cookies, timeout=60, verify=False)
        self.name, self.written, self.failed, self.goes_on = name, 0, [], True
        self.start()

    def run(self) -> None:
        while self.goes_on:
            page = self._web.get("/t/nli/write/")
            form = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page.text))
            said = {"hypothesis": f"{self.name} wrote {self.written} of them."}
            answer = self._web.post("/t/nli/write/", data=form | said)
            if page.status_code != 200 or answer.status_code not in (200, 302, 303):
                self.failed.append((page.status_code, answer.status_code, answer.text[-2000:]))
                return
            self.written += 1
            time.sleep(0.3)  # limits of an hour come else

    def writes_more(self) -> None:
        before = self.written
        wait_until(lambda: self.written > before + 2 or self.failed, pause=0.05)


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_people_write_while_the_last_version_becomes_this_one(tmp_path):
    """The last release's code on these tables, then a reload by HUP: nobody notices."""
    archive = subprocess.run(["git", "archive", last_version()], cwd=ROOT, capture_output=True)
    if archive.returncode:
        pytest.skip("the history of the repository is not here")
    old, current = tmp_path / "old", tmp_path / "current"
    old.mkdir()
    subprocess.run(["tar", "-x", "-C", str(old)], input=archive.stdout, check=True)
    project = (old / "pyproject.toml").read_text()
    (old / "pyproject.toml").write_text(re.sub(r'(?m)^version = ".*"', 'version = "old"', project))
    current.symlink_to(old)
    round = RoundFactory(task=TaskFactory(code="nli"))
    ContextFactory.create_batch(30, round=round)
    scripted_target(round, label="neutral")
    with web_server(tmp_path, current) as url:

        def version() -> str:
            return httpx.get(f"{url}/healthz/", timeout=60, verify=False).json()["version"]

        assert version() == "old"
        people = [Writer(url, name) for name in ("ada", "ben")]
        people[0].writes_more()
        current.unlink()
        current.symlink_to(ROOT)
        os.kill(int((tmp_path / "web.pid").read_text()), signal.SIGHUP)
        wait_until(lambda: version() != "old", pause=0.1)
        for one in people:
            one.writes_more()
            one.goes_on = False
            one.join(60)
    assert [one.failed for one in people] == [[], []]
    assert Example.objects.count() == sum(one.written for one in people)
