"""Cache model folders on this machine, and remove the least recently used when space runs out."""

import fcntl
import os
import shutil
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from evaluation.contract import BeatCallback
from evaluation.heartbeat import CHUNK_BYTES, BeatingFile
from evaluation.isolation.uploads.model_folders import list_files
from evaluation.training.folders import make_atomic_folder

WAIT_SECONDS = 0.5


@contextmanager
def open_cached_folder(
    cache: Path, name: str, fill: Callable[[Path], None], max_bytes: int, beat: BeatCallback
) -> Iterator[Path]:
    """Provide the folder `name` of the cache, which is not removed during the block.

    The first process on this machine fills it, then removes the least recently used folders until
    at most `max_bytes` remain; other processes wait. Passes on the exceptions of `fill` and
    `beat`.
    """
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / name
    # Users of the folder share the lock; filling and removing need it exclusively. It ends with
    # its process, so a killed worker does not block others.
    with (cache / f"{name}.lock").open("a") as lock:
        _wait_for_lock(lock, fcntl.LOCK_SH, beat)
        while not folder.exists():  # it may be removed between two locks
            _wait_for_lock(lock, fcntl.LOCK_EX, beat)
            if not folder.exists():  # another process may have filled it while this one waited
                with make_atomic_folder(folder) as new_folder:
                    fill(new_folder)
            _wait_for_lock(lock, fcntl.LOCK_SH, beat)
            _make_room(cache, max_bytes)
        os.utime(lock.name)  # the time of its last use, by which `_make_room` chooses
        yield folder


def _wait_for_lock(lock: IO[str], operation: int, beat: BeatCallback) -> None:
    """Take the lock; call `beat` while another process holds it."""
    while True:
        try:
            return fcntl.flock(lock, operation | fcntl.LOCK_NB)
        except BlockingIOError:
            beat()
            time.sleep(WAIT_SECONDS)


def _make_room(cache: Path, max_bytes: int) -> None:
    """Remove unused folders, least recently used first, until the cache is within `max_bytes`."""
    locks = sorted(cache.glob("*.lock"), key=lambda path: path.stat().st_mtime)
    sizes = {
        path: sum(file.stat().st_size for file in list_files(_get_folder(path))) for path in locks
    }
    for path in locks:
        if sum(sizes.values()) <= max_bytes:
            return
        with path.open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:  # it is in use
                continue
            shutil.rmtree(_get_folder(path), ignore_errors=True)
            sizes[path] = 0


def _get_folder(lock: Path) -> Path:
    return lock.with_suffix("")


def pack_folder(folder: Path, target: IO[bytes], beat: BeatCallback) -> None:
    """Write a folder's files as an uncompressed tar, because weights do not compress.

    Every file in the tar is readable by all users.
    """

    def make_public(member: tarfile.TarInfo) -> tarfile.TarInfo:
        # The same files always give the same bytes, whoever packs them.
        member.mode, member.mtime = 0o644, 0
        member.uid, member.gid, member.uname, member.gname = 0, 0, "", ""
        return member

    stream: Any = BeatingFile(target, beat)  # tarfile only writes to it
    with tarfile.open(fileobj=stream, mode="w|", bufsize=CHUNK_BYTES, dereference=True) as archive:
        for path in list_files(folder):
            archive.add(path, path.relative_to(folder).as_posix(), filter=make_public)


def unpack_folder(source: IO[bytes], folder: Path, beat: BeatCallback) -> None:
    """Unpack the files that `pack_folder` wrote. Raises TarError for anything else.

    Does not use the filters of `extractall`, which Debian 12's Python 3.11.2 lacks.
    """
    stream: Any = BeatingFile(source, beat)  # tarfile only reads it
    with tarfile.open(fileobj=stream, mode="r|", bufsize=CHUNK_BYTES) as archive:
        for member in archive:
            path = folder / member.name
            content = None
            if member.isreg():
                content = archive.extractfile(member)
            # Our own tar, but read like an untrusted one: nothing is written outside the folder.
            if content is None or not path.resolve().is_relative_to(folder.resolve()):
                raise tarfile.TarError(f"{member.name} is no file of a model.")
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                shutil.copyfileobj(content, file, CHUNK_BYTES)
            path.chmod(0o644)
