"""The drill: people write, a backup is made meanwhile, the site is lost and comes back.

On SQLite and on PostgreSQL (`./test` runs it on both).
"""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core import mail
from django.core.cache import cache
from django.core.files.base import ContentFile
from django.core.management import CommandError, call_command
from django.db import connection, connections
from django.utils import timezone

from annotation.mails import mail_reports
from annotation.models import Example, Report
from annotation.moderation import withdraw_example
from core.accounts.erasure_log import write_erasure_log
from core.accounts.models import ApiToken, User
from core.accounts.tokens import create_token, revoke_token
from core.data.encryption import encrypt
from dynabench.campaigns.models import Payment
from dynabench.notices.digest_services import renew_notices_and_send_digests
from dynabench.operations.backups import making
from dynabench.operations.backups.quiet import build_statements
from dynabench.operations.backups.tables import compute_table_digest, list_stored_models
from dynabench.people.deletion.services import delete_person
from dynabench.webhooks.models import Delivery, Webhook
from evaluation.models import Submission
from evaluation.submissions.emails import send_end_emails
from evaluation.submissions.services import withdraw_model
from tasks.models import Media, Round, TaskMember
from tests.support.campaigns import open_campaign, paid_place
from tests.support.factories import ContextFactory, RoundFactory, TaskFactory, UserFactory
from tests.support.judging import write
from tests.support.live import ROOT, database_url
from tests.support.media import stored
from tests.support.old_databases import RELEASES, drop_postgres, load_sqlite
from tests.support.submissions import submission_of

pytestmark = pytest.mark.django_db(transaction=True)
PASSPHRASE = "a passphrase that nobody guesses"
CHANGES = r"(?m)^(?:UPDATE|INSERT INTO|DELETE FROM) (\w+)"
CHANGED = {*re.findall(CHANGES, build_statements(timezone.now()))} | {
    "accounts_erasure",
    "accounts_logentry",
}
"""Tables that a restoration changes by itself."""

RESTORED = """
import json, os, django
django.setup()
from django.conf import settings
from django.core import mail
from django.core.cache import cache
from django.core.management import CommandError, call_command
from annotation.mails import mail_reports
from annotation.models import Example
from core.accounts.models import ApiToken, User
from dynabench.operations.backups import restoring
from dynabench.campaigns.models import Payment
from dynabench.checks import check_finished_restoration
from dynabench.operations.backups.databases import is_empty_database
from dynabench.operations.backups.tables import compute_table_digest, list_stored_models
from dynabench.notices.digest_services import renew_notices_and_send_digests
from dynabench.webhooks.delivery import store_new_deliveries
from dynabench.webhooks.models import Delivery
from evaluation.models import Submission
from evaluation.dataset_releases.stored_files import find_damages
from evaluation.submissions.emails import send_end_emails

where = os.environ["WHERE"]
child = os.fork()
if not child:  # it is killed when all files are there, and the database is not
    restoring.load_dump = lambda path: os.kill(os.getpid(), 9)
    call_command("restore", where)
os.waitpid(child, 0)
assert is_empty_database() and check_finished_restoration()  # no other command starts
tables = {}
erase = restoring._repeat_erasures

def look_first(*arguments):
    for model in list_stored_models():
        tables[model._meta.db_table] = compute_table_digest(model, "default")
    return erase(*arguments)

restoring._repeat_erasures = look_first
call_command("restore", where)
assert not check_finished_restoration()
refused = 0
try:
    call_command("restore", where)
except CommandError as error:
    refused = "not empty" in str(error)
send_end_emails(), mail_reports(), renew_notices_and_send_digests(), store_new_deliveries()
print("FOUND" + json.dumps({
    "tables": tables, "refused": refused,
    "missing": [one.path for one in find_damages() if one.message == "is missing"],
    "mails": len(getattr(mail, "outbox", [])),
    "payments": [*Payment.objects.values_list("state", "place__campaign__sealed_token")],
    "deliveries": [*Delivery.objects.values_list("state", flat=True)],
    "has_alice": User.objects.filter(email="alice@example.com").exists(),
    "has_bob": User.objects.filter(email="bob@example.com").exists(),
    "tokens": ApiToken.objects.count(),
    "examples": Example.objects.filter(retracted_at=None).count(),
    "models": Submission.objects.filter(withdrawn_at=None).count(),
    "weights": (settings.MODELS_HOME / "mill" / "weights").read_text(),
    "key": settings.SECRET_KEY,
}))
"""


@pytest.fixture
def site(settings, tmp_path, monkeypatch):
    """A site with something of everything that a backup has to keep, and a log of erasures."""
    for name in ("MEDIA_ROOT", "MODELS_HOME"):
        setattr(settings, name, tmp_path / name)
    settings.ERASURE_LOG = tmp_path / "erasures.log"
    monkeypatch.setenv("BACKUP_PASSPHRASE", PASSPHRASE)
    (settings.MODELS_HOME / "mill").mkdir(parents=True)
    (settings.MODELS_HOME / "mill" / "weights").write_text("0.5")
    return fill()


def fill() -> Round:
    alice, bob = (UserFactory(email=f"{name}@example.com") for name in ("alice", "bob"))
    round = RoundFactory(task=TaskFactory(code="nli"))
    ContextFactory.create_batch(2, round=round)
    for number, author in enumerate((alice, bob, bob)):
        write(round, author, number)
    TaskMember.objects.create(task=round.task, user=bob, role=TaskMember.Role.OWNER)
    context = round.contexts.first()
    Report.objects.create(annotator=alice.annotator, context=context, reason="broken")
    old = timezone.now() - timedelta(days=1)
    Report.objects.update(created_at=old)
    create_token(user=bob, name="program", scopes=["read"], days=9)
    for kind in ("image", "audio"):
        stored(round.task, kind)
    Media.objects.update(is_used=True)
    for _ in range(2):
        done = submission_of(round.task, bob, state=Submission.State.FAILED, outcome="refused")
        done.file.save("model.tar", ContentFile(b"weights"))
    hook = Webhook.objects.create(
        user=bob, url="https://bob.example", events=["round.closed"], secret=encrypt("s"),
        on_since=old,
    )  # fmt: skip
    Delivery.objects.create(
        webhook=hook, event="round.closed", key="1", task=round.task, data={}, happened_at=old,
        due_at=old,
    )  # fmt: skip
    campaign = open_campaign(round.task, way="prolific", sealed_token=encrypt("token"))
    Payment.objects.create(place=paid_place(campaign, 1), kind="bonus", amount=100)
    return round


def people_write(round: Round) -> None:
    write(round, UserFactory(email="late@example.com"), 9)
    gone = Media.objects.get(mime__startswith="audio")
    gone.file.delete(save=False)
    gone.delete()
    connection.close()


@contextmanager
def writing_meanwhile(round):
    """A snapshot after which people write and delete before anything else is read."""
    real = making.take_snapshot

    @contextmanager
    def then_people_write():
        with real() as found:
            with ThreadPoolExecutor() as others:  # each with a connection of its own
                others.submit(people_write, round).result()
            yield found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(making, "take_snapshot", then_people_write)
        yield


def tables() -> dict[str, tuple[int, str]]:
    return {
        model._meta.db_table: compute_table_digest(model, "default")
        for model in list_stored_models()
    }


@contextmanager
def empty_database(home: Path, is_migrated: bool = False):
    if connection.vendor == "sqlite":
        yield f"sqlite:///{home}/db.sqlite3"
        return
    import psycopg

    server, _, own = database_url().rpartition("/")
    new = f"{server}/restored_{os.getpid()}"
    connections.close_all()  # nobody may use a template
    template = f'TEMPLATE "{own}"' if is_migrated else ""
    with psycopg.connect(f"{server}/postgres", autocommit=True) as there:
        there.execute(f'CREATE DATABASE "restored_{os.getpid()}" {template}')
    yield new
    drop_postgres(new)


def restored(where: Path, home: Path, url: str, log: Path) -> dict:
    """What another machine finds after it was restored there, without any key of the old one."""
    said = run(RESTORED, home, url, WHERE=str(where), ERASURE_LOG=str(log))
    return json.loads(said.partition("FOUND")[2])


def run(program: str, home: Path, url: str, **more: str) -> str:
    """What a program of another installation prints."""
    environment = os.environ | more | {
        "DYNABENCH_HOME": str(home), "DATABASE_URL": url, "DEBUG": "1",
        "DJANGO_SETTINGS_MODULE": "dynabench.settings",
        "EMAIL_BACKEND": "django.core.mail.backends.locmem.EmailBackend",
    }  # fmt: skip
    del environment["SECRET_KEY"]
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_drill(site, settings, tmp_path):
    settings.SECRET_KEY_FALLBACKS = ["former"]
    before, where = tables(), tmp_path / "backup"
    gone = Media.objects.get(mime__startswith="audio").file.name
    killed(where)
    with writing_meanwhile(site):
        call_command("backup", where, "--keys")
    call_command("verify_backup", where)

    # The site goes on: mails are sent, and people delete what the backup still holds.
    cache.delete("notices:renewed")  # by another test
    send_end_emails(), mail_reports(), renew_notices_and_send_digests()
    assert len(mail.outbox) >= 4  # two models, a report, the owner's digest
    withdraw_example(example=Example.objects.get(digest="1"), actor=None, reason="")
    withdraw_model(submission=Submission.objects.first(), actor=None)
    revoke_token(token=ApiToken.objects.get(), actor=User.objects.get(email="bob@example.com"))
    delete_person(user=User.objects.get(email="alice@example.com"))
    write_erasure_log()
    assert "alice" not in settings.ERASURE_LOG.read_text()

    home = tmp_path / "new"
    with empty_database(home) as url:
        found = restored(where, home, url, settings.ERASURE_LOG)
    same = before.keys() - CHANGED
    assert {t: tuple(found["tables"][t]) for t in same} == {t: before[t] for t in same}
    del found["tables"]
    assert found == {
        "refused": True, "missing": [gone], "mails": 0, "deliveries": ["withheld"],
        "payments": [["unclear", ""]], "has_alice": False, "has_bob": True, "tokens": 0,
        "examples": 1, "models": 1, "weights": "0.5", "key": settings.SECRET_KEY,
    }  # fmt: skip
    assert (home / "secret_key").read_text() == settings.SECRET_KEY
    assert (home / "secret_key_fallbacks").read_text() == "former"


def killed(where: Path) -> None:
    """A backup that is killed when all is written but its manifest; the next one clears up."""
    connections.close_all()
    if not (child := os.fork()):
        making._BackupWriter.write_manifest = lambda self: os.kill(os.getpid(), signal.SIGKILL)
        call_command("backup", where)
    os.waitpid(child, 0)
    assert not where.exists()
    with pytest.raises(CommandError, match="No complete backup"):
        call_command("verify_backup", f"{where}.part")


def test_damage_is_found_and_the_passphrase_is_needed(site, tmp_path, monkeypatch):
    where = tmp_path / "backup"
    call_command("backup", where)
    monkeypatch.setenv("DATABASE_URL", database_url())
    before, people, said = tables(), User.objects.count(), StringIO()
    call_command("restore", where, "--rehearse", stdout=said)
    assert "database: " in said.getvalue()
    assert (tables(), User.objects.count()) == (before, people)  # this site goes on
    monkeypatch.setenv("BACKUP_PASSPHRASE", "another")
    with pytest.raises(CommandError, match="passphrase is wrong"):
        call_command("verify_backup", where)
    monkeypatch.setenv("BACKUP_PASSPHRASE", PASSPHRASE)
    database = where / "database.gz"
    data = bytearray(database.read_bytes())
    data[len(data) // 2] ^= 1
    database.write_bytes(data)
    with pytest.raises(CommandError, match="1 of"):
        call_command("verify_backup", where)
    with pytest.raises(CommandError, match="already exists"):
        call_command("backup", where)
    monkeypatch.delenv("BACKUP_PASSPHRASE")
    with pytest.raises(CommandError, match="passphrase"):
        call_command("backup", tmp_path / "other", "--keys")


MOVED = """
import os, sqlite3, django
django.setup()
from django.core.management import CommandError, call_command
from dynabench.operations.backups import moving
from dynabench.operations.backups.tables import list_stored_models
from tasks.models import Task

path = os.environ["OLD"]

def refused(why):
    try:
        call_command("move_database", path)
    except CommandError as error:
        assert why in str(error), error
    else:
        raise AssertionError(why)

with sqlite3.connect(path) as old:
    old.execute("UPDATE sqlite_sequence SET seq = 5000 WHERE name = 'tasks_task'")
digest = moving.compute_table_digest
moving.compute_table_digest = lambda model, using: (0, using)
refused("differs")
assert not Task.objects.exists()
moving.compute_table_digest = digest
call_command("move_database", path)
with sqlite3.connect(path) as old:
    for model in list_stored_models():
        (count,) = old.execute(f"SELECT count(*) FROM {model._meta.db_table}").fetchone()
        assert model._base_manager.count() == count, model
assert Task.objects.create(code="next", name="Next", config_text="").pk == 5001
refused("people or tasks")
"""


@pytest.mark.postgres
def test_the_last_release_moves_from_sqlite_to_postgres(tmp_path):
    """It has rows in every table."""
    text = gzip.decompress((RELEASES[-1] / "sqlite.sql.gz").read_bytes()).decode()
    old = load_sqlite(text, tmp_path)
    migrate = "import django; django.setup(); django.core.management.call_command('migrate')"
    run(f"import django.core.management; {migrate}", tmp_path, old)
    with empty_database(tmp_path, is_migrated=True) as url:
        run(MOVED, tmp_path, url, OLD=str(tmp_path / "db.sqlite3"))
