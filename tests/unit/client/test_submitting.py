"""Folders as archives, uploads that go on where they were, and what is told of a model."""

import asyncio
import hashlib
import io
import re
import shutil
import tarfile
import threading
from datetime import date
from importlib import import_module

import httpx
import pytest

from dynabench import DynabenchClient
from dynabench.client import Invalid, QuotaReached, Refused
from dynabench.client.archive import measure_size, open_packed
from evaluation.isolation.uploads.archives import check_archive
from tests.unit.client.conftest import bad, good

PIECE = 1000


@pytest.fixture
def folder(tmp_path):
    """Of a model, with what training leaves next to it."""
    folder = tmp_path / "my-model"
    (folder / "checkpoint-5").mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "vocab.txt").write_text("a\nb\n")
    (folder / "model.safetensors").write_bytes(bytes(range(256)) * 10)
    for name in ("optimizer.pt", "training_args.bin", "run.py", ".hidden.json"):
        (folder / name).write_text("no")
    (folder / "checkpoint-5" / "model.safetensors").write_text("older")
    return folder


class Uploads:
    """The server's side of uploads; `breaks`: pieces that arrive and are not answered."""

    def __init__(self, breaks=()):
        self.rows, self.data, self.breaks, self.pieces = [], {}, list(breaks), 0
        self.left, self.largest = 3, 10**6
        self.submitted = []

    def __call__(self, request):
        path = request.url.path.removeprefix("/api/v1")
        if path == "/uploads/":
            return good(self.list(request))
        if found := re.fullmatch(r"/uploads/(\w+)/", path):
            return self.upload(found[1], request)
        if path == "/tasks/nli/quota/":
            return good(
                {
                    "left": self.left,
                    "free_at": "2026-01-01T10:00:00Z",
                    "largest_bytes": self.largest,
                }
            )
        self.submitted.append(request)
        return good({"id": "m1"}, 201)

    def list(self, request):
        if request.method == "GET":
            return {"next": None, "results": [self.shown(one) for one in self.rows]}
        told = httpx.Response(200, content=request.content).json()
        row = {"id": f"u{len(self.rows)}", "piece_bytes": PIECE, **told}
        self.rows.append(row)
        self.data[row["id"]] = b""
        return self.shown(row)

    def shown(self, row):
        return {**row, "received": len(self.data[row["id"]])}

    def upload(self, id, request):
        row = next(one for one in self.rows if one["id"] == id)
        if request.method == "PUT":
            if int(request.url.params["offset"]) != len(self.data[id]):
                return bad(409, "offset")
            self.data[id] += request.content
            self.pieces += 1
            if self.pieces in self.breaks:
                return httpx.ReadError("broken")
        return good(self.shown(row))


def content(path):
    with open_packed(path) as file:
        file.seek(0)
        return file.read()


def test_a_folder_is_the_same_archive_each_time(folder, tmp_path):
    archive = content(folder)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        assert tar.getnames() == ["config.json", "model.safetensors", "vocab.txt"]
    (tmp_path / "a.tar").write_bytes(archive)
    assert len(check_archive(tmp_path / "a.tar")) == 3
    copy = shutil.copytree(folder, tmp_path / "copy", copy_function=shutil.copyfile)
    (copy / "config.json").unlink()
    (copy / "config.json").symlink_to(folder / "config.json")  # as in the hub's cache
    assert content(copy) == archive
    for name in ("config.json", "model.safetensors"):
        (copy / name).rename(copy / f"adapter_{name}")
    with tarfile.open(fileobj=io.BytesIO(content(copy))) as tar:  # a LoRA adapter's
        assert tar.getnames()[0] == "adapter_config.json"


def test_what_cannot_be_packed(tmp_path, folder):
    with pytest.raises(FileNotFoundError, match="none"):
        measure_size(tmp_path / "none")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ValueError, match=r"no weights .* safetensors"):
        open_packed(folder)
    (folder / "config.json").unlink()
    with pytest.raises(ValueError, match=r"config\.json is missing .*save_pretrained"):
        open_packed(folder)


def test_a_file_is_sent_as_it_is(folder, tmp_path):
    assert content(folder / "vocab.txt") == (folder / "vocab.txt").read_bytes()


def test_a_model_is_handed_in(server, client, folder, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    server.route = uploads = Uploads()
    told = {"description": "Mine.", "license": "MIT"}
    assert client.submit_model(folder, "nli", name="one", **told) == "m1"
    assert [path.name for path in tmp_path.iterdir()] == ["my-model"]  # the archive is gone
    sent = content(folder)
    digest = hashlib.sha256(sent).hexdigest()
    assert uploads.rows[0]["file_name"] == f"my-model.{digest}.tar"
    assert uploads.data == {"u0": sent}
    assert server.body() == {"kind": "directory", "name": "one", "card": told, "upload": "u0"}


def test_the_name_is_the_folders_with_the_time(server, client, folder):
    server.route = Uploads()
    client.submit_model(folder, "nli")
    assert re.fullmatch(r"my-model \d{4}-\d\d-\d\d \d\d:\d\d:\d\d", server.body()["name"])


def test_the_name_of_where_one_stands_and_of_a_link(server, client, folder, monkeypatch):
    server.route = Uploads()
    monkeypatch.chdir(folder)
    client.submit_model(".", "nli")
    assert server.body()["name"].startswith("my-model 20")
    (folder.parent / "link").symlink_to(folder)
    client.submit_model("../link", "nli")
    assert server.body()["name"].startswith("link 20")


def test_a_broken_connection_goes_on(server, client, folder, tmp_path):
    server.route = uploads = Uploads(breaks=[2, 3])
    client.submit_model(folder, "nli")
    assert uploads.data == {"u0": content(folder)}


def test_a_killed_process_goes_on_in_another_one(server, folder, tmp_path):
    server.route = uploads = Uploads()
    size = len(content(folder))

    class Killed(BaseException):
        pass

    def dying(request):
        if uploads.pieces == 3:
            raise Killed
        return uploads(request)

    transport = httpx.MockTransport(dying)
    with pytest.raises(Killed):
        DynabenchClient("key", transport=transport).submit_model(folder, "nli")
    assert len(uploads.data["u0"]) == 3 * PIECE
    DynabenchClient("key", transport=httpx.MockTransport(server)).submit_model(folder, "nli")
    assert [len(data) for data in uploads.data.values()] == [size]
    assert uploads.pieces == -(-size // PIECE)


@pytest.mark.parametrize("slow", ["archive.list_allowed_files", "upload.compute_file_digest"])
def test_packing_and_hashing_let_others_work(server, awaiting, folder, monkeypatch, slow):
    server.route = uploads = Uploads()
    begun, others_worked = threading.Event(), threading.Event()
    module, name = slow.split(".")
    quick = getattr(import_module(f"dynabench.client.{module}"), name)

    def waits(path):
        begun.set()
        assert others_worked.wait(60)
        return quick(path)

    monkeypatch.setattr(f"dynabench.client.{slow}", waits)

    async def both():
        sending = asyncio.create_task(awaiting.submit_model(folder, "nli"))
        await asyncio.to_thread(begun.wait, 10)
        others_worked.set()
        return await sending

    assert asyncio.run(both()) == "m1"
    assert len(uploads.data) == 1


def test_what_fails_in_a_thread_is_raised(awaiting, tmp_path):
    with pytest.raises(FileNotFoundError, match="none"):
        asyncio.run(awaiting.submit_model(tmp_path / "none", "nli"))


def test_another_folder_is_another_upload(server, client, folder):
    server.route = uploads = Uploads()
    client.submit_model(folder, "nli")
    (folder / "vocab.txt").write_text("c\nd\n")
    client.submit_model(folder, "nli")
    assert len(uploads.data) == 2


def test_a_server_that_does_not_go_on_is_no_loop(server, client, folder):
    uploads = Uploads()
    server.route = lambda request: (
        bad(409, "offset") if request.method == "PUT" else uploads(request)
    )
    with pytest.raises(Refused):
        client.submit_model(folder, "nli")


def test_nothing_is_sent_when_the_quota_is_reached(server, client, folder):
    server.route = uploads = Uploads()
    uploads.left = 0
    with pytest.raises(QuotaReached, match="again at 2026-01-01"):
        client.submit_model(folder, "nli")
    assert not uploads.rows


def test_what_is_too_large_is_neither_packed_nor_hashed(server, client, folder, monkeypatch):
    server.route = uploads = Uploads()
    uploads.largest = 2000
    for name in ("open_packed", "compute_file_digest"):
        monkeypatch.setattr(f"dynabench.client.upload.{name}", lambda _: pytest.fail("read"))
    with pytest.raises(ValueError, match="limit is 2,000 bytes"):
        client.submit_model(folder, "nli")
    with pytest.raises(ValueError, match="limit is"):
        client.submit_predictions(folder / "model.safetensors", "nli", "dev")
    assert not uploads.rows


def test_a_killed_process_leaves_no_copy(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with open_packed(folder) as archive:
        assert archive.seek(0, 2) > 2560
        assert [path.name for path in tmp_path.iterdir()] == ["my-model"]


def test_the_other_kinds(server, client, folder):
    server.route = uploads = Uploads()
    answers = folder / "answers.jsonl"
    answers.write_text("{}\n")
    digest = f"registry/name@sha256:{'a' * 64}"
    client.submit_predictions(answers, "nli", "dev", name="p")
    assert server.body() == {
        "kind": "predictions", "name": "p", "card": {}, "evaluation_set": "dev", "upload": "u0"
    }  # fmt: skip
    client.submit_image(answers, "nli", name="i")
    assert server.body()["upload"] == "u0"
    client.submit_image(digest, "nli", adapter="dynalab", name="i")
    assert server.body() == {
        "kind": "image", "name": "i", "card": {}, "adapter": "dynalab", "source": digest
    }  # fmt: skip
    client.submit_image(digest, "nli")
    assert server.body()["name"].startswith("name 20")
    client.submit_hub("org/model", "b" * 40, "nli", name="h")
    assert server.body() == {
        "kind": "hub", "name": "h", "card": {}, "source": "org/model", "revision": "b" * 40
    }  # fmt: skip
    client.submit_endpoint("https://m.org/", "nli", "e", secret="s", parameters=7)
    assert server.body() == {
        "kind": "endpoint", "name": "e", "card": {"parameters": 7}, "source": "https://m.org/",
        "adapter": "jsonl", "secret": "s",
    }  # fmt: skip
    chat = {"model": "m", "shots": 2}
    client.submit_chat("https://m.org/v1", "nli", "c", chat, secret="s")
    assert server.body() == {
        "kind": "chat", "name": "c", "card": {}, "source": "https://m.org/v1", "secret": "s",
        "chat": chat,
    }  # fmt: skip
    client.estimate_chat("nli", chat)
    assert server.body() == chat
    client.publish_on("m1", date(2026, 12, 1))
    assert server.body() == {"day": "2026-12-01"}
    client.follow("nli", False)
    assert server.body() == {"follows": False}
    client.change_cap("m1", 2.5)
    assert server.body() == {"most_cost": 2.5}
    assert len(uploads.rows) == 1


def test_wrong_input_says_which_field(server, client):
    server.answers.append(bad(422, "invalid", "Some fields.", {"revision": ["Enter the commit."]}))
    with pytest.raises(Invalid, match="revision: Enter the commit") as caught:
        client.submit_hub("org/model", "main", "nli")
    assert caught.value.fields == {"revision": ["Enter the commit."]}
