"""Sets in shards: everything once, whole batches, each like the whole; and one ending of all."""

import fcntl
import json
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evaluation.contract import Ending, Outcome, Runnable, Usage
from evaluation.isolation.sandbox.limits import LimitExceeded, Limits
from evaluation.runs.ray_driver import _PieceStore
from evaluation.runs.ray_node import (
    Parcel,
    ReleaseMismatch,
    ShardWork,
    _open_work_folder,
    _PieceReader,
    run_shard,
)
from evaluation.runs.shards import LineFile, MergedEnding, cut_batches, cut_lines


def test_a_shard_is_whole_batches_and_like_the_whole():
    batches = [range(10 * n, 10 * n + 10) for n in range(100)]  # the longest come first
    shards = list(cut_batches(batches, 95))
    assert sorted(line for shard in shards for batch in shard for line in batch) == [*range(1000)]
    assert [sum(map(len, shard)) for shard in shards] == [100] * 10
    for shard in shards:
        lines = [line for batch in shard for line in batch]
        assert sum(lines) / len(lines) == pytest.approx(499.5, abs=100)
    assert list(cut_batches([range(3)], 95)) == [[range(3)]]
    assert cut_lines(5, 2) == [range(2), range(2, 4), range(4, 5)]


def test_lines_travel_with_their_batch_and_those_that_no_batch_has_at_the_end(tmp_path):
    file = tmp_path / "examples.jsonl"
    file.write_text("".join(json.dumps({"id": id, "inputs": {}}) + "\n" for id in "abcde"))
    lines = LineFile(file)
    batches = lines.build_batches([b'{"batch": ["d", "a"]}', b'{"batch": ["c"]}'])
    assert (len(lines), batches) == (5, [[3, 0], [2], [1, 4]])
    told = [json.loads(line) for line in lines.build_shard_text([[3, 0], [2]]).splitlines()]
    assert [(one["id"], one["batch"]) for one in told] == [("a", 1), ("c", 2), ("d", 1)]
    assert lines.read_lines(range(4, 5)) == file.read_bytes().splitlines(keepends=True)[4]


def ending(seconds: float, cpu: float | None, rate: float) -> Ending:
    usage = Usage(seconds, cpu_seconds=cpu, examples_per_second=rate, peak_bytes=7, answers=2)
    return Ending(Outcome.OK, usage, log=f"log {rate:g}", warnings=("slow",))


def test_the_measured_shard_says_how_fast_and_all_how_much():
    together = MergedEnding(Limits())
    together.add(1, ending(3, 2.5, 9), [b"x"] * 2)
    together.add(0, ending(2, 1.5, 5), [b"x"] * 2)
    whole = together.merge_endings()
    assert (whole.usage.seconds, whole.usage.cpu_seconds, whole.usage.answers) == (5, 4, 4)
    assert (whole.usage.examples_per_second, whole.usage.peak_bytes) == (5, 7)
    assert (whole.log, whole.warnings) == ("log 5\nlog 9", ("slow",))
    together.add(2, ending(1, None, 5), [])
    assert together.merge_endings().usage.cpu_seconds is None


@pytest.mark.parametrize(
    ("limits", "outcome"),
    [
        (Limits(seconds=4), Outcome.TIMEOUT),
        (Limits(output_bytes=7), Outcome.OUTPUT_TOO_LARGE),
    ],
)
def test_limits_hold_for_all_shards_together(limits, outcome):
    together = MergedEnding(limits)
    together.add(0, ending(2, 1, 1), [b"x"] * 2)
    with pytest.raises(LimitExceeded) as over:
        together.add(1, ending(2, 1, 1), [b"x"] * 2)
    assert over.value.ending.outcome == outcome


def test_what_is_stored_in_pieces_is_read_as_one_file(monkeypatch):
    monkeypatch.setattr("evaluation.runs.ray_driver.PIECE_BYTES", 4)
    kept: list[bytes] = []
    store = _PieceStore(lambda data: kept.append(data) or len(kept) - 1)
    for part in (b"abc", b"defghij", b"k"):
        store.write(part)
    read = _PieceReader(Parcel("", store.finish()), kept.__getitem__)
    assert kept == [b"abcd", b"efgh", b"ijk"]
    assert [read.read(3) for _ in range(6)] == [b"abc", b"d", b"efg", b"h", b"ijk", b""]


def test_a_node_of_another_release_runs_nothing():
    work = ShardWork("key", Runnable(), "process", Limits(), b"", release="another")
    with pytest.raises(ReleaseMismatch):
        run_shard(work)


def test_what_a_killed_shard_left_is_tidied_and_nothing_that_lives(tmp_path: Path, monkeypatch):
    removed: list[str] = []
    monkeypatch.setattr("evaluation.runs.ray_node._remove_container", removed.append)
    (tmp_path / "dead").mkdir()
    (tmp_path / "dead.lock").touch()
    with _open_work_folder(tmp_path, "one") as one, _open_work_folder(tmp_path, "two") as two:
        (two / "inputs.jsonl").touch()
        with _open_work_folder(tmp_path, "three"):
            assert one.is_dir()
            assert two.is_dir()
    assert removed == ["dead"]
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "ended"])
def test_a_shard_begins_where_the_one_before_it_ends_meanwhile(tmp_path, monkeypatch, is_killed):
    """A node died and its process goes on a little: the next try waits for it, and takes over."""
    waits = threading.Event()
    lock_file = fcntl.flock

    def flock(file, how):
        if how == fcntl.LOCK_EX:
            waits.set()
        lock_file(file, how)

    def begin():
        with _open_work_folder(tmp_path, "shard") as folder:
            return [one.name for one in folder.iterdir()]

    monkeypatch.setattr("evaluation.runs.ray_node._remove_container", lambda key: None)
    (tmp_path / "shard").mkdir()
    (tmp_path / "shard" / "left").touch()
    with (tmp_path / "shard.lock").open("w") as before, ThreadPoolExecutor(1) as pool:
        lock_file(before, fcntl.LOCK_EX)
        monkeypatch.setattr(fcntl, "flock", flock)
        later = pool.submit(begin)
        assert waits.wait(20)
        if not is_killed:
            shutil.rmtree(tmp_path / "shard")
            (tmp_path / "shard.lock").unlink()
        before.close()
        assert later.result(20) == []
    assert not [*tmp_path.iterdir()]
