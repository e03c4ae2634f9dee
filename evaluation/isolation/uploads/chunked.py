"""Receive files in pieces, so that an interrupted upload can be resumed."""

import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO

from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet, Sum
from django.template.defaultfilters import filesizeformat
from django.utils import timezone
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.accounts.people import has_confirmed_address
from core.errors import Refused, Unavailable
from core.files.storage.disk import (
    NO_ROOM_MESSAGE,
    WAIT_SECONDS,
    check_free_space,
    open_scratch_folder,
)
from core.files.storage.stored import list_files, list_folders
from evaluation.contract import GIB, MIB, BeatCallback
from evaluation.isolation.uploads.allowances import get_own_quota_gib
from evaluation.isolation.uploads.archives import ByteSource
from evaluation.models import HandedAnswers, Submission, Upload, UploadPiece
from evaluation.models.jobs import UNFINISHED_STATES
from evaluation.questions import build_kept_uploads_condition

PIECE_BYTES = 16 * MIB
MAX_OPEN_UPLOADS = 5
BLOCK_BYTES = MIB
UPLOADS_FOLDER = "uploads"  # in the storage, as in `piece_path`
IN_CHECK_CONDITION = Q(submission__state__in=UNFINISHED_STATES)
"""The condition for uploads of models whose check has not ended, and so needs the file."""
logger = logging.getLogger(__name__)


class UploadRefused(Refused):
    """Raised when a file or piece cannot be stored. The message says why and what to do."""

    code = "upload"
    status = 422
    field = "upload"


class WrongOffset(UploadRefused):
    """Raised when a piece does not start at `offset`, where the previous piece ended."""

    code = "offset"
    status = 409
    field = "offset"

    def __init__(self, offset: int) -> None:
        super().__init__(f"{offset} bytes are here. Send what comes after them.")
        self.offset = offset


@transaction.atomic
def begin_upload(
    owner: User, file_name: str, size: int, *, max_open_uploads: int = MAX_OPEN_UPLOADS
) -> Upload:
    """Begin an upload of `size` bytes. Locks the user, because of the limits.

    max_open_uploads: how many unsubmitted files the person may have. Raises UploadRefused, and
    Unavailable if the disk or the site's budget has no room.
    """
    if not 0 < size <= settings.LARGEST_UPLOAD_BYTES:
        max_gib = settings.LARGEST_UPLOAD_BYTES / GIB
        raise UploadRefused(
            _("A file must be between 1 byte and %(most)g GiB. This one has %(size)s.")
            % {"most": max_gib, "size": filesizeformat(size)}
        )
    check_free_space(size)
    check_budget(size)
    # From here on only one tab at a time; otherwise each would find room for its file.
    User.objects.select_for_update(of=("self",), no_key=True).get(pk=owner.pk)
    if size > (left_bytes := count_remaining_bytes(owner)):
        raise UploadRefused(_describe_full_quota(owner, left_bytes))
    if select_open_uploads(owner).count() >= max_open_uploads:
        raise UploadRefused(
            _(
                "You have %(number)d uploaded files that you haven't submitted. Submit "
                "or discard one, or wait. We keep uploads for %(days)d days."
            )
            % {"number": max_open_uploads, "days": settings.KEEP_UPLOADS_DAYS}
        )
    name = Path("".join(filter(str.isprintable, file_name)).replace("\\", "/")).name or "file"
    return Upload.objects.create(owner=owner, file_name=name[-200:], size=size)


def select_open_uploads(owner: User) -> QuerySet[Upload]:
    """Select a person's uploads, oldest first, that no submission, run or program needs."""
    open_uploads = Upload.objects.exclude(build_needed_uploads_condition())
    return open_uploads.filter(owner=owner, submission__isnull=True).order_by("begun_at")


def build_needed_uploads_condition() -> Q:
    """Return the condition for uploads that must not be deleted.

    They have answers to a run that has not been scored yet, or a program's image.
    """
    is_unscored = Q(run__state__in=UNFINISHED_STATES)
    has_answers = Exists(HandedAnswers.objects.filter(is_unscored, upload=OuterRef("pk")))
    return Q(has_answers) | build_kept_uploads_condition()


def get_max_upload_bytes(owner: User) -> int:
    """Return the maximum size of a person's next file, in bytes."""
    return min(settings.LARGEST_UPLOAD_BYTES, count_remaining_bytes(owner))


def count_remaining_bytes(owner: User) -> int:
    """Return how many more bytes a person may store in uploads and model files."""
    return max(0, _get_quota_bytes(owner) - count_stored_bytes(owner))


def count_stored_bytes(owner: User) -> int:
    """Return how many bytes a person stores: uploads, by their declared size, and model files."""
    upload_bytes = Upload.objects.filter(owner=owner).aggregate(n=Sum("size"))["n"] or 0
    models = Submission.objects.filter(owner=owner).exclude(file="")
    return upload_bytes + (models.aggregate(n=Sum("size"))["n"] or 0)


def count_site_bytes() -> int:
    """Return how many bytes all users store: uploads, by their declared size, and model files."""
    upload_bytes = Upload.objects.aggregate(n=Sum("size"))["n"] or 0
    return upload_bytes + (Submission.objects.exclude(file="").aggregate(n=Sum("size"))["n"] or 0)


def check_budget(size: int) -> None:
    """Raise Unavailable if `size` more bytes would exceed MODELS_GIB (0: no limit) for the site.

    Takes no lock: uploads that begin at the same moment may together exceed the limit.
    """
    if settings.MODELS_BYTES and count_site_bytes() + size > settings.MODELS_BYTES:
        logger.error("No room for %d bytes: MODELS_GIB is reached.", size)
        raise Unavailable(NO_ROOM_MESSAGE, status=507, wait=WAIT_SECONDS)


def check_storage_quota(upload: Upload | None, owner: User, size: int) -> None:
    """Raise UploadRefused if a person may not store `size` bytes in place of an upload.

    Locks the user. Call this in the transaction that stores the bytes: an unpacked file may be
    larger than the upload, so the check when the upload began does not suffice.
    """
    User.objects.select_for_update(of=("self",), no_key=True).get(pk=owner.pk)
    left_bytes = count_remaining_bytes(owner)
    if upload:  # it is deleted as soon as its files are stored
        left_bytes += upload.size
    if size > left_bytes:
        raise UploadRefused(_describe_full_quota(owner, left_bytes))


def _get_quota_bytes(owner: User) -> int:
    if (own_gib := get_own_quota_gib(owner)) is not None:
        return own_gib * GIB
    if has_confirmed_address(owner):
        return settings.QUOTA_BYTES
    return settings.UNCONFIRMED_QUOTA_BYTES


def _describe_full_quota(owner: User, left_bytes: int) -> str:
    message_format = _(
        "You have %(left)s of your %(most)s of storage left. Discard an upload or withdraw a model."
    )
    message = message_format % {
        "left": filesizeformat(left_bytes),
        "most": filesizeformat(_get_quota_bytes(owner)),
    }
    if has_confirmed_address(owner):
        return message
    return f"{message} {_('Confirm your email address to get more storage.')}"


def count_received_bytes(upload: Upload) -> int:
    """Return the number of bytes received, which is the offset of the next piece."""
    return upload.pieces.aggregate(n=Sum("size"))["n"] or 0


def check_upload_complete(upload: Upload) -> None:
    """Raise UploadRefused unless all bytes have been received."""
    if (received_bytes := count_received_bytes(upload)) != upload.size:
        message = _("We've received %(here)d of %(size)d bytes. Send the rest.")
        raise UploadRefused(message % {"here": received_bytes, "size": upload.size})


def add_piece(upload: Upload, offset: int, stream: ByteSource, size: int | None = None) -> int:
    """Store the bytes of a stream from `offset` on; return the offset of the next piece.

    A piece that was already stored changes nothing. The file is stored before the upload is locked;
    of two pieces with the same offset, the first one counts. size: the announced number of bytes;
    fewer mean that the connection broke. Raises WrongOffset, UploadRefused, and Unavailable or
    OSError if the storage fails.
    """
    next_offset = count_received_bytes(upload)
    if offset != next_offset:
        # The response to this piece was lost, so the client sends it again.
        if upload.pieces.filter(offset=offset).exists():
            return next_offset
        raise WrongOffset(next_offset)
    max_bytes = min(PIECE_BYTES, upload.size - offset)
    check_free_space(max_bytes)
    # Counted on this disk before storing it, because the storage would keep half a piece.
    with NamedTemporaryFile(dir=settings.SPOOL) as spool:
        count = _copy_blocks(stream, spool, max_bytes)
        if size not in (None, count) or not count:
            raise UploadRefused(
                _("We received %(count)d of %(size)d bytes. Send the piece again.")
                % {"count": count, "size": size or 1}
            )
        piece = UploadPiece(upload=upload, offset=offset, size=count)
        spool.seek(0)
        piece.file.save("piece", File(spool), save=False)
    # The file is stored before the lock, for which other tabs wait. Duplicates are deleted.
    try:
        is_first = _store_piece(piece)
    except BaseException:
        piece.file.delete(save=False)
        raise
    if not is_first:
        piece.file.delete(save=False)
    return count_received_bytes(upload)


def _copy_blocks(stream: ByteSource, target: IO[bytes], max_bytes: int) -> int:
    count = 0
    while block := _read_block(stream):
        count += len(block)
        if count > max_bytes:
            raise UploadRefused(
                _(
                    "This piece is too large. Send at most %(most)d bytes here. A piece "
                    "can have up to %(size)d MiB, and all pieces must add up to the "
                    "announced size."
                )
                % {"most": max_bytes, "size": PIECE_BYTES // MIB}
            )
        target.write(block)
    return count


def _read_block(stream: ByteSource) -> bytes:
    try:
        return stream.read(BLOCK_BYTES)
    except OSError:
        raise UploadRefused(_("The connection was interrupted. Send this part again.")) from None


@transaction.atomic
def _store_piece(piece: UploadPiece) -> bool:
    """Store a piece's row; return False if another piece with its offset came first.

    Locks the upload. Raises UploadRefused if the upload was discarded.
    """
    try:
        locked_upload = Upload.objects.select_for_update(of=("self",)).get(pk=piece.upload_id)
    except Upload.DoesNotExist:
        raise UploadRefused(_("The upload has been discarded. Start a new one.")) from None
    # Counted again under the lock: another tab may have stored this piece in the meantime.
    if count_received_bytes(locked_upload) != piece.offset:
        return False
    piece.save(force_insert=True)
    return True


def add_file(
    owner: User,
    file_name: str,
    size: int,
    stream: ByteSource,
    *,
    max_open_uploads: int = MAX_OPEN_UPLOADS,
) -> Upload:
    """Store a whole file from a plain form as a complete upload; return it.

    Takes the locks and raises the exceptions of `begin_upload` and `add_piece`.
    """
    upload = begin_upload(owner, file_name, size, max_open_uploads=max_open_uploads)
    for offset in range(0, size, PIECE_BYTES):
        add_piece(upload, offset, _BoundedReader(stream, PIECE_BYTES))
    return upload


class _BoundedReader:
    """A source of the next `left_bytes` bytes of a stream."""

    def __init__(self, stream: ByteSource, left_bytes: int) -> None:
        self._stream, self._left = stream, left_bytes

    def read(self, size: int, /) -> bytes:
        block = self._stream.read(min(size, self._left))
        self._left -= len(block)
        return block


@contextmanager
def assemble_upload(upload: Upload, beat: BeatCallback = lambda: None) -> Iterator[Path]:
    """Yield the path of a temporary file with the complete upload.

    Raises UploadRefused, and Unavailable if the disk has no room.
    """
    check_upload_complete(upload)
    check_free_space(upload.size)
    with open_scratch_folder() as folder:
        path = folder / "upload"
        with path.open("wb") as target:
            for piece in upload.pieces.order_by("offset"):
                beat()
                with piece.file.open("rb") as source:
                    shutil.copyfileobj(source, target, BLOCK_BYTES)
        yield path


def discard_upload(upload: Upload) -> None:
    """Delete an upload and its pieces. Locks the upload, so that no piece is added meanwhile."""
    with transaction.atomic():
        locked_uploads = Upload.objects.select_for_update(of=("self",)).filter(pk=upload.pk)
        pieces: list[UploadPiece] = []
        # Read before the delete, which also deletes the rows of the pieces.
        for locked_upload in locked_uploads:
            pieces += locked_upload.pieces.all()
        locked_uploads.delete()
    # Files after rows: if the process dies in between, `purge_old_uploads` finds them.
    for piece in pieces:
        piece.file.delete(save=False)


def purge_old_uploads() -> int:
    """Delete uploads older than KEEP_UPLOADS_DAYS that wait for no check; return how many.

    Also deletes stored pieces without an upload, which remain after a process was killed or an
    account was deleted.
    """
    old_rows = Upload.objects.filter(
        begun_at__lt=timezone.now() - timedelta(days=settings.KEEP_UPLOADS_DAYS)
    )
    # A program may be brought once and run for months.
    old_rows = old_rows.exclude(build_kept_uploads_condition())
    old_uploads = list(old_rows.exclude(IN_CHECK_CONDITION))
    for upload in old_uploads:
        discard_upload(upload)
    folders = list_folders(UPLOADS_FOLDER)
    with_row = Upload.objects.filter(pk__in=folders).values_list("pk", flat=True)
    for folder in set(folders) - set(map(str, with_row)):
        path = f"{UPLOADS_FOLDER}/{folder}"
        for name in list_files(path):
            default_storage.delete(name)
        default_storage.delete(path)
    return len(old_uploads)
