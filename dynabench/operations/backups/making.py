"""Making a backup of the whole site, and reading one."""

import json
import os
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from django.conf import settings
from django.core.files.storage import Storage, default_storage
from django.utils import timezone

from core.accounts.erasure_log import count_erased_names, create_erasure_log, derive_erasure_key
from dynabench.operations.backups import manifest as manifests
from dynabench.operations.backups.databases import (
    find_referenced_files,
    list_last_migrations,
    take_snapshot,
)
from dynabench.operations.backups.errors import BackupError
from dynabench.operations.backups.manifest import Manifest
from dynabench.operations.backups.sealing import SALT_BYTES, WrongSeal, is_sealed, seal, unseal
from dynabench.operations.backups.stores import (
    BLOCK_BYTES,
    MANIFEST_NAME,
    CountingBlocks,
    create_store,
    open_store,
    put_file,
    read_blocks,
)

DATABASE_NAME, KEYS_NAME, MEDIA_PREFIX, MODELS_PREFIX = (
    "database.gz",
    "keys.json",
    "media/",
    "models/",
)
SEALING_ADVICE = "Set BACKUP_PASSPHRASE, or BACKUP_PASSPHRASE_FILE to a file that contains it"


@dataclass
class _BackupWriter:
    """A writer of one backup. It encrypts the files if there is a passphrase."""

    store: Storage
    manifest: Manifest
    passphrase: str
    salt: bytes

    def write_file(self, name: str, blocks: Iterable[bytes]) -> None:
        """Write one file and record its size and digest."""
        counting_blocks = CountingBlocks(blocks)
        put_file(self.store, name, self._seal(name, counting_blocks))
        self.manifest.files[name] = counting_blocks.size_and_digest

    def write_manifest(self) -> None:
        """Write the manifest. Call this last."""
        put_file(
            self.store,
            MANIFEST_NAME,
            self._seal(MANIFEST_NAME, [manifests.encode_manifest(self.manifest)]),
        )

    def _seal(self, name: str, blocks: Iterable[bytes]) -> Iterable[bytes]:
        if not self.passphrase:
            return blocks
        return seal(blocks, passphrase=self.passphrase, salt=self.salt, name=name)


def make_backup(folder_address: str, *, passphrase: str = "", with_keys: bool = False) -> Manifest:
    """Write a backup to a new place: a snapshot of the database, then the files that it refers to.

    Stored files never change, so people can go on writing. Files deleted during the backup are left
    out. with_keys: whether to include the site's keys, which needs a passphrase. Takes no lock.
    Raises BackupError or OSError; then there is no backup.
    """
    if with_keys and not passphrase:
        raise BackupError(f"Only backups with a passphrase can include keys. {SEALING_ADVICE}.")
    # It gets its name only if all of this ends well.
    with create_store(folder_address) as store:
        writer = _BackupWriter(store, _describe_site(), passphrase, os.urandom(SALT_BYTES))
        with take_snapshot() as snapshot:
            writer.write_file(DATABASE_NAME, gzip_blocks(snapshot.dump))
        missing_names = list(_write_media(writer, snapshot.files))
        # A file that no row names any more was deleted during the backup.
        writer.manifest.missing = sorted(set(missing_names) & set(find_referenced_files()))
        for path in sorted(settings.MODELS_HOME.rglob("*")):
            if path.is_file():
                with path.open("rb") as file:
                    name = f"{MODELS_PREFIX}{path.relative_to(settings.MODELS_HOME)}"
                    writer.write_file(name, iter(lambda: file.read(BLOCK_BYTES), b""))
        if with_keys:
            keys = {"now": settings.SECRET_KEY, "before": settings.SECRET_KEY_FALLBACKS}
            writer.write_file(KEYS_NAME, [json.dumps(keys).encode()])
        # The manifest makes the backup whole, so it comes last.
        writer.write_manifest()
    return writer.manifest


def gzip_blocks(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the blocks compressed as a gzip file."""
    packer = zlib.compressobj(level=1, wbits=31)  # 31: with the head and sum of gzip
    for block in blocks:
        yield packer.compress(block)
    yield packer.flush()


def gunzip_blocks(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the unpacked bytes of a gzip file."""
    unpacker = zlib.decompressobj(wbits=31)
    for block in blocks:
        yield unpacker.decompress(block)
    yield unpacker.flush()


def _describe_site() -> Manifest:
    from django.db import connection

    create_erasure_log()  # a restoration asks for the log, even if nobody was erased yet
    return Manifest(
        site=settings.SITE_URL,
        made_at=timezone.now().isoformat(),
        database=connection.vendor,
        migrations=list_last_migrations(),
        erasure_key=derive_erasure_key(settings.SECRET_KEY).hex(),
        erased=count_erased_names(),
    )


def _write_media(writer: _BackupWriter, names: Iterable[str]) -> Iterator[str]:
    """Write the files to the backup, and yield the names of missing ones."""
    for name in names:
        try:
            blocks = read_blocks(default_storage, name)
        except FileNotFoundError:
            yield name
        else:
            writer.write_file(f"{MEDIA_PREFIX}{name}", blocks)


class Backup:
    """A finished backup: its manifest, and access to its decrypted files. Raises BackupError."""

    def __init__(self, folder_address: str, *, passphrase: str = "") -> None:
        self._store, self._passphrase = open_store(folder_address), passphrase
        try:
            self.manifest = manifests.read_manifest(b"".join(self._open_file(MANIFEST_NAME)))
        except FileNotFoundError:
            message = f"No complete backup at {folder_address}: {MANIFEST_NAME} is missing."
            raise BackupError(message) from None
        except (ValueError, TypeError, KeyError) as error:
            raise BackupError(
                f"{MANIFEST_NAME} in {folder_address} can't be read: {error}"
            ) from None

    def _open_file(self, name: str) -> Iterator[bytes]:
        blocks = read_blocks(self._store, name)
        start = next(blocks, b"")
        blocks = chain([start], blocks)  # the first block was read to see whether it is sealed
        if not is_sealed(start):
            return blocks
        if not self._passphrase:
            raise BackupError(f"This backup is encrypted. {SEALING_ADVICE}.")
        return unseal(blocks, passphrase=self._passphrase, name=name)

    def iterate_blocks(self, name: str) -> Iterator[bytes]:
        """Yield the bytes of a file.

        Raises BackupError at the end if they differ from what was backed up.
        """
        counting_blocks = CountingBlocks(self._open_file(name))
        try:
            yield from counting_blocks
        except WrongSeal as error:
            raise BackupError(str(error)) from None
        if counting_blocks.size_and_digest != self.manifest.files[name]:
            size, digest = self.manifest.files[name]
            raise BackupError(
                f"{name} is damaged. It should have {size} bytes with SHA-256 {digest}."
            )

    def iterate_names(self, start: str) -> Iterator[tuple[str, str]]:
        """Yield (name, name without `start`) of the files whose names begin with `start`."""
        for name in self.manifest.files:
            if name.startswith(start):
                yield name, name.removeprefix(start)

    def iterate_damages(self) -> Iterator[str]:
        """Read every file completely and yield a line for each damaged one."""
        for name in self.manifest.files:
            try:
                # Read to the end, where the digest is compared.
                for _ in self.iterate_blocks(name):
                    pass
            except FileNotFoundError:
                yield f"{name} is missing."
            except (BackupError, OSError) as error:
                yield str(error)
