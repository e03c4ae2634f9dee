"""Who may open a stored file, and what becomes of files that nothing names."""

import os
import time
from itertools import count

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.test import Client

from annotation.attempts.services import retract_example
from annotation.models import Assignment, Example
from annotation.moderation import withdraw_example
from core.accounts.services import get_annotator
from evaluation.dataset_releases.stored_files import find_damages
from tasks.contexts.media.services import (
    delete_unreferenced_file,
    keep_media,
    store_media,
    tidy_orphans,
)
from tasks.models import Media, Round, TaskMember
from tests.support import media
from tests.support.factories import ContextFactory, TaskFactory, UserFactory
from tests.support.writing import signed_in

DIGEST = media.value("image")["digest"]
numbers = count()


@pytest.fixture
def round(db, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    return Round.objects.create(task=TaskFactory(code="nli"), number=1, state="open")


def wrote(round, user):
    """An example that names the picture, whose author sent it."""
    me = get_annotator(user)
    store_media(task=round.task, kind="image", data=media.FILES["image"], sent_by=me)
    keep_media(task=round.task, digests=[DIGEST], is_used=True)
    return Example.objects.create(
        round=round,
        context=ContextFactory(round=round),
        annotator=me,
        inputs={"photo": media.value("image")},
        digest=str(next(numbers)),
        outcome="fooled",
    )


def who_may_open(round, **people):
    """Who of these gets the file, by its own address and by the API's."""
    urls = (f"/media/{DIGEST}/", f"/api/v1/tasks/{round.task.code}/media/{DIGEST}/")
    statuses = {}
    for name, user in people.items():
        client = signed_in(user) if user else Client()
        statuses[name] = {client.get(url).status_code for url in urls}
    assert all(found in ({200}, {404}, {200, 401}, {401, 404}) for found in statuses.values())
    return {name for name, found in statuses.items() if 200 in found}


@pytest.mark.parametrize("how", ["retract", "withdraw"])
def test_a_withdrawn_picture_is_its_authors_and_the_members_alone(round, alice, bob, how):
    member = UserFactory()
    TaskMember.objects.create(task=round.task, user=member, role="viewer")
    people = {"author": alice, "bob": bob, "stranger": None, "member": member}
    mine = wrote(round, alice)
    assert who_may_open(round, **people) == {*people}
    if how == "retract":
        retract_example(example=mine)
    else:
        withdraw_example(example=mine, actor=None, reason="Somebody is on it.")
    assert who_may_open(round, **people) == {"author", "member"}
    wrote(round, bob)
    assert who_may_open(round, **people) == {*people}


@pytest.mark.parametrize("where", ["context", "example", "configuration"])
def test_what_something_else_names_stays(round, alice, bob, where):
    mine = wrote(round, alice)
    if where == "context":
        ContextFactory(round=round, fields={"scene": media.value("image")})
    elif where == "example":
        wrote(round, bob)
    else:
        round.task.config_text += f"# {DIGEST}\n"
        round.task.save()
    retract_example(example=mine)
    assert who_may_open(round, stranger=None)


def test_an_upload_is_seen_by_who_sent_it_until_something_names_it(round, alice, bob):
    carol = UserFactory()
    send = {"task": round.task, "kind": "image", "data": media.FILES["image"]}
    store_media(**send, sent_by=get_annotator(alice))
    people = {"alice": alice, "bob": bob, "carol": carol}
    assert who_may_open(round, **people) == {"alice"}
    Assignment.objects.create(
        annotator=get_annotator(bob), round=round, context=ContextFactory(round=round),
        draft={"photo": media.value("image")},
    )  # fmt: skip
    assert who_may_open(round, **people) == {"alice", "bob"}
    store_media(**send, sent_by=get_annotator(carol))  # who must see what they sent
    assert "carol" in who_may_open(round, **people)
    Media.objects.update(is_used=True)
    store_media(**send, sent_by=get_annotator(carol))
    delete_unreferenced_file(task=round.task, digest=DIGEST, leaver=get_annotator(alice))
    assert Media.objects.get().sent_by == get_annotator(carol)


def old(name):
    then = time.time() - 25 * 3600
    os.utime(default_storage.path(name), (then, then))


def test_files_without_a_row_go_after_a_day(round):
    assert tidy_orphans(10) == 0  # nothing is there
    store_media(task=round.task, kind="image", data=media.FILES["image"])
    kept = Media.objects.get().file.name
    lost = [
        default_storage.save(f"tasks/{round.task_id}/media/ab/{name}.png", ContentFile(b"x"))
        for name in ("old", "older", "new")
    ]
    for name in (kept, *lost[:2]):
        old(name)
    assert tidy_orphans(1) == 1
    assert tidy_orphans(10) == 1
    assert [default_storage.exists(name) for name in (kept, *lost)] == [True, False, False, True]


def test_the_doctor_reads_pictures(round):
    store_media(task=round.task, kind="image", data=media.FILES["image"])
    assert not [*find_damages()]
    with open(default_storage.path(Media.objects.get().file.name), "ab") as file:
        file.write(b"more")
    (found,) = find_damages()
    assert found.path == Media.objects.get().file.name
