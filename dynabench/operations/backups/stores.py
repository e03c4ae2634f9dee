"""The place of a backup: a folder, or a part of a bucket. It is whole or not there at all."""

import fcntl
import hashlib
import io
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from django.core.files import File
from django.core.files.storage import FileSystemStorage, Storage, storages

from core.env import EnvError, object_storage
from dynabench.operations.backups.errors import BackupError

BLOCK_BYTES = 2**20
MANIFEST_NAME = "manifest.json"
"""Written last: without it there is no backup."""
MOMENT, PART = "%Y-%m-%dT%H%M", ".part"


def open_store(place: str) -> Storage:
    """Return the storage at a folder or at `s3://bucket/prefix?endpoint=…`. Raises BackupError."""
    if place.startswith("s3://"):
        try:
            return storages.create_storage(object_storage(place))
        except EnvError as error:
            raise BackupError(str(error)) from None
    return FileSystemStorage(place, file_permissions_mode=0o600, directory_permissions_mode=0o700)


@contextmanager
def create_store(place: str) -> Iterator[Storage]:
    """Yield an empty storage, which becomes `place` if the block succeeds. Raises BackupError.

    A folder is renamed at the end. A bucket may contain leftovers; only the manifest counts.
    """
    if place.startswith("s3://"):
        store = open_store(place)
        if store.exists(MANIFEST_NAME):
            raise BackupError(f"There is a backup at {place} already. Name another place.")
        yield store
        return
    final_path = Path(place).absolute()
    if final_path.exists():
        raise BackupError(f"{final_path} exists already. Name a new folder.")
    unfinished_path = final_path.with_name(final_path.name + PART)
    unfinished_path.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(unfinished_path, os.O_RDONLY)
    try:
        _claim_folder(unfinished_path, lock)
        yield open_store(str(unfinished_path))
        os.sync()  # before the name: a folder with that name has whole files, even after a crash
        unfinished_path.rename(final_path)
    finally:
        os.close(lock)
        shutil.rmtree(unfinished_path, ignore_errors=True)


def _claim_folder(unfinished_path: Path, lock: int) -> None:
    """Take the lock, and remove what a killed backup left behind. Raises BackupError."""
    try:
        # The system releases it when the process ends, however it ends.
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BackupError(f"Another backup is writing {unfinished_path}. Wait for it.") from None
    for leftover in unfinished_path.iterdir():
        if leftover.is_dir():
            shutil.rmtree(leftover)
        else:
            leftover.unlink()


def build_dated_place(base_place: str, at: datetime) -> str:
    """Return the place for a backup made at this time, below a folder or a bucket's prefix.

    >>> from datetime import UTC
    >>> build_dated_place("s3://site/backups?region=eu", datetime(2026, 1, 31, 3, 15, tzinfo=UTC))
    's3://site/backups/2026-01-31T0315?region=eu'
    """
    path, mark, query = base_place, "", ""
    if base_place.startswith("s3://"):  # a folder may have a question mark in its name
        path, mark, query = base_place.partition("?")
    return f"{path.rstrip('/')}/{at.strftime(MOMENT)}{mark}{query}"


def remove_killed_backups(place: str) -> None:
    """Remove what killed backups left in a folder, to free disk space.

    Only backups named by `build_dated_place`. Does nothing in a bucket, where a backup in progress
    looks the same; `remove_older_backups` removes their remains there.
    """
    if place.startswith("s3://"):
        return
    for unfinished_path in Path(place).glob(f"*{PART}"):
        if _parse_moment(unfinished_path.name):
            lock = os.open(unfinished_path, os.O_RDONLY)
            with suppress(BackupError):  # it is being written
                _claim_folder(unfinished_path, lock)
                unfinished_path.rmdir()
            os.close(lock)


def _parse_moment(name: str) -> datetime | None:
    try:
        return datetime.strptime(name.removesuffix(PART), MOMENT).replace(tzinfo=UTC)
    except ValueError:  # somebody else's
        return None


def remove_older_backups(place: str, cutoff_at: datetime) -> list[str]:
    """Remove backups named by `build_dated_place` from before `cutoff_at`, complete or not.

    Returns their names.
    """
    store, removed_names = open_store(place), []
    for name in store.listdir("")[0]:
        made_at = _parse_moment(name)
        if made_at and made_at < cutoff_at:
            store.delete(f"{name}/{MANIFEST_NAME}")  # first: what is left is no backup
            _remove_folder(store, name)
            removed_names.append(name)
    return removed_names


def _remove_folder(store: Storage, folder: str) -> None:
    folders, files = store.listdir(folder)
    for name in files:
        store.delete(f"{folder}/{name}")
    for name in folders:
        _remove_folder(store, f"{folder}/{name}")
    store.delete(folder)  # a bucket has none


class BlockFile(File):  # type: ignore[type-arg]
    """A forward-only file made of blocks of bytes."""

    def __init__(self, blocks: Iterable[bytes], name: str) -> None:
        super().__init__(io.BytesIO(), name)
        self._blocks, self._left = iter(blocks), b""

    def chunks(self, chunk_size: int | None = None) -> Iterator[bytes]:
        yield from self._blocks

    def read(self, size: int = -1) -> bytes:
        while size < 0 or len(self._left) < size:
            block = next(self._blocks, None)
            if block is None:
                break
            self._left += block
        end = size
        if size < 0:
            end = len(self._left)
        piece, self._left = self._left[:end], self._left[end:]
        return piece

    def seekable(self) -> bool:
        """Return False, so that the S3 library does not seek to the end."""
        return False


class CountingBlocks:
    """An iterable of blocks that counts and hashes their bytes."""

    def __init__(self, blocks: Iterable[bytes]) -> None:
        self._blocks, self._digest, self.size = blocks, hashlib.sha256(), 0

    def __iter__(self) -> Iterator[bytes]:
        for block in self._blocks:
            self._digest.update(block)
            self.size += len(block)
            yield block

    @property
    def found(self) -> tuple[int, str]:
        """Return the size and the SHA-256 of the bytes so far."""
        return self.size, self._digest.hexdigest()


def put_file(store: Storage, name: str, blocks: Iterable[bytes]) -> None:
    """Store a new file under exactly this name. Raises BackupError if the name is taken."""
    # `save` would first look for a free name, of which each is one in a bucket.
    stored_as = store._save(name, BlockFile(blocks, name))  # type: ignore[attr-defined]
    if stored_as != name:
        raise BackupError(f"{name} is there already, as {stored_as} shows.")


def read_blocks(store: Storage, name: str) -> Iterator[bytes]:
    """Return the bytes of a file in blocks. Raises FileNotFoundError at once if it is missing."""
    # Opened here and not in the generator, whose first line runs only at the first block.
    file = store.open(name)

    def blocks() -> Iterator[bytes]:
        with file:
            yield from file.chunks(BLOCK_BYTES)

    return blocks()
