"""Files in pieces through the API: never in memory, sent again, other people's not there."""

import pytest

from evaluation.api import uploads as views
from evaluation.isolation.uploads import chunked as rules
from evaluation.isolation.uploads.chunked import MAX_OPEN_UPLOADS, assemble_upload
from evaluation.models import Submission, Upload
from tests.support.api_errors import error

URL = "/api/v1/uploads/"
BYTES = "application/octet-stream"


@pytest.fixture(autouse=True)
def _small_and_apart(settings, tmp_path, monkeypatch):
    settings.MEDIA_ROOT = tmp_path
    for module in (rules, views):
        monkeypatch.setattr(module, "PIECE_BYTES", 4)


def begin(client, size=10, name="model.zip"):
    return client.post(URL, {"file_name": name, "size": size})


def put(client, pk, offset, data, **headers):
    url = f"{URL}{pk}/?offset={offset}"
    return client.put(url, data, content_type=headers.pop("content_type", BYTES), headers=headers)


def test_pieces_make_the_file(api):
    reply = begin(api)
    assert reply.status_code == 201
    told = reply.json()
    pk = told.pop("id")
    assert told.pop("begun_at")
    assert told == {"file_name": "model.zip", "size": 10, "received": 0, "piece_bytes": 4}
    here = [put(api, pk, at, data).json()["received"] for at, data in
            ((0, b"0123"), (4, b"4567"), (4, b"4567"), (8, b"89"))]  # fmt: skip
    assert here == [4, 8, 8, 10]
    assert api.get(f"{URL}{pk}/").json()["received"] == 10
    assert [(one["id"], one["received"]) for one in api.get(URL).json()["results"]] == [(pk, 10)]
    with assemble_upload(Upload.objects.get()) as path:
        assert path.read_bytes() == b"0123456789"


def test_a_key_is_not_looked_at_so_that_no_piece_is_kept_twice(api):
    pk = begin(api).json()["id"]
    for at, data in ((0, b"0123"), (4, b"4567")):
        reply = put(api, pk, at, data, **{"Idempotency-Key": "one"})
    assert reply.json()["received"] == 8


def test_a_piece_is_read_as_a_stream(api, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1  # of what is read whole
    pk = Upload.objects.create(owner=_alice(), file_name="a", size=10).pk
    assert put(api, pk, 0, b"0123").json()["received"] == 4


def _alice():
    from core.accounts.models import User

    return User.objects.get(email="alice@example.com")


@pytest.mark.parametrize(
    ("offset", "data", "status", "code", "words"),
    [
        (4, b"0123", 409, "offset", "0 bytes are here"),
        (0, b"01234", 422, "upload", "too large"),
        (0, b"", 422, "upload", "0 of 1 bytes"),
        ("", b"0123", 422, "invalid", ""),
        (-1, b"0123", 422, "invalid", ""),
        (2**63, b"0123", 422, "invalid", ""),
        ("x", b"0123", 422, "invalid", ""),
    ],
)
def test_pieces_that_are_refused(api, offset, data, status, code, words):
    pk = begin(api).json()["id"]
    reply = put(api, pk, offset, data)
    assert (reply.status_code, error(reply)["code"]) == (status, code)
    assert words in error(reply)["message"]
    assert api.get(f"{URL}{pk}/").json()["received"] == 0


@pytest.mark.parametrize(
    "kind",
    [
        "",
        BYTES,
        "application/x-www-form-urlencoded",
        "application/json",
        "text/plain; charset=x",
        "?",
    ],
)
def test_bytes_are_a_piece_whatever_they_are_called(api, settings, kind):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1  # nothing reads them as a form
    pk = Upload.objects.create(owner=_alice(), file_name="a", size=10).pk
    reply = api.generic("PUT", f"{URL}{pk}/?offset=0", b"a=%&", content_type=kind)
    assert reply.json()["received"] == 4
    assert Upload.objects.get().pieces.get().file.read() == b"a=%&"


def test_a_form_around_a_file_is_no_piece(api):
    pk = begin(api).json()["id"]
    reply = put(api, pk, 0, b"0123", content_type="multipart/form-data; boundary=a")
    assert (reply.status_code, error(reply)["code"]) == (415, "unsupported_media_type")
    assert api.get(f"{URL}{pk}/").json()["received"] == 0


@pytest.mark.parametrize(
    ("told", "field"),
    [
        ({"size": 10}, "file_name"),
        ({"file_name": "a", "size": 0}, "size"),
        ({"file_name": "a", "size": 2**70}, "size"),
        ({"file_name": "a\0", "size": 10}, "file_name"),
    ],
)
def test_what_no_file_is(api, told, field):
    reply = api.post(URL, told)
    assert reply.status_code == 422
    assert set(error(reply)["fields"]) == {field}
    assert not Upload.objects.exists()


def test_too_large_or_too_many_files_are_refused_with_words(api, settings):
    settings.LARGEST_UPLOAD_BYTES = 2**30
    reply = begin(api, 2**31)
    assert (reply.status_code, error(reply)["code"]) == (422, "upload")
    assert "1 byte and 1 GiB" in error(reply)["message"]
    for _ in range(MAX_OPEN_UPLOADS):
        begin(api)
    assert (begin(api).status_code, Upload.objects.count()) == (422, MAX_OPEN_UPLOADS)


def test_others_files_are_not_there(api, bobs, anybody):
    pk = begin(api).json()["id"]
    for answer in (bobs.get(f"{URL}{pk}/"), put(bobs, pk, 0, b"0123"), bobs.delete(f"{URL}{pk}/")):
        assert answer.status_code == 404
    assert bobs.get(URL).json()["results"] == []
    for answer in (anybody.get(URL), anybody.get(f"{URL}{pk}/"), put(anybody, pk, 0, b"0123")):
        assert answer.status_code == 401
    assert Upload.objects.get().pieces.count() == 0


def test_a_token_without_the_scope_sends_nothing(api, api_of, alice):
    pk = begin(api).json()["id"]
    reader = api_of(alice, "read")
    assert reader.get(f"{URL}{pk}/").status_code == 200
    for answer in (put(reader, pk, 0, b"0123"), begin(reader), reader.delete(f"{URL}{pk}/")):
        assert (answer.status_code, error(answer)["code"]) == (403, "scope")


@pytest.mark.parametrize(("state", "status"), [("queued", 404), ("failed", 204)])
def test_a_file_whose_check_has_not_ended_stays(api, alice, nli, state, status):
    pk = begin(api).json()["id"]
    Submission.objects.create(
        task=nli.task, owner=alice, kind="directory", name="m", upload_id=pk, state=state
    )
    assert api.delete(f"{URL}{pk}/").status_code == status
    assert Upload.objects.exists() == (status == 404)


def test_a_file_is_thrown_away(api):
    pk = begin(api).json()["id"]
    put(api, pk, 0, b"0123")
    assert api.delete(f"{URL}{pk}/").status_code == 204
    assert api.get(f"{URL}{pk}/").status_code == 404
    assert not Upload.objects.exists()
