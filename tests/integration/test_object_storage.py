"""A site whose files lie in a bucket of a real server: uploads, media, releases, sets, backups."""

import gzip
import hashlib
import io
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from datetime import UTC, datetime, timedelta
from functools import partial

import httpx
import pytest
from botocore.exceptions import ClientError
from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage, storages
from django.core.management import CommandError, call_command
from django.db import connection
from django.http import FileResponse
from django.test import override_settings
from django.urls import reverse
from django.utils import timezone

from core import outside
from core.env import EnvError, parse_object_storage_url
from core.errors import Unavailable
from core.files.storage import object_storage as bucket
from core.files.storage.object_storage import ObjectStorage, explain_error
from core.files.storage.stored import list_files, list_folders
from core.outside import limit_waiting_threads
from dynabench.operations.backups.stores import (
    MANIFEST_NAME,
    build_dated_address,
    open_store,
    put_file,
    remove_older_backups,
)
from dynabench.operations.soundness import health
from evaluation.dataset_releases.stored_files import find_damages
from evaluation.isolation.queue.cleanup import _remove_orphaned_set_files
from evaluation.isolation.uploads import chunked
from evaluation.isolation.uploads.chunked import (
    add_file,
    add_piece,
    assemble_upload,
    begin_upload,
    discard_upload,
)
from evaluation.models.evaluation_sets import SETS_FOLDER
from tasks.contexts.media.services import tidy_orphans
from tasks.models import Media
from tests.support.buckets import KEYS, bucket_server
from tests.support.factories import RoundFactory, TaskFactory, UserFactory
from tests.support.live import PATIENCE, ROOT, web_server
from tests.support.media import stored
from tests.support.submissions import make_set

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.bucket]


@pytest.fixture(scope="module")
def server():
    with bucket_server() as address:
        yield address


@pytest.fixture
def site(server, settings, tmp_path, monkeypatch):
    """Files lie in the bucket, and nothing in the folder of media."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    settings.MEDIA_ROOT = tmp_path / "none"
    settings.MODELS_HOME = tmp_path / "models"
    address = f"s3://site/{tmp_path.name}?endpoint={server}&region=us-east-1"
    plain = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    files = parse_object_storage_url(address)
    settings.STORAGES = {**settings.STORAGES, "default": files, "staticfiles": plain}
    yield address
    assert not (tmp_path / "none").exists()


def test_what_people_send_lies_in_the_bucket(site, monkeypatch):
    monkeypatch.setattr(chunked, "PIECE_BYTES", 4)
    alice = UserFactory()
    upload = add_file(alice, "model.zip", 10, io.BytesIO(b"0123456789"))
    with assemble_upload(upload) as path:
        assert path.read_bytes() == b"0123456789"

    # The same piece twice at once is one piece, and the other's file goes alone.
    again = begin_upload(alice, "b.zip", 3)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: sent_once(again), range(4)))
    with assemble_upload(again) as path:
        assert path.read_bytes() == b"abc"
    assert len(list_files(f"uploads/{again.pk}")) == 1
    assert len(list_folders("uploads")) == 2
    discard_upload(upload)
    again.delete()  # its owner was deleted: pieces without an upload
    chunked.purge_old_uploads()
    assert list_folders("uploads") == []


def sent_once(upload):
    try:
        return add_piece(upload, 0, io.BytesIO(b"abc"))
    finally:
        connection.close()


def test_media_and_sets_and_their_janitors(site, settings):
    round = RoundFactory(task=TaskFactory(code="nli"))
    value = stored(round.task, "image")
    media = Media.objects.get()
    assert hashlib.sha256(media.file.open().read()).hexdigest() == value["digest"]
    default_storage.save(f"tasks/{round.task_id}/media/ab/lost.png", ContentFile(b"x"))
    version = make_set(round.task, "open")
    sent = FileResponse(version.inputs.open("rb"), as_attachment=True)
    assert gzip.decompress(b"".join(sent)).count(b"\n") == 6
    default_storage.save(f"{SETS_FOLDER}/{version.evaluation_set_id}/v9-lost", ContentFile(b"x"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timezone, "now", lambda: datetime.now(UTC) + timedelta(days=2))
        assert tidy_orphans(10) == 1
        assert _remove_orphaned_set_files() == 1
    assert not list(find_damages())
    default_storage.delete(str(media.file))
    (damage,) = find_damages()
    assert (damage.path, damage.message) == (str(media.file), "is missing")


def test_a_site_in_a_bucket_is_backed_up_into_a_bucket(site, server, tmp_path, monkeypatch):
    monkeypatch.setenv("BACKUP_PASSPHRASE", "a passphrase that nobody guesses")
    round = RoundFactory(task=TaskFactory(code="nli"))
    stored(round.task, "image")
    where = f"s3://site/{tmp_path.name}-backup?endpoint={server}&region=us-east-1"
    call_command("backup", where)
    call_command("verify_backup", where)
    with pytest.raises(CommandError, match="already"):
        call_command("backup", where)
    here = f"s3://site/{tmp_path.name}-again?endpoint={server}&region=us-east-1"
    url = f"sqlite:///{tmp_path}/home/db.sqlite3"
    told = {"DYNABENCH_HOME": f"{tmp_path}/home", "DATABASE_URL": url, "STORAGE_URL": here}
    command = [sys.executable, "manage.py", "restore", where, "--without-log"]
    subprocess.run(command, cwd=ROOT, env=os.environ | told, check=True)
    again = storages.create_storage(parse_object_storage_url(here))
    name = Media.objects.get().file.name
    with default_storage.open(name) as old, again.open(name) as new:
        assert new.read() == old.read()


def test_old_backups_go_from_a_bucket(site, server, tmp_path):
    where = f"s3://site/{tmp_path.name}-daily?endpoint={server}&region=us-east-1"
    then = datetime(2026, 1, 1, tzinfo=UTC)
    for days in (0, 1):
        store = open_store(build_dated_address(where, then + timedelta(days)))
        for name in (MANIFEST_NAME, "media/a/b"):
            put_file(store, name, [b"x"])
    assert remove_older_backups(where, cutoff_at=then + timedelta(hours=1)) == ["2026-01-01T0000"]
    assert open_store(where).listdir("")[0] == ["2026-01-02T0000"]


def test_a_bucket_that_is_away_is_told_so(site, server):
    away = storages.create_storage(
        parse_object_storage_url("s3://site?endpoint=http://127.0.0.1:9")
    )
    with pytest.raises(Unavailable) as caught:
        away.open("a")
    assert caught.value.code == "storage"
    with pytest.raises(FileNotFoundError):
        default_storage.open("a")
    with pytest.raises(EnvError, match="form"):
        parse_object_storage_url("s3://site?endpint=x")
    with pytest.raises(EnvError, match="addressing"):
        parse_object_storage_url("s3://site?addressing=host")


@pytest.mark.parametrize(
    ("query", "address"),
    [
        ("region=eu-central-1", "https://site.s3.amazonaws.com/f/a"),
        ("endpoint=https://store.example&region=r", "https://store.example/site/f/a"),
        (
            "endpoint=https://store.example&region=r&addressing=virtual",
            "https://site.store.example/f/a",
        ),
        ("region=eu-west-1&addressing=path", "https://s3.eu-west-1.amazonaws.com/site/f/a"),
    ],
)
def test_the_buckets_name_is_in_the_path_or_in_the_host(monkeypatch, query, address):
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    store = storages.create_storage(parse_object_storage_url(f"s3://site/f?{query}"))
    client = store.connection.meta.client
    told = {"Bucket": store.bucket_name, "Key": f"{store.location}/a"}
    signed = client.generate_presigned_url("get_object", Params=told)
    assert signed.partition("?")[0] == address


def test_a_wrong_key_is_told_to_the_operator_alone(site, server, monkeypatch):
    monkeypatch.setenv("STORAGE_SECRET_KEY", "wrong")
    refused = storages.create_storage(
        parse_object_storage_url(f"s3://site?endpoint={server}&region=us-east-1")
    )
    with pytest.raises(Unavailable) as caught:
        refused.exists("a")
    assert "s3:ListBucket" in caught.value.detail
    assert "s3:ListBucket" not in str(caught.value)
    monkeypatch.setattr(health, "default_storage", refused)
    assert health.check_stored_files().state == "bad"


def test_a_bucket_that_wants_another_address_is_told_so():
    told = {"Error": {"Code": "SecondLevelDomainForbidden", "Message": "Use a virtual host."}}
    for addressing, cure in (("path", "virtual"), ("virtual", "path")):
        trouble = explain_error(ClientError(told, "HeadObject"), addressing)
        assert f"&addressing={cure}" in trouble
    told = {"Error": {"Code": "400"}}
    assert "region" in explain_error(ClientError(told, "HeadObject"), "path")


def test_a_stream_opens_its_file_before_it_answers(site, server, client, monkeypatch):
    monkeypatch.setattr(bucket, "POLICY_FOR_JOBS", bucket.POLICY_FOR_JOBS._replace(call_attempts=1))
    version = make_set(RoundFactory(task=TaskFactory(code="nli")).task, "open", may_leave=True)
    inputs = reverse("evaluation:set-inputs", args=["nli", version.pk])
    assert client.get(inputs).getvalue().count(b"\n") == 6
    away = parse_object_storage_url("s3://site?endpoint=http://127.0.0.1:9")
    with override_settings(STORAGES={**settings.STORAGES, "default": away}):
        for address in (inputs, "/api/v1/tasks/nli/evaluation-sets/open/inputs/"):
            response = client.get(address)
            assert response.status_code == 503
    assert response.json()["error"]["code"] == "storage"


def test_a_large_file_that_arrives_keeps_nobody_waiting(site, monkeypatch):
    name = default_storage.save("large.bin", ContentFile(b"x"))
    fetched = ObjectStorage._download

    def slowly(self, name, file):
        with self.slots.take_slot():  # which another request needs meanwhile
            return fetched(self, name, file)

    monkeypatch.setattr(ObjectStorage, "_download", slowly)
    monkeypatch.setattr(outside, "PATIENCE_SECONDS", 0.0)
    limit_waiting_threads(1)
    try:
        store = storages.create_storage(parse_object_storage_url(site))
        assert store.open(name).read() == b"x"
    finally:
        limit_waiting_threads(None)


def test_a_frozen_bucket_stops_nothing_else(site, server, tmp_path, monkeypatch):
    """As many pictures are asked for as a browser's tabs do, of a server with eight threads."""
    version = make_set(RoundFactory(task=TaskFactory(code="nli")).task, "open", may_leave=True)
    monkeypatch.setenv("STORAGE_URL", site)
    path = reverse("evaluation:set-inputs", args=["nli", version.pk])
    get = partial(httpx.get, timeout=PATIENCE, verify=False)
    with web_server(tmp_path) as url, ThreadPoolExecutor(40) as pool:
        assert get(url + path).status_code == 200
        with server.frozen():
            asked = [pool.submit(get, url + path) for _ in range(40)]
            wait(asked, return_when=FIRST_COMPLETED)
            assert get(f"{url}/healthz/").status_code == 200
            assert get(url).status_code == 200
            assert not all(one.done() for one in asked)
        codes = Counter(one.result().status_code for one in asked)
        assert codes.keys() <= {200, 503}
        assert codes[503] > 20
        assert get(url + path).status_code == 200
