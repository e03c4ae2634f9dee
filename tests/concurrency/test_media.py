"""A picture that is tidied away while somebody uses it: one of the two wins."""

import threading
from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from dynabench.lib.errors import Invalid
from tasks.media.services import delete_media, keep, store_media
from tasks.models import Media
from tests.support import media
from tests.support.factories import TaskFactory
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
