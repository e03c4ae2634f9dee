"""A picture that is tidied away while somebody uses it: one of the two wins."""

import threading
from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from dynabench.accounts.services import annotator_of
from dynabench.lib.errors import Invalid
from tasks.media import services
from tasks.media.services import (
    delete_media,
    delete_unnamed,
    hide_withdrawn,
    keep,
    store_media,
)
from tasks.models import Media
from tests.support import media
from tests.support.factories import TaskFactory, UserFactory
from tests.support.races import races

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def task(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    return TaskFactory(code="nli")


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
        found.wait(5)
        try:
            with transaction.atomic():
                keep(task=task, digests=[digest], used=True)
        except Invalid:
            return "gone"
        finally:
            over.set()
        return "kept"

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
    is_named = services.is_named

    def slowly(*args, **kwargs):
        named = is_named(*args, **kwargs)
        found.set()
        over.wait(0.3)  # without the lock the other is over by then
        return named

    monkeypatch.setattr(services, "is_named", slowly)
    return found, over


@pytest.mark.parametrize("act", [delete_unnamed, hide_withdrawn])
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
                asked = {"digest": digest} if act is delete_unnamed else {"digests": [digest]}
                return act(task=task, **asked)
        found.wait(5)
        try:
            with transaction.atomic():
                keep(task=task, digests=[digest], used=True)
        except Invalid:
            return "gone"
        finally:
            over.set()
        return "kept"

    _, what = at_once(run, ["act", "keep"])
    there = Media.objects.filter(is_withdrawn=False, is_used=True)
    assert (what == "kept") == there.exists()


def test_what_another_person_sends_while_its_owner_leaves_stays(
    task, at_once, monkeypatch, tmp_path
):
    first, second = (annotator_of(UserFactory()) for _ in range(2))
    send = {"task": task, "kind": "image", "data": media.FILES["image"]}
    digest = store_media(**send, sent_by=first)["digest"]
    Media.objects.update(is_used=True)
    found, over = looked(monkeypatch)

    def run(who):
        if who == "leaver":
            return delete_unnamed(task=task, digest=digest, leaver=first)
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
    delete_unnamed(task=task, digest=digest, leaver=first)  # once more, after the other sent it
    assert not Media.objects.get().is_used  # it has its day
