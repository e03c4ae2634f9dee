"""Downloads that go on, and what reads them; boards."""

import hashlib
import importlib
import json

import httpx
import pytest

from dynabench import client as ours
from dynabench.client import Damaged, NotFound, Unreachable, as_dataset, as_pandas
from tests.unit.client.conftest import bad, good

DATA = b"".join(b'{"uid": "u%d"}\n' % n for n in range(500))
SHA256 = hashlib.sha256(DATA).hexdigest()


class Breaking(httpx.SyncByteStream):
    """Some bytes, and then the connection is gone."""

    def __init__(self, data):
        self.data = data

    def __iter__(self):
        yield self.data
        raise httpx.ReadError("gone")


class Files:
    """One file of round 1; each answer has at most `most` bytes before the connection breaks."""

    def __init__(self, most=None, data=DATA):
        self.most, self.data = most, data

    def __call__(self, request):
        if request.url.path.endswith("/datasets/"):
            file = {"name": "train.jsonl", "size": len(DATA), "sha256": SHA256, "url": "/x"}
            return good([{"round": 1, "version": n, "files": [file]} for n in (1, 10, 2)])
        headers = {"ETag": f'"{SHA256}"'}
        start = 0
        if asked := request.headers.get("Range"):
            assert request.headers["If-Range"] == headers["ETag"]
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
        rest = self.data[start:]
        if self.most and len(rest) > self.most:
            rest = Breaking(rest[: self.most])
            return httpx.Response(206 if start else 200, stream=rest, headers=headers)
        return httpx.Response(206 if start else 200, content=rest, headers=headers)


def test_the_newest_version_unless_told(server, client, tmp_path):
    server.route = Files()
    assert client.download_data("nli", 1, to=tmp_path) == tmp_path / "nli-round1-v10"
    assert (tmp_path / "nli-round1-v10" / "train.jsonl").read_bytes() == DATA
    assert client.download_data("nli", 1, 2, tmp_path) == tmp_path / "nli-round1-v2"
    assert server.lines[-1] == "GET /tasks/nli/rounds/1/datasets/2/files/train.jsonl"
    with pytest.raises(NotFound, match=r"1 v1, round 1 v10, round 1 v2\."):
        client.download_data("nli", 2, to=tmp_path)


def test_what_is_here_is_not_asked_for_again(server, client, tmp_path):
    server.route = Files()
    client.download_data("nli", 1, to=tmp_path)
    server.asked.clear()
    client.download_data("nli", 1, to=tmp_path)
    assert server.lines == ["GET /tasks/nli/datasets/"]


def test_it_goes_on_where_it_broke_off(server, client, tmp_path):
    server.route = Files(most=2000)
    folder = client.download_data("nli", 1, to=tmp_path)
    assert (folder / "train.jsonl").read_bytes() == DATA
    asked = [request.headers.get("Range") for request in server.asked[1:]]
    assert asked == [None, "bytes=2000-", "bytes=4000-", "bytes=6000-"]


def test_it_goes_on_in_another_process(server, client, tmp_path):
    client.retries = 0
    server.route = Files(most=2000)
    with pytest.raises(Unreachable):
        client.download_data("nli", 1, to=tmp_path)
    server.route = Files()
    folder = client.download_data("nli", 1, to=tmp_path)
    assert server.asked[-1].headers["Range"] == "bytes=2000-"
    assert (folder / "train.jsonl").read_bytes() == DATA
    assert [path.name for path in folder.iterdir()] == ["train.jsonl"]


def test_another_file_meanwhile_begins_anew(server, client, tmp_path):
    server.route = Files()
    folder = tmp_path / "nli-round1-v10"
    folder.mkdir()
    (folder / "train.jsonl.part").write_bytes(b"of another one")
    server.answers += [Files()(httpx.Request("GET", "http://x/datasets/"))]
    server.answers.append(httpx.Response(200, content=DATA))  # as If-Range has it
    client.download_data("nli", 1, to=tmp_path)
    assert (folder / "train.jsonl").read_bytes() == DATA


def test_a_connection_that_broke_at_the_very_end(server, client, tmp_path):
    folder = tmp_path / "nli-round1-v10"
    folder.mkdir()
    server.route = Files()
    server.answers.append(server.route(httpx.Request("GET", "http://x/datasets/")))
    server.answers += [httpx.Response(200, stream=Breaking(DATA)), httpx.Response(416)]
    client.download_data("nli", 1, to=tmp_path)
    assert (folder / "train.jsonl").read_bytes() == DATA


def test_damage_is_found_and_not_kept(server, client, tmp_path):
    server.route = Files(data=DATA[:-1] + b"!")
    with pytest.raises(Damaged, match=r"train\.jsonl arrived damaged"):
        client.download_data("nli", 1, to=tmp_path)
    assert not [*(tmp_path / "nli-round1-v10").iterdir()]


def test_a_bar_on_a_terminal(server, client, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    server.route = Files()
    client.download_data("nli", 1, to=tmp_path)
    assert "train.jsonl: 100%" in capsys.readouterr().err


def test_exports_begin_anew(server, client, tmp_path):
    server.answers += [
        httpx.Response(200, stream=Breaking(b"half a li")),
        httpx.Response(200, content=DATA),
    ]
    path = client.export("nli", 1, tmp_path / "new" / "one")
    assert (path.name, path.read_bytes()) == ("nli-round1.jsonl", DATA)
    server.answers.append(httpx.Response(200, content=DATA))
    path = client.download_inputs("nli", "dev", tmp_path)
    assert (path.name, path.read_bytes()) == ("nli-dev.inputs.jsonl", DATA)
    assert "Range" not in server.asked[1].headers


def test_a_refused_download_leaves_no_words_in_the_file(server, client, tmp_path):
    server.answers.append(bad(404))
    with pytest.raises(NotFound):
        client.export("nli", 1, tmp_path)
    assert not (tmp_path / "nli-round1.jsonl").exists()


@pytest.fixture
def folder(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    for split in ("train", "test"):
        rows = [{"uid": f"{split}{n}", "id": "007", "at": "2026-01-01"} for n in range(3)]
        (tmp_path / f"{split}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / f"{split}.parquet")
    return tmp_path


def test_pandas_reads_it_as_it_is(folder):
    frame = as_pandas(folder)
    assert list(frame["split"]) == ["test"] * 3 + ["train"] * 3
    assert (frame["id"][0], frame["at"][0]) == ("007", "2026-01-01")
    assert len(as_pandas(folder, ["test"])) == 3
    assert list(as_pandas(folder / "train.jsonl").columns) == ["uid", "id", "at"]


def test_a_test_split_without_answers_counts_only_alone(folder):
    (folder / "test.jsonl").rename(folder / "test-unlabelled.jsonl")
    assert set(as_pandas(folder)["split"]) == {"test-unlabelled", "train"}
    (folder / "test.jsonl").write_text('{"uid": "whole"}\n')
    assert set(as_pandas(folder)["split"]) == {"test", "train"}


def test_datasets_reads_it(folder, monkeypatch):
    monkeypatch.setenv("HF_DATASETS_CACHE", str(folder / "cache"))
    assert {split: len(rows) for split, rows in as_dataset(folder).items()} == {
        "train": 3,
        "test": 3,
    }


@pytest.mark.parametrize(("read", "name"), [(as_pandas, "pandas"), (as_dataset, "datasets")])
def test_what_is_missing_is_named(read, name, folder, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(ours.dataframes, "import_module", missing)
    with pytest.raises(ImportError, match=rf"pip install 'dynabench-client\[{name}\]'"):
        read(folder)
    assert importlib.import_module(name)


def test_a_board_by_weights(server, client):
    server.answers.append(good({"rows": []}))
    client.leaderboard("nli", {"accuracy": 4, "memory": 0.5}, {"round-1": 5}, "classic", mine=True)
    assert dict(server.asked[0].url.params) == {
        "w_accuracy": "4",
        "w_memory": "0.5",
        "d_round-1": "5",
        "mode": "classic",
        "mine": "1",
    }


def test_two_models_are_compared_on_the_board_of_their_task(server, client):
    server.answers += [good({"task": "nli"}), good({"rows": []})]
    client.compare("a", "b")
    assert server.asked[1].url.path == "/api/v1/tasks/nli/leaderboard/compare/"
    assert dict(server.asked[1].url.params) == {"a": "a", "b": "b", "mine": "1"}


def test_what_is_refused_leaves_nothing(server, client, tmp_path):
    server.answers.append(httpx.Response(404))
    with pytest.raises(NotFound):
        client.export("nli", 1, tmp_path)
    assert not [*tmp_path.iterdir()]
