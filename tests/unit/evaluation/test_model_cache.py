"""The cache of models: filled once, never half, not removed while used, not too large."""

import io
import tarfile
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from evaluation.isolation.uploads.model_folders import digest_folder
from evaluation.runs import model_cache
from evaluation.runs.model_cache import open_cached_folder, pack_folder, unpack_folder

PLENTY = 10**9


def no_beat():
    """Nobody minds."""


def fill(size=10, done=None):
    def write(folder):
        if done is not None:
            done.append(folder)
        (folder / "weights").write_bytes(b"w" * size)

    return write


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "model"
    (folder / "deep").mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "deep" / "weights").write_bytes(bytes(range(256)) * 100)
    return folder


def test_what_is_packed_comes_out_again(model, tmp_path):
    packed, beats = io.BytesIO(), []
    pack_folder(model, packed, lambda: beats.append("pack"))
    packed.seek(0)
    out = tmp_path / "out"
    unpack_folder(packed, out, lambda: beats.append("unpack"))
    assert digest_folder(out, no_beat) == digest_folder(model, no_beat)
    assert (out / "deep" / "weights").read_bytes() == bytes(range(256)) * 100
    assert {"pack", "unpack"} == set(beats)


@pytest.mark.parametrize(
    ("name", "kind"), [("../out-of-it", tarfile.REGTYPE), ("link", tarfile.SYMTYPE)]
)
def test_only_files_below_the_folder_come_out(tmp_path, name, kind):
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, "/etc/passwd"
    packed = io.BytesIO(member.tobuf() + bytes(1024))
    (tmp_path / "out").mkdir()
    with pytest.raises(tarfile.TarError):
        unpack_folder(packed, tmp_path / "out", no_beat)
    assert [path.name for path in tmp_path.rglob("*")] == ["out"]


@pytest.mark.parametrize("change", ["bytes", "name", "place", "more"])
def test_the_digest_tells_every_change(model, change):
    before = digest_folder(model, no_beat)
    assert before == digest_folder(model, no_beat)
    config = model / "config.json"
    if change == "bytes":
        config.write_text("[]")
    elif change == "name":
        config.rename(model / "configs.json")
    elif change == "place":
        config.rename(model / "deep" / "config.json")
    else:
        (model / "empty").touch()
    assert digest_folder(model, no_beat) != before


def test_one_fills_while_others_wait(tmp_path):
    filled, beats, barrier = [], [], threading.Barrier(6)

    def use(_):
        barrier.wait()
        with open_cached_folder(
            tmp_path, "a", fill(done=filled), PLENTY, lambda: beats.append(1)
        ) as folder:
            return (folder / "weights").read_bytes()

    with ThreadPoolExecutor(6) as pool:
        assert set(pool.map(use, range(6))) == {b"w" * 10}
    assert len(filled) == 1


def test_what_failed_leaves_nothing_and_may_be_tried_again(tmp_path):
    def broken(folder):
        (folder / "weights").write_text("half")
        raise OSError("the line broke")

    with (
        pytest.raises(OSError, match="the line broke"),
        open_cached_folder(tmp_path, "a", broken, PLENTY, no_beat),
    ):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["a.lock"]
    with open_cached_folder(tmp_path, "a", fill(), PLENTY, no_beat) as folder:
        assert (folder / "weights").read_bytes() == b"w" * 10


def test_the_least_recently_used_goes_and_what_is_used_stays(tmp_path, monkeypatch):
    clock = iter(range(100))
    monkeypatch.setattr(
        model_cache.os,
        "utime",
        lambda path, real=model_cache.os.utime: real(path, (0, next(clock))),
    )
    for name in ("old", "used", "new"):
        with open_cached_folder(tmp_path, name, fill(40), PLENTY, no_beat):
            pass
    with open_cached_folder(tmp_path, "old", fill(40), PLENTY, no_beat):
        pass  # now `used` is the oldest
    with (
        open_cached_folder(tmp_path, "used", fill(40), PLENTY, no_beat),
        open_cached_folder(tmp_path, "next", fill(40), 100, no_beat),
    ):
        left = {path.name for path in tmp_path.iterdir() if path.is_dir()}
    assert left == {"used", "next"}


def test_who_waits_beats_and_may_be_stopped(tmp_path):
    started, stop = threading.Event(), threading.Event()

    def slowly(folder):
        started.set()
        stop.wait()

    def lose():
        raise InterruptedError

    def first():
        with open_cached_folder(tmp_path, "a", slowly, PLENTY, no_beat):
            pass

    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(first)
        started.wait()
        with (
            pytest.raises(InterruptedError),
            open_cached_folder(tmp_path, "a", fill(), PLENTY, lose),
        ):
            pass
        stop.set()
        held.result()
