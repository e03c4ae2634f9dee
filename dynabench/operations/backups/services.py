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

from core.accounts.erasures import erased_names, erasure_key, make_log
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

DATABASE, KEYS, MEDIA, MODELS = "database.gz", "keys.json", "media/", "models/"
SEALING_ADVICE = "Set BACKUP_PASSPHRASE, or BACKUP_PASSPHRASE_FILE to a file that holds it"


@dataclass
class _Writer:
    """A writer for one backup. Encrypts the files if there is a passphrase."""

    store: Storage
    manifest: Manifest
    passphrase: str
    salt: bytes

    def put(self, name: str, blocks: Iterable[bytes]) -> None:
        """Write one file and record its size and digest."""
        counted = CountingBlocks(blocks)
        put_file(self.store, name, self._sealed(name, counted))
        self.manifest.files[name] = counted.found

    def end(self) -> None:
        """Write the manifest. Call this last."""
        put_file(
            self.store,
            MANIFEST_NAME,
            self._sealed(MANIFEST_NAME, [manifests.encode_manifest(self.manifest)]),
        )

    def _sealed(self, name: str, blocks: Iterable[bytes]) -> Iterable[bytes]:
        if not self.passphrase:
            return blocks
        return seal(blocks, passphrase=self.passphrase, salt=self.salt, name=name)


def make_backup(place: str, *, passphrase: str = "", with_keys: bool = False) -> Manifest:
    """Write a backup to a new place: a snapshot of the database, then the files it refers to.

    Stored files never change, so people can go on writing. Files deleted during the backup are left
    out. Takes no lock. Raises BackupError or OSError, in which case there is no backup.
    """
    if with_keys and not passphrase:
        raise BackupError(f"Keys go only into a backup under a passphrase. {SEALING_ADVICE}.")
    # It gets its name only if all of this ends well.
    with create_store(place) as store:
        writer = _Writer(store, _describe_site(), passphrase, os.urandom(SALT_BYTES))
        with take_snapshot() as snapshot:
            writer.put(DATABASE, gzip_blocks(snapshot.dump))
        missing = list(_write_media(writer, snapshot.files))
        # A file that no row names any more was deleted during the backup.
        writer.manifest.missing = sorted(set(missing) & set(find_referenced_files()))
        for path in sorted(settings.MODELS_HOME.rglob("*")):
            if path.is_file():
                with path.open("rb") as file:
                    name = f"{MODELS}{path.relative_to(settings.MODELS_HOME)}"
                    writer.put(name, iter(lambda: file.read(BLOCK_BYTES), b""))
        if with_keys:
            keys = {"now": settings.SECRET_KEY, "before": settings.SECRET_KEY_FALLBACKS}
            writer.put(KEYS, [json.dumps(keys).encode()])
        # The manifest makes the backup whole, so it comes last.
        writer.end()
    return writer.manifest


def gzip_blocks(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the blocks as a gzip file."""
    packer = zlib.compressobj(level=1, wbits=31)  # 31: with the head and sum of gzip
    for block in blocks:
        yield packer.compress(block)
    yield packer.flush()


def gunzip_blocks(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the unpacked bytes of a gzip file."""
    packer = zlib.decompressobj(wbits=31)
    for block in blocks:
        yield packer.decompress(block)
    yield packer.flush()


def _describe_site() -> Manifest:
    from django.db import connection

    make_log()  # a restoration asks for the log, even if nobody was erased yet
    return Manifest(
        site=settings.SITE_URL,
        made_at=timezone.now().isoformat(),
        database=connection.vendor,
        migrations=list_last_migrations(),
        erasure_key=erasure_key(settings.SECRET_KEY).hex(),
        erased=erased_names(),
    )


def _write_media(writer: _Writer, names: Iterable[str]) -> Iterator[str]:
    """Write the files to the backup, and yield the names of missing ones."""
    for name in names:
        try:
            blocks = read_blocks(default_storage, name)
        except FileNotFoundError:
            yield name
        else:
            writer.put(f"{MEDIA}{name}", blocks)


class Backup:
    """A finished backup: its manifest, and access to its decrypted files. Raises BackupError."""

    def __init__(self, place: str, *, passphrase: str = "") -> None:
        self._store, self._passphrase = open_store(place), passphrase
        try:
            self.manifest = manifests.read_manifest(b"".join(self._opened(MANIFEST_NAME)))
        except FileNotFoundError:
            message = f"There is no whole backup at {place}: {MANIFEST_NAME} is missing."
            raise BackupError(message) from None
        except (ValueError, TypeError, KeyError) as error:
            raise BackupError(f"{MANIFEST_NAME} of {place} cannot be read: {error}") from None

    def _opened(self, name: str) -> Iterator[bytes]:
        blocks = read_blocks(self._store, name)
        start = next(blocks, b"")
        blocks = chain([start], blocks)  # the first block was read to see whether it is sealed
        if not is_sealed(start):
            return blocks
        if not self._passphrase:
            raise BackupError(f"This backup is sealed. {SEALING_ADVICE}.")
        return unseal(blocks, passphrase=self._passphrase, name=name)

    def blocks(self, name: str) -> Iterator[bytes]:
        """Yield the bytes of a file.

        Raises BackupError at the end if they differ from what was backed up.
        """
        counting_blocks = CountingBlocks(self._opened(name))
        try:
            yield from counting_blocks
        except WrongSeal as error:
            raise BackupError(str(error)) from None
        if counting_blocks.found != self.manifest.files[name]:
            size, digest = self.manifest.files[name]
            raise BackupError(f"{name} is damaged: it has not {size} bytes of SHA-256 {digest}.")

    def names(self, start: str) -> Iterator[tuple[str, str]]:
        """Yield (name, name without `start`) of the files whose names begin with `start`."""
        for name in self.manifest.files:
            if name.startswith(start):
                yield name, name.removeprefix(start)

    def damages(self) -> Iterator[str]:
        """Read every file completely and yield a line for each damaged one."""
        for name in self.manifest.files:
            try:
                # Read to the end, where the digest is compared.
                for _ in self.blocks(name):
                    pass
            except FileNotFoundError:
                yield f"{name} is missing."
            except (BackupError, OSError) as error:
                yield str(error)
