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
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from django.db import connection, models
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.loader import MigrationLoader
from django.utils import timezone

from core.accounts.models import IdempotentAnswer, User
from tests.support.live import ROOT, environment, wait_until, web_server
from tests.support.moved_migrations import as_released, place_now
from tests.support.old_databases import (
    RELEASES,
    VERSION,
    check_out,
    drop_postgres,
    load_postgres,
    load_sqlite,
)

each_release = pytest.mark.parametrize("release", RELEASES, ids=lambda folder: folder.name)
NEWEST_LAST = [
    *(pytest.param(one, marks=pytest.mark.nightly("releases")) for one in RELEASES[:-1]),
    RELEASES[-1],
]
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
        assert hashlib.sha256(as_released(place_now(name))).hexdigest() == digest, name


def test_what_a_new_site_runs_makes_the_tables_that_older_sites_have():
    new, old = (MigrationLoader(None, replace_migrations=new) for new in (True, False))
    assert len(new.graph.nodes) < len(old.graph.nodes)
    last = [node for node in old.graph.leaf_nodes() if not old.get_migration(*node).replaces]
    states = {new: new.project_state(), old: old.project_state(last)}
    for one, other in ((new, old), (old, new)):
        between = MigrationAutodetector(states[one], states[other])
        assert between.changes(one.graph) == {}


def shell(code: str, home: Path, database: str, root: Path) -> str:
    """What a program of a checkout prints, in a site of its own."""
    command = [sys.executable, "manage.py", "shell", "-c", code]
    done = subprocess.run(
        command, cwd=root, env=environment(home, database), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]


LEFT_BEHIND = ("tasks_taskgroup", "tasks_taskgroup_tasks")


def kept_every_row(dump: str, printed: str) -> None:
    """No table has fewer rows than the dump of the release."""
    rows = Counter(re.findall(r'(?m)^INSERT INTO (?:public\.)?"?(\w+)"? VALUES', dump))
    found = json.loads(printed.replace("'", '"'))
    assert {table for table in found if found[table] < rows[table]} == set()
    # 0.3.0 made communities of task groups, and left their tables for the release before it.
    groups = rows["tasks_taskgroup"] or rows["communities_community"]
    assert found["communities_community"] == groups
    made = re.findall(r'(?m)^CREATE TABLE (?:public\.)?"?(\w+)"?', dump)
    assert {*made} - rows.keys() <= {"sqlite_sequence", *LEFT_BEHIND}


@pytest.mark.parametrize("release", NEWEST_LAST, ids=lambda folder: folder.name)
def test_a_database_of_a_former_release_keeps_every_row(release, tmp_path):
    if connection.vendor == "postgresql" and release == RELEASES[-1]:
        pytest.skip("the last test of this file does so, with people who write meanwhile")
    upgraded(release, tmp_path)


def upgraded(release: Path, tmp_path: Path) -> None:
    is_postgres = connection.vendor == "postgresql"
    dump = release / ("postgres.sql.gz" if is_postgres else "sqlite.sql.gz")
    text = gzip.decompress(dump.read_bytes()).decode()
    database = (load_postgres if is_postgres else load_sqlite)(text, tmp_path)
    try:
        kept_every_row(text, shell(UPGRADE, tmp_path, database, ROOT))
    finally:
        if is_postgres:
            drop_postgres(database)


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


SCENE = """
import json, re
from django.test import Client
from tasks.models import Task
from tests.support.factories import ContextFactory, RoundFactory, UserFactory, scripted_target
task = Task.objects.get(code="nli")
limits = "limits: {tries_per_context: 1000, tries_per_day: 1000, share_of_round: 1}"
text = re.sub("(?m)^limits:.*", limits, task.config_text)
Task.objects.filter(pk=task.pk).update(config_text=text)
round = RoundFactory(task=task, number=7)
ContextFactory.create_batch(30, round=round)
scripted_target(round, label="neutral")
cookies = {}
for name in ("ada", "ben"):
    browser = Client()
    browser.force_login(UserFactory(email=f"{name}@example.com"))
    cookies[name] = {key: morsel.value for key, morsel in browser.cookies.items()}
print(json.dumps(cookies))
"""
"""What the last release's own code makes in its tables: a round to write in, and two people."""
WRITTEN = """
from annotation.models import Example
print(Example.objects.filter(round__number=7).count())
"""


class Writer(threading.Thread):
    """Somebody who writes one example after the other, and looks at what became of them."""

    def __init__(self, name: str, cookies: dict[str, str], proxy: Callable[[], str]) -> None:
        super().__init__(daemon=True)
        self._web, self._proxy = httpx.Client(cookies=cookies, timeout=60, verify=False), proxy
        self.name, self.written, self.failed, self.goes_on = name, 0, [], True
        self.start()

    def run(self) -> None:
        while self.goes_on:
            page = self._web.get(f"{self._proxy()}/t/nli/write/")
            form = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page.text))
            said = {"hypothesis": f"{self.name} wrote {self.written} of them."}
            answer = self._web.post(f"{self._proxy()}/t/nli/write/", data=form | said)
            if page.status_code != 200 or answer.status_code not in (200, 302, 303):
                self.failed.append((page.status_code, answer.status_code, answer.text[-2000:]))
                return
            self.written += 1
            time.sleep(0.3)

    def writes_more(self) -> None:
        before = self.written
        wait_until(lambda: self.written > before + 2 or self.failed, pause=0.05)


def asked(url: str) -> httpx.Response:
    return httpx.get(f"{url}/healthz/", timeout=60, verify=False)


@pytest.mark.postgres
def test_people_write_while_the_last_release_becomes_this_version(tmp_path):
    """Both ways: its code on these tables, and beside it this code, which waits on its tables.

    Ada's server is reloaded by HUP; Ben's proxy takes the new server as soon as that is ready.
    """
    old, current = tmp_path / "old", tmp_path / "current"
    if not check_out(RELEASES[-1], old):
        upgraded(RELEASES[-1], tmp_path)
        pytest.skip("the release's commit is not here: nobody wrote while it was upgraded")
    current.symlink_to(old)
    homes = [tmp_path / "a", tmp_path / "b"]
    for home in homes:
        home.mkdir()
    text = gzip.decompress((RELEASES[-1] / "postgres.sql.gz").read_bytes()).decode()
    database = load_postgres(text, tmp_path)
    try:
        made = shell(SCENE, homes[0], database, old)
        with (
            web_server(homes[0], current, database) as one,
            web_server(homes[1], ROOT, database) as other,
        ):
            assert asked(one).json().get("version") != VERSION
            waits = asked(other)
            assert (waits.status_code, waits.json()["version"]) == (503, VERSION)
            assert "migrate" in waits.json()["reason"]
            assert httpx.get(f"{other}/t/nli/", timeout=60, verify=False).status_code == 503
            proxy = lambda: other if asked(other).status_code == 200 else one  # noqa: E731
            ada = Writer("ada", json.loads(made)["ada"], lambda: one)
            ben = Writer("ben", json.loads(made)["ben"], proxy)
            ben.writes_more()
            found = shell(UPGRADE, homes[1], database, ROOT)
            assert asked(one).json().get("version") != VERSION
            ada.writes_more()
            wait_until(lambda: asked(other).status_code == 200, pause=0.1)
            ben.writes_more()
            current.unlink()
            current.symlink_to(ROOT)
            os.kill(int((homes[0] / "web.pid").read_text()), signal.SIGHUP)
            wait_until(lambda: asked(one).json().get("version") == VERSION, pause=0.1)
            for writer in (ada, ben):
                writer.writes_more()
                writer.goes_on = False
                writer.join(60)
        assert [ada.failed, ben.failed] == [[], []]
        wrote = shell(WRITTEN, homes[1], database, ROOT)
        assert int(wrote) == ada.written + ben.written
        kept_every_row(text, found)
    finally:
        drop_postgres(database)
