"""The place of a backup: a folder, or a part of a bucket.

A backup is complete or does not exist.
"""

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

from core.env import EnvError, parse_object_storage_url
from dynabench.operations.backups.errors import BackupError

BLOCK_BYTES = 2**20
MANIFEST_NAME = "manifest.json"
"""The name of the file that is written last. Without it, there is no backup."""
FOLDER_NAME_FORMAT, UNFINISHED_SUFFIX = "%Y-%m-%dT%H%M", ".part"


def open_store(folder_address: str) -> Storage:
    """Return the storage of a folder, or of `s3://bucket/prefix?endpoint=…`. Raises BackupError."""
    if folder_address.startswith("s3://"):
        try:
            return storages.create_storage(parse_object_storage_url(folder_address))
        except EnvError as error:
            raise BackupError(str(error)) from None
    # A backup contains all that the site keeps secret, so only its own user reads it.
    return FileSystemStorage(
        folder_address, file_permissions_mode=0o600, directory_permissions_mode=0o700
    )


@contextmanager
def create_store(folder_address: str) -> Iterator[Storage]:
    """Yield an empty storage, which is at `folder_address` after the block. Raises BackupError.

    A folder gets its name at the end. A bucket may contain leftovers: only the manifest counts.
    """
    if folder_address.startswith("s3://"):
        store = open_store(folder_address)
        if store.exists(MANIFEST_NAME):
            raise BackupError(f"{folder_address} already contains a backup. Use another place.")
        yield store
        return
    final_path = Path(folder_address).absolute()
    if final_path.exists():
        raise BackupError(f"{final_path} already exists. Use a new folder.")
    unfinished_path = final_path.with_name(final_path.name + UNFINISHED_SUFFIX)
    unfinished_path.mkdir(mode=0o700, parents=True, exist_ok=True)
    # The folder itself is locked, so that no lock file can be left behind.
    lock = os.open(unfinished_path, os.O_RDONLY)
    try:
        _claim_folder(unfinished_path, lock)
        yield open_store(str(unfinished_path))
        os.sync()  # before the name: a folder with that name has whole files, even after a crash
        unfinished_path.rename(final_path)
    finally:
        os.close(lock)
        # After a success the folder has its final name, and nothing is left to remove.
        shutil.rmtree(unfinished_path, ignore_errors=True)


def _claim_folder(unfinished_path: Path, lock: int) -> None:
    """Take the lock, and remove what a killed backup left behind. Raises BackupError."""
    try:
        # The system releases it when the process ends, however it ends.
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BackupError(
            f"Another backup is writing to {unfinished_path}. Wait until it ends."
        ) from None
    for leftover in unfinished_path.iterdir():
        if leftover.is_dir():
            shutil.rmtree(leftover)
        else:
            leftover.unlink()


def build_dated_address(base_address: str, made_at: datetime) -> str:
    """Return the place for a backup made at this time, below a folder or a bucket's prefix.

    >>> from datetime import UTC
    >>> build_dated_address("s3://site/backups?region=eu", datetime(2026, 1, 31, 3, 15, tzinfo=UTC))
    's3://site/backups/2026-01-31T0315?region=eu'
    """
    path, separator, query = base_address, "", ""
    if base_address.startswith("s3://"):  # a folder may have a question mark in its name
        path, separator, query = base_address.partition("?")
    return f"{path.rstrip('/')}/{made_at.strftime(FOLDER_NAME_FORMAT)}{separator}{query}"


def remove_killed_backups(folder_address: str) -> None:
    """Remove what killed backups left in a folder, to free disk space.

    Only removes backups named by `build_dated_address`. Does nothing in a bucket, where a backup in
    progress looks the same; there, `remove_older_backups` removes the leftovers.
    """
    if folder_address.startswith("s3://"):
        return
    for unfinished_path in Path(folder_address).glob(f"*{UNFINISHED_SUFFIX}"):
        if _parse_folder_name(unfinished_path.name):
            lock = os.open(unfinished_path, os.O_RDONLY)
            with suppress(BackupError):  # it is being written
                _claim_folder(unfinished_path, lock)
                unfinished_path.rmdir()
            os.close(lock)


def _parse_folder_name(name: str) -> datetime | None:
    try:
        return datetime.strptime(name.removesuffix(UNFINISHED_SUFFIX), FOLDER_NAME_FORMAT).replace(
            tzinfo=UTC
        )
    except ValueError:  # somebody else's
        return None


def remove_older_backups(folder_address: str, cutoff_at: datetime) -> list[str]:
    """Remove backups named by `build_dated_address` from before `cutoff_at`, complete or not.

    Return their names.
    """
    store, removed_names = open_store(folder_address), []
    for name in store.listdir("")[0]:
        made_at = _parse_folder_name(name)
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
        self._blocks, self._pending = iter(blocks), b""

    def chunks(self, chunk_size: int | None = None) -> Iterator[bytes]:
        yield from self._blocks

    def read(self, size: int = -1) -> bytes:
        while size < 0 or len(self._pending) < size:
            block = next(self._blocks, None)
            if block is None:
                break
            self._pending += block
        end = size
        if size < 0:
            end = len(self._pending)
        piece, self._pending = self._pending[:end], self._pending[end:]
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
    def size_and_digest(self) -> tuple[int, str]:
        """Return the size and the SHA-256 of the bytes so far."""
        return self.size, self._digest.hexdigest()


def put_file(store: Storage, name: str, blocks: Iterable[bytes]) -> None:
    """Store a new file under exactly this name. Raises BackupError if the name is taken."""
    # `save` would first look for a free name, of which each is one in a bucket.
    stored_name = store._save(name, BlockFile(blocks, name))  # type: ignore[attr-defined]
    if stored_name != name:
        raise BackupError(f"{name} already exists (found {stored_name}).")


def read_blocks(store: Storage, name: str) -> Iterator[bytes]:
    """Return the bytes of a file in blocks. Raises FileNotFoundError at once if it is missing."""
    # Opened here and not in the generator, whose first line runs only at the first block.
    file = store.open(name)

    def iterate_blocks() -> Iterator[bytes]:
        with file:
            yield from file.chunks(BLOCK_BYTES)

    return iterate_blocks()
