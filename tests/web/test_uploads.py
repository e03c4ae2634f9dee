"""Uploads in pieces: broken connections, repeated pieces, other people, caps."""

import io
from datetime import timedelta

import pytest
from allauth.account.models import EmailAddress
from django.core.files.storage import default_storage
from django.db import transaction
from django.test import Client
from django.utils import timezone

from evaluation.isolation.uploads import chunked
from evaluation.isolation.uploads.chunked import (
    MAX_OPEN_UPLOADS,
    UploadRefused,
    WrongOffset,
    add_file,
    add_piece,
    assemble_upload,
    begin_upload,
    check_storage_quota,
    count_received_bytes,
    count_remaining_bytes,
    discard_upload,
    purge_old_uploads,
    select_open_uploads,
)
from evaluation.models import Submission, Upload, UploadPiece
from evaluation.submissions.services import withdraw_model
from tests.support.factories import TaskFactory, UserFactory
from tests.support.marked import esperanto  # noqa: F401

# ruff: noqa: F811  (fixtures are named where they are used)


@pytest.fixture(autouse=True)
def _small_and_apart(settings, tmp_path, monkeypatch):
    settings.MEDIA_ROOT = tmp_path
    monkeypatch.setattr(chunked, "PIECE_BYTES", 4)


@pytest.fixture
def upload(alice):
    return begin_upload(alice, "model.zip", 10)


def piece(upload, offset, data, **options):
    return add_piece(upload, offset, io.BytesIO(data), **options)


def content(upload):
    with assemble_upload(upload) as path:
        return path.read_bytes()


def files():
    if not default_storage.exists("uploads"):
        return []
    folders = default_storage.listdir("uploads")[0]
    return [name for folder in folders for name in default_storage.listdir(f"uploads/{folder}")[1]]


def test_pieces_make_the_file(upload):
    assert [piece(upload, 0, b"0123"), piece(upload, 4, b"4567"), piece(upload, 8, b"89")] == [
        *(4, 8, 10)
    ]
    assert content(upload) == b"0123456789"


def test_a_repeated_piece_counts_once(upload):
    piece(upload, 0, b"0123")
    piece(upload, 4, b"45")
    assert piece(upload, 0, b"0123") == 6
    assert piece(upload, 4, b"4567") == 6
    assert UploadPiece.objects.count() == len(files()) == 2


@pytest.mark.parametrize("offset", [1, 3, 5, 8, 100])
def test_a_piece_that_does_not_follow_is_refused_with_the_right_place(offset, upload):
    piece(upload, 0, b"0123")
    with pytest.raises(WrongOffset) as error:
        piece(upload, offset, b"x")
    assert error.value.offset == 4
    assert len(files()) == 1


@pytest.mark.parametrize(("offset", "data"), [(0, b"01234"), (8, b"890")])
def test_more_than_a_piece_or_the_file_holds_is_refused(offset, data, upload):
    for before in range(0, offset, 4):
        piece(upload, before, b"abcd")
    with pytest.raises(UploadRefused, match="too large"):
        piece(upload, offset, data)
    assert count_received_bytes(upload) == offset


def test_a_piece_that_broke_off_is_not_kept(upload):
    with pytest.raises(UploadRefused, match="2 of 4 bytes"):
        piece(upload, 0, b"01", size=4)
    with pytest.raises(UploadRefused, match="0 of 1 bytes"):
        piece(upload, 0, b"")
    assert (count_received_bytes(upload), files()) == (0, [])


def test_of_two_pieces_at_the_same_place_the_first_counts(upload, monkeypatch):
    """The other one came while this one was being stored."""
    store = chunked._store_piece

    def late(made):
        with transaction.atomic():
            monkeypatch.setattr(chunked, "_store_piece", store)
            piece(upload, 0, b"0123")
        return store(made)

    monkeypatch.setattr(chunked, "_store_piece", late)
    assert piece(upload, 0, b"abcd") == 4
    assert UploadPiece.objects.count() == len(files()) == 1


def test_a_piece_of_an_upload_that_is_gone_leaves_nothing(upload, monkeypatch):
    store = chunked._store_piece

    def late(made):
        discard_upload(upload)
        return store(made)

    monkeypatch.setattr(chunked, "_store_piece", late)
    with pytest.raises(UploadRefused, match="discarded"):
        piece(Upload.objects.get(), 0, b"0123")
    assert files() == []


def test_an_unfinished_file_is_not_assembled(upload):
    piece(upload, 0, b"0123")
    with pytest.raises(UploadRefused, match="4 of 10 bytes"), assemble_upload(upload):
        pass


def test_a_whole_file_goes_the_same_way(alice):
    upload = add_file(alice, "rows.csv", 10, io.BytesIO(b"0123456789"))
    assert list(upload.pieces.values_list("offset", "size")) == [(0, 4), (4, 4), (8, 2)]
    assert content(upload) == b"0123456789"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\models\\m.zip", "m.zip"),
        ("a\0b\nc.zip", "abc.zip"),
        ("", "file"),
        ("x" * 300 + ".zip", "x" * 196 + ".zip"),
    ],
)
def test_a_name_is_only_a_name(given, kept, alice):
    assert begin_upload(alice, given, 1).file_name == kept


def test_a_person_has_few_open_uploads(alice, bob):
    made = [begin_upload(alice, "a", 1) for _ in range(MAX_OPEN_UPLOADS)]
    with pytest.raises(UploadRefused, match="discard one"):
        begin_upload(alice, "a", 1)
    begin_upload(bob, "a", 1)
    discard_upload(made[0])
    begin_upload(alice, "a", 1)
    assert made[1] in select_open_uploads(alice)


def test_what_is_handed_in_is_open_no_more(alice):
    for number in range(MAX_OPEN_UPLOADS + 1):
        upload = begin_upload(alice, "a", 1)
        task = TaskFactory(code=f"t{number}", config_text=TaskFactory.build().config_text)
        Submission.objects.create(task=task, owner=alice, kind="directory", upload=upload)
    assert not select_open_uploads(alice).exists()


def hold(owner, size, **told):
    task = TaskFactory(code=f"t{size}", config_text=TaskFactory.build().config_text)
    values = {"task": task, "owner": owner, "kind": "directory", "state": "done", "size": size}
    return Submission.objects.create(**values, file="a", **told)


def test_a_person_holds_so_many_bytes(alice, bob, settings):
    """Open uploads, files in a check, and what is kept of models; not what was withdrawn."""
    settings.UNCONFIRMED_QUOTA_BYTES = 1000
    begin_upload(bob, "a", 1000)
    upload = begin_upload(alice, "a", 300)
    hold(alice, 200, upload=upload)
    withdrawn = hold(alice, 400)
    with pytest.raises(UploadRefused, match="100\xa0bytes of"):
        begin_upload(alice, "a", 101)
    begin_upload(alice, "a", 100)
    withdraw_model(submission=withdrawn, actor=alice)
    begin_upload(alice, "a", 400)
    assert count_remaining_bytes(alice) == 0


def test_who_confirmed_an_address_may_hold_more(alice, settings):
    settings.UNCONFIRMED_QUOTA_BYTES, settings.QUOTA_BYTES = 10, 20
    address = EmailAddress.objects.create(user=alice, email=alice.email, verified=False)
    with pytest.raises(UploadRefused, match="Confirm"):
        begin_upload(alice, "a", 11)
    address.set_verified()
    begin_upload(alice, "a", 11)


def test_what_unfolds_counts_when_it_is_stored(alice, settings):
    settings.UNCONFIRMED_QUOTA_BYTES = 1000
    upload = begin_upload(alice, "a", 300)
    begin_upload(alice, "a", 300)
    check_storage_quota(upload, alice, 700)  # in place of the upload
    with pytest.raises(UploadRefused, match="700\xa0bytes of"):
        check_storage_quota(upload, alice, 701)


@pytest.mark.parametrize("size", [0, -1, 2001])
def test_sizes_have_bounds(size, alice, settings):
    settings.LARGEST_UPLOAD_BYTES = 2000
    with pytest.raises(UploadRefused):
        begin_upload(alice, "a", size)


def test_old_uploads_go_with_their_files_unless_a_check_waits(alice):
    _, new, waiting, checked = (add_file(alice, n, 1, io.BytesIO(b"x")) for n in "abcd")
    values = {"task": TaskFactory(), "owner": alice, "kind": "directory"}
    Submission.objects.create(**values, upload=waiting)
    Submission.objects.create(**values, upload=checked, state="done")
    Upload.objects.exclude(pk=new.pk).update(begun_at=timezone.now() - timedelta(days=4))
    assert purge_old_uploads() == 2
    assert set(Upload.objects.all()) == {new, waiting}
    assert len(files()) == 2
    assert Submission.objects.count() == 2


def test_files_without_an_upload_go_too(alice, bob):
    mine, theirs = (add_file(user, "a", 6, io.BytesIO(b"012345")) for user in (alice, bob))
    bob.delete()
    assert len(files()) == 4
    purge_old_uploads()
    assert default_storage.listdir("uploads")[0] == [str(mine.pk)]
    assert content(mine) == b"012345"
    assert not Upload.objects.filter(pk=theirs.pk).exists()


def test_nothing_to_purge(db):
    assert purge_old_uploads() == 0


def send(client, url, offset, data):
    return client.put(f"{url}?offset={offset}", data, content_type="application/octet-stream")


def begin(client, size=6, **headers):
    told = {"file_name": "m.zip", "size": size}
    return client.post("/uploads/", told, content_type="application/json", headers=headers)


def test_the_script_of_the_page_speaks_the_protocol_of_the_api(as_alice):
    begun = begin(as_alice)
    assert begun.status_code == 201
    url = f"/uploads/{begun.json()['id']}/"
    assert begun.json() == as_alice.get(f"/api/v1{url}").json()
    assert send(as_alice, url, 0, b"0123").json()["received"] == 4
    wrong = send(as_alice, url, 2, b"23")
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (409, "offset")
    assert as_alice.get(url).json()["received"] == 4
    assert send(as_alice, url, 4, b"45").json()["received"] == 6
    assert content(Upload.objects.get()) == b"012345"
    assert as_alice.delete(url).status_code == 204
    assert as_alice.get(url).status_code == 404
    assert files() == []


def test_the_page_answers_in_the_language_of_the_person(as_alice, esperanto):
    """As no address below /api/ does."""
    other = {"Accept-Language": "eo"}
    url = f"/uploads/{begin(as_alice).json()['id']}/?offset=0"
    sent = {"data": b"01234", "content_type": "application/octet-stream", "headers": other}
    page, api = as_alice.put(url, **sent).json(), as_alice.put(f"/api/v1{url}", **sent).json()
    assert page["error"]["code"] == api["error"]["code"]
    assert page["error"]["message"].startswith("⟦")
    assert "⟦" not in api["error"]["message"]


def test_too_much_is_refused_in_words(as_alice, settings):
    settings.LARGEST_UPLOAD_BYTES = 5
    assert begin(as_alice, 6).status_code == 422
    url = f"/uploads/{begin(as_alice, 5).json()['id']}/"
    assert send(as_alice, url, 0, b"012345").status_code == 422


@pytest.mark.parametrize("method", ["get", "put", "delete"])
def test_an_upload_is_its_owners_alone(method, client, upload):
    url = f"/uploads/{upload.pk}/"
    assert getattr(client, method)(url).status_code == 401
    client.force_login(UserFactory(is_superuser=True))
    assert getattr(client, method)(url).status_code == 404
    assert Upload.objects.exists()


def test_uploads_need_the_forms_token(alice):
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    assert begin(client).status_code == 403
    upload = begin_upload(alice, "m", 4)
    assert send(client, f"/uploads/{upload.pk}/", 0, b"0123").status_code == 403
    assert count_received_bytes(upload) == 0
