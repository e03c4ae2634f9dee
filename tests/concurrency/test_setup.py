"""Machines that set up a site, and do each minute's work, at the same instant."""

import time
from datetime import timedelta
from io import StringIO

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection, transaction

from core.accounts.models import User
from core.jobs.models import PeriodicWork
from core.jobs.periodic import claim_work
from dynabench.operations.management import installing
from dynabench.operations.management.commands import migrate, setup
from tests.support.live import database_url

pytestmark = pytest.mark.django_db(transaction=True)


def test_one_machine_sets_up_and_the_others_wait(at_once, monkeypatch):
    monkeypatch.setattr(installing.fcntl, "flock", lambda *_: None)  # each machine has its own disk
    monkeypatch.setattr(installing, "RETRY_SECONDS", 0.05)
    within, seen = [], []

    def set_up(name):
        with installing.lock_setup():
            within.append(name)
            time.sleep(0.1)
            seen.append(list(within))
            within.remove(name)

    at_once(set_up, range(3))
    assert sorted(seen) == [[0], [1], [2]]


def test_one_of_several_makes_the_administrator(at_once, monkeypatch, settings, tmp_path):
    settings.HOME = tmp_path
    monkeypatch.setenv("ADMIN_EMAIL", "operator@example.org")
    monkeypatch.setattr(setup, "install", lambda tell: None)
    at_once(lambda _: call_command("setup", stdout=StringIO()), range(3))
    assert User.objects.get().is_superuser


def test_a_migration_gives_way_to_who_uses_its_table(monkeypatch):
    tried = []

    def alter(*args, **options):
        tried.append(args)
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("LOCK TABLE upkeep_incident IN ACCESS EXCLUSIVE MODE")

    monkeypatch.setattr(migrate.migrate.Command, "handle", alter)
    with psycopg.connect(database_url()) as somebody:
        somebody.execute("SELECT 1 FROM upkeep_incident")
        monkeypatch.setattr(migrate.time, "sleep", lambda seconds: somebody.rollback())
        call_command("migrate", stdout=StringIO())
    assert len(tried) == 2
    with connection.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        assert cursor.fetchone() == ("3s",)


def test_the_work_of_a_minute_is_done_by_one(at_once):
    minute = timedelta(seconds=50)
    first = at_once(lambda _: claim_work("site.minutely", minute), range(8))  # there is no row yet
    PeriodicWork.objects.update(claimed_at="2026-01-01T00:00Z")
    second = at_once(lambda _: claim_work("site.minutely", minute), range(8))
    assert (sum(first), sum(second)) == (1, 1)
