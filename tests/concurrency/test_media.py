"""A picture that is tidied away while somebody uses it: one of the two wins."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial

import pytest
from django.db import connection, connections, transaction
from django.utils import timezone

from core.accounts.services import get_annotator
from core.errors import Invalid
from tasks.contexts.media import services
from tasks.contexts.media.services import (
    delete_media,
    delete_unreferenced_file,
    hide_withdrawn_media,
    keep_media,
    store_media,
    touch_media,
)
from tasks.models import Media
from tests.support import media
from tests.support.factories import TaskFactory, UserFactory
from tests.support.races import races, wait_for

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def task(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    return TaskFactory(code="nli")


def kept(task, digest, found, over):
    """What became of keeping a file once the other has found it; then the other goes on."""
    found.wait(5)
    try:
        with transaction.atomic():
            keep_media(task=task, digests=[digest], is_used=True)
    except Invalid:
        return "gone"
    finally:
        over.set()
    return "kept"


def test_what_is_used_meanwhile_is_not_deleted(task, at_once, monkeypatch):
    digest = media.stored(task, "image")["digest"]
    Media.objects.update(kept_from=timezone.now() - timedelta(days=2))
    found, over = threading.Event(), threading.Event()
    on_commit = transaction.on_commit

    def slowly(*args):
        found.set()
        over.wait(0.3)  # without the lock the other is over by then
        on_commit(*args)

    def act(what):
        if what == "delete":
            monkeypatch.setattr(transaction, "on_commit", slowly)
            return delete_media(Media.objects.filter(is_used=False))
        return kept(task, digest, found, over)

    _, what = at_once(act, ["delete", "keep"])
    assert (what == "kept") == Media.objects.exists()


@pytest.mark.parametrize("time", races(5))
def test_equal_files_at_once_are_one_row_and_one_file(task, at_once, time, tmp_path):
    def send(_):
        return store_media(task=task, kind="image", data=media.FILES["image"])

    values = at_once(send, range(2))
    assert values[0] == values[1]
    assert Media.objects.get().file.name
    assert len([one for one in (tmp_path / "tasks").rglob("*") if one.is_file()]) == 1


def looked(monkeypatch):
    """Stops who has looked whether a file is named, until the other had time to act."""
    found, over = threading.Event(), threading.Event()
    is_named = services.is_referenced

    def slowly(*args, **kwargs):
        named = is_named(*args, **kwargs)
        found.set()
        over.wait(0.3)  # without the lock the other is over by then
        return named

    monkeypatch.setattr(services, "is_referenced", slowly)
    return found, over


@pytest.mark.parametrize("act", [delete_unreferenced_file, hide_withdrawn_media])
def test_what_an_example_names_meanwhile_is_neither_deleted_nor_hidden(
    task, at_once, monkeypatch, act
):
    """Lock: the file, before the look whether anything names it."""
    digest = media.stored(task, "image")["digest"]
    Media.objects.update(is_used=True)
    found, over = looked(monkeypatch)

    def run(what):
        if what == "act":
            with transaction.atomic():
                asked = (
                    {"digest": digest} if act is delete_unreferenced_file else {"digests": [digest]}
                )
                return act(task=task, **asked)
        return kept(task, digest, found, over)

    _, what = at_once(run, ["act", "keep"])
    there = Media.objects.filter(is_withdrawn=False, is_used=True)
    assert (what == "kept") == there.exists()


def test_what_another_person_sends_while_its_owner_leaves_stays(
    task, at_once, monkeypatch, tmp_path
):
    first, second = (get_annotator(UserFactory()) for _ in range(2))
    send = {"task": task, "kind": "image", "data": media.FILES["image"]}
    digest = store_media(**send, sent_by=first)["digest"]
    Media.objects.update(is_used=True)
    found, over = looked(monkeypatch)

    def run(who):
        if who == "leaver":
            return delete_unreferenced_file(task=task, digest=digest, leaver=first)
        found.wait(5)
        try:
            return store_media(**send, sent_by=second)
        finally:
            over.set()

    at_once(run, ["leaver", "sender"])
    row = Media.objects.get()
    assert (row.digest, row.sent_by) == (digest, second)
    assert row.file.storage.exists(row.file.name)
    assert len([one for one in (tmp_path / "tasks").rglob("*") if one.is_file()]) == 1
    delete_unreferenced_file(
        task=task, digest=digest, leaver=first
    )  # once more, after the other sent it
    assert not Media.objects.get().is_used  # it has its day


WAITS = """
    CREATE FUNCTION waits() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_advisory_xact_lock_shared(7); RETURN NEW; END $$;
    CREATE TRIGGER waits BEFORE UPDATE ON tasks_media FOR EACH ROW EXECUTE FUNCTION waits();
    SELECT pg_advisory_lock(7);
"""


@pytest.fixture
def database(db):
    """An update locks a row and waits there until the advisory lock is let go."""
    with connection.cursor() as cursor:
        cursor.execute(WAITS)
        yield cursor
        cursor.execute("SELECT pg_advisory_unlock_all(); DROP FUNCTION waits CASCADE")


def patiently(function, **asked):
    """In a transaction that waits longer than ours do."""
    try:
        with connection.cursor() as cursor, transaction.atomic():
            cursor.execute("SET LOCAL lock_timeout = '30s'")
            function(**asked)
    finally:
        connections.close_all()


@pytest.mark.parametrize("write", [touch_media, partial(keep_media, is_used=True)])
def test_files_are_locked_in_one_order(task, database, write):
    """Order: by id; here the files lie in the table the other way round."""
    digests = ["a" * 64, "b" * 64]
    Media.objects.bulk_create(
        Media(pk=pk, task=task, digest=digest, mime="image/png", size=1, is_used=True)
        for pk, digest in zip((20, 10), digests, strict=True)
    )
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(patiently, write, task=task, digests=digests)
        wait_for(1)
        second = pool.submit(patiently, hide_withdrawn_media, task=task, digests=digests)
        wait_for(2)
        database.execute("SELECT pg_advisory_unlock(7)")
        first.result()  # a ring of locks is an error
        second.result()
    assert Media.objects.filter(is_withdrawn=True).count() == 2
