"""Folders of models on this machine: filled once, kept while used, the least recent removed."""

import fcntl
import os
import shutil
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from evaluation.contract import Beat
from evaluation.heartbeat import CHUNK_BYTES, BeatingFile
from evaluation.isolation.uploads.model_folders import files
from evaluation.training.folders import make_atomic_folder

WAIT_SECONDS = 0.5


@contextmanager
def open_cached_folder(
    cache: Path, name: str, fill: Callable[[Path], None], most_bytes: int, beat: Beat
) -> Iterator[Path]:
    """Provide the folder `name` of the cache, which is not removed during the block.

    The first process on this machine fills it, then removes the least recently used folders until
    at most `most_bytes` remain; other processes wait. Passes on the exceptions of `fill` and
    `beat`.
    """
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / name
    # Users of the folder share the lock; filling and removing need it exclusively. The kernel frees
    # it with its process, so a killed worker keeps nobody out.
    with (cache / f"{name}.lock").open("a") as lock:
        _wait(lock, fcntl.LOCK_SH, beat)
        while not folder.exists():  # between two locks somebody may remove it again
            _wait(lock, fcntl.LOCK_EX, beat)
            if not folder.exists():  # another process may have filled it while this one waited
                with make_atomic_folder(folder) as new_folder:
                    fill(new_folder)
            _wait(lock, fcntl.LOCK_SH, beat)
            _make_room(cache, most_bytes)
        os.utime(lock.name)  # the time of its last use, by which `_make_room` chooses
        yield folder


def _wait(lock: IO[str], kind: int, beat: Beat) -> None:
    """Take the lock; call `beat` while another process holds it."""
    while True:
        try:
            return fcntl.flock(lock, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            beat()
            time.sleep(WAIT_SECONDS)


def _make_room(cache: Path, most_bytes: int) -> None:
    """Remove unused folders, least recently used first, until the cache is within `most_bytes`."""
    locks = sorted(cache.glob("*.lock"), key=lambda path: path.stat().st_mtime)
    sizes = {path: sum(file.stat().st_size for file in files(_of(path))) for path in locks}
    for path in locks:
        if sum(sizes.values()) <= most_bytes:
            return
        with path.open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:  # somebody uses it
                continue
            shutil.rmtree(_of(path), ignore_errors=True)
            sizes[path] = 0


def _of(lock: Path) -> Path:
    return lock.with_suffix("")


def pack_folder(folder: Path, target: IO[bytes], beat: Beat) -> None:
    """Write a folder's files as an uncompressed tar, because weights do not compress.

    Every file in the tar is readable by all users.
    """

    def public(member: tarfile.TarInfo) -> tarfile.TarInfo:
        # The same files make the same bytes, whoever packs them and when.
        member.mode, member.mtime = 0o644, 0
        member.uid, member.gid, member.uname, member.gname = 0, 0, "", ""
        return member

    stream: Any = BeatingFile(target, beat)  # tarfile only writes to it
    with tarfile.open(fileobj=stream, mode="w|", bufsize=CHUNK_BYTES, dereference=True) as archive:
        for path in files(folder):
            archive.add(path, path.relative_to(folder).as_posix(), filter=public)


def unpack_folder(source: IO[bytes], folder: Path, beat: Beat) -> None:
    """Unpack the files that `pack_folder` wrote. Raises TarError for anything else.

    Without the filters of `extractall`, which are newer than Debian 12's Python 3.11.2.
    """
    stream: Any = BeatingFile(source, beat)  # tarfile only reads it
    with tarfile.open(fileobj=stream, mode="r|", bufsize=CHUNK_BYTES) as archive:
        for member in archive:
            path = folder / member.name
            content = None
            if member.isreg():
                content = archive.extractfile(member)
            # Our own tar, but read as a stranger's: nothing is ever written outside the folder.
            if content is None or not path.resolve().is_relative_to(folder.resolve()):
                raise tarfile.TarError(f"{member.name} is no file of a model.")
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                shutil.copyfileobj(content, file, CHUNK_BYTES)
            path.chmod(0o644)
