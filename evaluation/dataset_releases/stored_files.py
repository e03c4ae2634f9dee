"""Check that the files that database rows name are in the storage and are undamaged."""

import errno
import gzip
import hashlib
import logging
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import lru_cache
from typing import IO, Any, NamedTuple, cast

from django.core.files.storage import default_storage
from django.db.models import Model

from evaluation.kinds import KINDS
from evaluation.models import (
    DatasetFile,
    EvaluationRun,
    EvaluationSetVersion,
    Submission,
    UploadPiece,
)
from tasks.models import Media

logger = logging.getLogger(__name__)

READ_ERRORS = (OSError, EOFError, zlib.error, tarfile.TarError)
BLOCK_BYTES = 2**20
DigestFunction = Callable[[IO[bytes]], str]


class Damage(NamedTuple):
    """A file that is missing or differs from what was stored, with the row that names it."""

    path: str
    row: str
    message: str


def open_checked_file(file: DatasetFile) -> IO[bytes]:
    """Open a file of a dataset if it is unchanged since its release.

    Each process reads the file once to check it, and again after a change. 500 MB take half a
    second. Raises OSError (EIO) if the file is missing or damaged.
    """
    name = str(file.file)
    try:
        # Size and time first: the digest is computed again only if one of them has changed.
        size, changed_at = default_storage.size(name), default_storage.get_modified_time(name)
        if size == file.size and _compute_known_digest(name, size, changed_at) == file.sha256:
            return default_storage.open(name)
    except FileNotFoundError:
        pass  # logged below, like a file with another digest
    logger.error("%s of %s is missing or damaged: manage.py doctor --media", name, file)
    raise OSError(errno.EIO, "missing or damaged", name)


@lru_cache(maxsize=1024)
def _compute_known_digest(name: str, size: int, changed_at: datetime) -> str:
    with default_storage.open(name) as file:
        return _digest_bytes(file)


def find_damages() -> Iterator[Damage]:
    """Yield the damage of every stored file that a database row names.

    Reads all files completely.
    """
    # Every kind of file in database rows. Uploads are checked piece by piece.
    for file in _iterate_in_chunks(DatasetFile.objects.select_related("dataset__round__task")):
        yield from _find_file_damage(file, str(file.file), file.size, file.sha256, _digest_bytes)
    for version in _iterate_in_chunks(
        EvaluationSetVersion.objects.select_related("evaluation_set__task")
    ):
        yield from _find_set_damage(version)
    for submission in _iterate_in_chunks(Submission.objects.exclude(file="")):
        yield from _find_submission_damage(submission)
    for run in _iterate_in_chunks(EvaluationRun.objects.exclude(predictions="")):
        yield from _find_file_damage(run, str(run.predictions), None, "", _digest_lines)
    for media in _iterate_in_chunks(Media.objects.select_related("task")):
        yield from _find_file_damage(
            media, str(media.file), media.size, media.digest, _digest_bytes
        )
    for piece in _iterate_in_chunks(UploadPiece.objects.all()):
        yield from _find_file_damage(piece, str(piece.file), piece.size, "", _digest_bytes)


def _iterate_in_chunks(rows: Any) -> Iterable[Any]:
    return rows.iterator(chunk_size=500)  # type: ignore[no-any-return]


def _find_file_damage(
    row: Model, path: str, size: int | None, expected_digest: str, compute_digest: DigestFunction
) -> Iterator[Damage]:
    """Read a file and yield its damage, if any.

    expected_digest: the stored digest; if empty, only check that the file can be read.
    """
    try:
        actual_size = default_storage.size(path)
        if size is not None and actual_size != size:
            yield Damage(path, _describe_row(row), f"has {actual_size} bytes, not {size}")
            return
        with default_storage.open(path) as file:
            actual_digest = compute_digest(file)
    except FileNotFoundError:
        yield Damage(path, _describe_row(row), "is missing")
    except READ_ERRORS as error:
        yield Damage(path, _describe_row(row), f"is damaged: {error}")
    else:
        # Empty: no digest was stored with the row.
        if expected_digest and actual_digest != expected_digest:
            yield Damage(
                path,
                _describe_row(row),
                f"is damaged: its digest is {actual_digest}, not {expected_digest}",
            )


def _find_submission_damage(submission: Submission) -> Iterator[Damage]:
    """Read the stored file of a submission and yield its damage, if any."""
    kind, path = KINDS[submission.kind], str(submission.file)
    if kind.is_file_of_answers:
        yield from _find_file_damage(
            submission, path, submission.size, submission.digest, _digest_lines
        )
    elif kind.is_image:
        # Size and digest are the engine's, for the unpacked image.
        yield from _find_file_damage(submission, path, None, "", _digest_folder)
    elif kind.has_prompt:
        # The digest also covers its prompt and settings (`endpoints.compute_identity`).
        yield from _find_file_damage(submission, path, submission.size, "", _digest_folder)
    else:
        yield from _find_file_damage(
            submission, path, submission.size, submission.digest, _digest_folder
        )


def _find_set_damage(version: EvaluationSetVersion) -> Iterator[Damage]:
    """Read both files of a set version and yield their damage, if any.

    The stored digest covers the alternating lines of both files.
    """
    paths = (str(version.inputs), str(version.gold))
    damages: list[Damage] = []
    for path in paths:
        damages += _find_file_damage(version, path, None, "", _digest_lines)
    yield from damages
    if damages:  # unreadable files have no digest
        return
    digest = hashlib.sha256()
    with default_storage.open(paths[0]) as inputs, default_storage.open(paths[1]) as gold:
        # In the order of writing: a line of inputs, then the answers for the same example.
        for pair in zip(_open_gzip(inputs), _open_gzip(gold), strict=False):
            for line in pair:
                digest.update(line)
    if digest.hexdigest() != version.sha256:
        message = f"one of them is damaged: their digest is not {version.sha256}"
        yield Damage(" and ".join(paths), _describe_row(version), message)


def _describe_row(row: Model) -> str:
    return f"{row._meta.model_name} {row.pk} ({row})"


def _digest_bytes(file: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while block := file.read(BLOCK_BYTES):
        digest.update(block)
    return digest.hexdigest()


def _digest_lines(file: IO[bytes]) -> str:
    """Return the digest of a gzip file's contents. Also verifies gzip's own checksum."""
    return _digest_bytes(_open_gzip(file))


def _open_gzip(file: IO[bytes]) -> IO[bytes]:
    return cast(IO[bytes], gzip.GzipFile(fileobj=file))


def _digest_folder(file: IO[bytes]) -> str:
    """Return the digest of a packed folder.

    It equals that of `model_folders.digest_folder` if the archive has the same order of files.
    """
    digest = hashlib.sha256()
    with tarfile.open(fileobj=file, mode="r|*") as archive:
        for member in archive:
            # The digest includes name and size, so that bytes cannot move between files.
            digest.update(f"{member.name}\0{member.size}\0".encode())
            content = archive.extractfile(member)
            while content and (block := content.read(BLOCK_BYTES)):
                digest.update(block)
    return digest.hexdigest()
