"""Bodies of requests: refused before they are read where they are too large or nothing has room."""

import errno
import io
from collections import namedtuple

import pytest
from django.core.files.storage import FileSystemStorage

from core.files.storage import disk
from core.web.outages import find_outage
from evaluation.isolation.uploads.chunked import PIECE_BYTES, UploadRefused, add_piece, begin_upload
from evaluation.models import Upload
from evaluation.test_sets.forms import MAX_FILE_BYTES
from tasks.models import Round, TaskMember
from tests.support.factories import RoundFactory, TaskFactory

MANY = 150 * 2**20


class Unread(io.BytesIO):
    """A body that nobody may read."""

    def read(self, *_):
        raise AssertionError("it was read")

    readline = read


def post(client, path, size, **more):
    """A POST that says how long its body is, and fails when a byte of it is read."""
    kind = "application/json" if path.startswith("/api/") else "multipart/form-data; boundary=x"
    told = {"CONTENT_TYPE": kind, **more}
    return client.post(
        path, b"", content_type="text/plain",
        **{"wsgi.input": Unread(), "CONTENT_LENGTH": str(size), **told},
    )  # fmt: skip


@pytest.mark.parametrize("path", ["/accounts/login/", "/accounts/signup/", "/t/nli/submit/"])
def test_a_stranger_sends_no_large_body(path, client, db):
    TaskFactory(code="nli")
    assert post(client, path, MANY).status_code == 413


def test_the_api_says_it_in_its_shape(client, db):
    reply = post(client, "/api/v1/tokens/", MANY)
    assert (reply.status_code, reply.json()["error"]["code"]) == (413, "too_large")


def test_a_body_of_no_known_length_is_not_read(client, db):
    reply = post(client, "/accounts/login/", "", HTTP_TRANSFER_ENCODING="chunked")
    assert reply.status_code == 411


@pytest.fixture
def owner(as_alice, alice):
    task = TaskFactory(code="nli")
    RoundFactory(task=task)
    TaskMember.objects.create(task=task, user=alice, role="owner")
    return as_alice


@pytest.mark.parametrize(
    ("path", "most"),
    [
        ("/accounts/email/", 2**20),
        ("/own/nli/evaluation-sets/new/", MAX_FILE_BYTES),
        ("/own/nli/rounds/1/contexts/", 200 * 2**20),
        ("/t/nli/submit/", 2**30),  # what a person without a confirmed address may have here
        ("/api/v1/tasks/nli/rounds/1/contexts/", 20 * 2**20),
        ("/api/v1/tasks/nli/rounds/", 2**20),
    ],
)
def test_each_address_has_a_limit_of_its_own(path, most, owner):
    path = path.format(round=Round.objects.get().pk)
    assert post(owner, path, 2 * most + 2**24).status_code == 413
    with pytest.raises(AssertionError, match="it was read"):
        post(owner, path, most)


def test_a_piece_may_be_as_large_as_pieces_are(as_alice, alice):
    upload = begin_upload(alice, "a", 2 * PIECE_BYTES)
    url = f"/uploads/{upload.pk}/?offset=0"
    assert post(as_alice, url, PIECE_BYTES + 1).status_code == 413
    data = {"content_type": "application/octet-stream"}
    assert as_alice.put(url, b"x" * 10, **data).status_code == 200


@pytest.fixture
def full(monkeypatch):
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda path: usage(2**20))


def test_without_room_nothing_large_is_read(full, owner):
    reply = post(owner, "/own/nli/evaluation-sets/new/", MANY)
    assert (reply.status_code, reply["Retry-After"]) == (507, "600")


def test_without_room_no_upload_is_begun(full, as_alice):
    told = {"file_name": "a", "size": 10}
    reply = as_alice.post("/api/v1/uploads/", told, content_type="application/json")
    assert (reply.status_code, reply.json()["error"]["code"]) == (507, "unavailable")
    assert reply["Retry-After"] == "600"
    reply = as_alice.post("/uploads/", told, content_type="application/json")
    assert reply.status_code == 507
    assert not Upload.objects.exists()


JSON = {"Accept": "application/json"}


@pytest.mark.parametrize(
    ("number", "status"), [(errno.ENOSPC, 507), (errno.EROFS, 503), (errno.EACCES, 503)]
)
def test_what_cannot_be_stored_is_told_without_our_paths(
    number, status, as_alice, alice, monkeypatch, caplog
):
    def broken(*_):
        raise OSError(number, "cannot", "/srv/secret/place")

    upload = begin_upload(alice, "a", 10)
    monkeypatch.setattr(FileSystemStorage, "_save", broken)
    sent = {"data": b"0123456789", "content_type": "application/octet-stream"}
    for reply in (
        as_alice.put(f"/api/v1/uploads/{upload.pk}/?offset=0", **sent),
        as_alice.put(f"/uploads/{upload.pk}/?offset=0", **sent, headers=JSON),
        as_alice.put(f"/uploads/{upload.pk}/?offset=0", **sent),
    ):
        assert reply.status_code == status
        assert int(reply["Retry-After"]) > 0
        assert "/srv/secret" not in reply.text
    assert "/srv/secret/place" in caplog.text


def test_a_connection_that_broke_is_no_fault_of_the_disk(alice):
    class Broken:
        def read(self, size):
            raise OSError(errno.EIO, "gone")

    with pytest.raises(UploadRefused, match="interrupted"):
        add_piece(begin_upload(alice, "a", 10), 0, Broken())


def test_errors_that_are_not_about_storing_stay_errors():
    assert find_outage(FileNotFoundError(errno.ENOENT, "x")) is None
